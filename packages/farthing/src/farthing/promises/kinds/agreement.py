"""Agreement: the cheapest operating point proved to answer as a reference model would have."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, Unpack

from farthing.errors import InputError
from farthing.promises import wording
from farthing.promises.agreeing import (
    Agreeing,
    Judged,
    JudgeShare,
    agreement_p_values,
    agreement_point,
    levels_left,
)
from farthing.promises.base import Per
from farthing.promises.beside_reference import (
    COUNTED,
    WITH_WHOM,
    BesideReference,
    BesideReferencePayload,
    check_named,
    forecast_beside,
)
from farthing.promises.certificate import About, BoolArray, Certificate
from farthing.promises.chains import shared
from farthing.promises.figures import Figure, share_of
from farthing.promises.levels import Level, exact_level, exact_text, level_of
from farthing.promises.observed import Acted, Facts, Gradable, PlayedPoints
from farthing.promises.payload import Reads, Watched
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.clusters import PerRequest, clustered_share
from farthing.promises.statistics.expected_cost import Allowed, agreement_allows
from farthing.promises.statistics.fixed_sequence import point_kappa, proven
from farthing.promises.statistics.power import Wrong
from farthing.promises.texts import (
    DELTA,
    REALISED,
    Column,
    Goal,
    Means,
    PromiseOption,
    decimal,
    known,
    percent,
    share,
)

DRAWN = "The reference answers as it did on the calibration questions: one recorded draw of it."
FAIR = "Accuracy follows from it only where equal answers are graded alike."
JUDGED = "Accuracy does not follow from it: a judge said of some answers that they are the same."
CHECKED = "The questions that were checked were drawn by chance, and so many as was fixed before."


@dataclass(frozen=True)
class Agreement(BesideReference):
    """The single best answer is the one that a reference would have given, minus epsilon.

    It takes no accepted answers: recorded calls of the reference are enough.

    Raises:
        InputError: the reference is no name, or a number is no probability.
    """

    kind: ClassVar[str] = "agreement"
    place: ClassVar[int] = 3
    options: ClassVar[tuple[PromiseOption, ...]] = (
        PromiseOption(
            "epsilon",
            "share answered otherwise, by default 0.05.",
            "margin",
            brief="the share answered otherwise, by default 0.05.",
            plain="max-loss",
        ),
        DELTA,
        WITH_WHOM,
        COUNTED,
        PromiseOption(
            "judge-epsilon",
            "what of epsilon goes to the errors of a judge who says what is the same.",
            "margin",
            commands=("calibrate", "grade"),
        ),
        PromiseOption(
            "judge-delta",
            "what of delta goes to them.",
            "probability",
            commands=("calibrate", "grade"),
        ),
    )
    beside_metric: ClassVar[str] = REALISED
    graded_by = "judge"
    needs_gold: ClassVar[bool] = False

    reference: str | None = None
    """A role of the traces; None: the one whose answers the policy was trained to give."""
    epsilon: Level = Fraction(1, 20)
    """The share of questions that may be answered otherwise."""
    delta: Level = Fraction(1, 10)
    judge: JudgeShare | None = None
    """What of both goes to the errors of a judge who says what is the same, where there is one."""
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side each has."""
    per: Per = "question"
    """What it is about: distinct questions, or requests, of which some ask the same."""

    def __post_init__(self) -> None:
        check_named(self.reference, self.per)
        level_of(self.epsilon, "epsilon", "0.05")
        level_of(self.delta, "delta")

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for."""
        del alpha
        epsilon, delta = given.get("epsilon"), given.get("delta")
        if epsilon is not None and epsilon <= 0:
            raise InputError(
                f"--epsilon is {float(epsilon):g}; of agreement it is the share of questions that "
                "may be answered otherwise: give one above 0, such as 0.05"
            )
        levels = (
            exact_level(cls.epsilon if epsilon is None else epsilon),
            exact_level(cls.delta if delta is None else delta),
        )
        judge = JudgeShare.of(levels, (given.get("judge_epsilon"), given.get("judge_delta")))
        return cls(**known(given, "reference", "epsilon", "delta", "per"), judge=judge)

    @property
    def level(self) -> Fraction:
        """The share of questions that are answered as the reference would have."""
        return 1 - exact_level(self.epsilon)

    @property
    def line(self) -> float:
        """The same, as a float."""
        return float(self.level)

    @property
    def checked_pairs(self) -> int | None:
        """How many a judge's share of the levels takes, if there is no error on any."""
        return None if self.judge is None else self.judge.pairs

    def reads(self, known: Gradable) -> Reads:
        """Whether an answer is the reference's is what counts."""
        role = self.reference or known.trained_as
        if role is None:
            raise InputError(
                "agreement is with a reference; name it, one of " + ", ".join(known.roles)
            )
        return Reads(same_as=role)

    def whose(self, known: Gradable) -> str:
        """Return the role whose answers the grade of the questions is about."""
        if known.trained_as is None:
            raise InputError(
                "a promise of agreement reads the grade 'same as ROLE', and these questions are "
                f"graded by '{known.grade}'; name the reference"
            )
        return known.trained_as

    def bars(self, right: BoolArray) -> BoolArray:
        """Every question is lost where the answer is another."""
        return right | True

    def evidence(self, observed: PlayedPoints, questions: Facts) -> Agreeing:
        """Take which answers are the reference's."""
        return Agreeing(
            observed.spent,
            observed.correct,
            questions.role or "",
            observed.kappas,
            questions.checks,
            questions.alone_nano,
            clusters=questions.clusters,
            weights=questions.weights,
            share=self.share,
        )

    def prove(self, evidence: Agreeing, **about: Unpack[About]) -> Certificate:
        """Certify the cheapest proved point."""
        return certify(evidence, self.epsilon, self.delta, share=self.judge, **about)

    def allows(self, n: int) -> Allowed:
        """Return how many differing answers prove agreement on n questions."""
        levels = exact_level(self.epsilon), exact_level(self.delta) * self.share
        return agreement_allows(n, *map(float, levels))

    def proved(self, evidence: Agreeing) -> BoolArray:
        """Return which points are proved."""
        levels = (exact_level(self.epsilon), exact_level(self.delta) * self.share)
        left = levels_left(evidence, *levels, self.judge)[1] or (levels[0], Fraction(0))
        values = agreement_p_values(evidence, left[0])
        return proven(values[::-1], float(left[1]))[::-1]

    def goal(self) -> Goal:
        """Return how it is shown."""
        other, level = decimal(exact_level(self.epsilon)), percent(self.level)
        name = f"Agreement with {self.reference}"
        title = f"{name}: at most {other} may be answered otherwise"
        return self.shown(title, name, level, f"{level} asked for")

    def claim(self, *, alone: bool = True) -> str:
        """Say what is promised of a hundred questions."""
        del alone
        return (
            f"Of 100 questions at least {wording.of_hundred(self.level)} are answered as "
            f"{self.reference} would have answered them."
        )

    def under(self) -> str:
        """Begin a sentence about who wins."""
        return f"Under agreement with {self.reference} of {decimal(self.level)},"

    def result(self, means: Means) -> str:
        """Say what the winner came to."""
        known, same = super().result(means), f"agreement {means.realised:.3f}"
        return f"{same}, {known}" if known else same

    def columns(self) -> list[Column]:
        """Return the column of the share."""
        meaning = f"share of answers that are {self.reference}'s"
        return [Column(REALISED, f"Agreement with {self.reference}", "Same", share, meaning)]


class AgreementPromise(BesideReferencePayload, frozen=True, kw_only=True, tag="agreement"):
    """The answer that a reference would have given, with confidence over the draw."""

    evidence: ClassVar[type] = Agreeing

    epsilon: Fraction
    """The share of questions that may be answered otherwise."""
    points: int
    """Number of operating points."""
    reference: str
    """The role that the reference model fills."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    judge: Judged | None = None
    """Who said what is the same, beside the task; None: the task alone."""
    per_request: PerRequest | None = None
    """How often a question counts, where it may count more than once."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        level = exact_text(1 - self.epsilon)
        if self.point is None:
            claim = (
                f"anything cheaper answers as {self.reference} would with probability "
                f"{level}, so {self.reference} answers, which is always valid."
            )
            return self._and_whose(wording.unproved(self.delta, of, claim))
        claim = (
            f"the answer of {wording.chosen()} is the one that {self.reference} would have given, "
            f"with probability at least {level}."
        )
        said = wording.confident(self.delta, of, claim) + self.side_by_side()
        if self.per_request is not None:
            said = f"{said} {self.per_request.sentence(of.requests)}"
        return self._and_whose(said)

    def _and_whose(self, said: str) -> str:
        return said if self.judge is None else f"{said} {self.judge.sentence()}"

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return "Nothing cheaper is known to answer as the reference does, so that one answers."
        same = wording.of_hundred(1 - self.epsilon)
        return (
            f"Of 100 {wording.units(of)} at least {same} are answered as {self.reference} would "
            f"have answered them, {wording.how_sure(self.delta)}."
        )

    def recompute(self, evidence: Agreeing, of: Certificate) -> Certificate:
        """Certify again from other questions."""
        share = None if self.judge is None else self.judge.share
        return certify(evidence, self.epsilon, self.delta, share=share, **of.about)

    @classmethod
    def asks(cls) -> type[Agreement]:
        """Return the record of what is asked for."""
        return Agreement

    def asked(self) -> Agreement | None:
        """Return the same agreement; a judge's word for what is the same is not to be had again."""
        if self.judge is not None:
            return None
        per: Per = "question" if self.per_request is None else "request"
        return Agreement(self.reference, self.epsilon, self.delta, per=per)

    @property
    def reads(self) -> Reads:
        """Whether an answer is the reference's."""
        return Reads(same_as=self.reference)

    @property
    def reliability(self) -> Fraction:
        """The share of answers that are the reference's."""
        return 1 - self.epsilon

    @property
    def watched(self) -> Watched:
        """That share; a judge's word for what is the same is no audit's to repeat."""
        return Watched(float(1 - self.epsilon), self.judge is None, self.reference)

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure the share of the reference's answers; a judge said nothing of these questions."""
        if questions.clusters is not None:
            what = f"answers to requests that are {self.reference}'s"
            measured = clustered_share(of.best_correct, questions.clusters, 0.05)
            return Figure(what, *measured, float(1 - self.epsilon))
        if self.judge is not None:
            return None
        return share_of(f"answers that are {self.reference}'s", of.best_correct, self.epsilon)

    def forecast(self, evidence: Agreeing, of: Certificate) -> str:
        """Say how many questions, or which epsilon, would probably do."""

        def proved(some: Agreeing) -> int | None:
            return None if self.judge else agreement_point(some, self.epsilon, self.own_delta)

        levels = self.epsilon, self.own_delta
        return forecast_beside(evidence, proved, Wrong.of_agreement, levels, of.n)


def certify(
    agreeing: Agreeing,
    epsilon: Level,
    delta: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
    share: JudgeShare | None = None,
) -> Certificate:
    """Choose the cheapest operating point proved to differ from the reference less than epsilon.

    Where the task grades equal answers alike, an answer can only be worse than the reference's
    where it differs. So accuracy is then above the reference's minus epsilon as well, without any
    accepted answer.

    Where a judge said what is the same, an answer differs where the judge says so, or where its
    "same" is false. The first is tested at epsilon and delta less the judge's share, the second by
    the Clopper-Pearson bound of the checked questions, at that share.

    Args:
        agreeing: the operating points on the calibration questions.
        epsilon: the share of questions that may be answered otherwise, in (0, 1).
        delta: how often the promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the answers are from.
        question_budget_nano: the budget a question that they were given under; None: without.
        share: what of epsilon and delta goes to the judge's errors, where there is a judge.

    Raises:
        CalibrationError: as `agreement_point`, or the judge's share is missing or leaves nothing.

    >>> import numpy as np
    >>> same = np.ones((60, 1), bool)
    >>> found = certify(Agreeing(same * 10, same, "gpt-4o"), 0.05, 0.1, fingerprint="")
    >>> print(found.sentence())
    With confidence 0.9 in the draw of 60 questions, the answer of the policy is the one that \
gpt-4o would have given, with probability at least 0.95.
    """
    levels = (exact_level(epsilon, "epsilon"), exact_level(delta, "delta") * agreeing.share)
    judge, left = levels_left(agreeing, *levels, share)
    point = None if left is None else agreement_point(agreeing, *left)
    rests_on = (FAIR,) if judge is None else (JUDGED, CHECKED)
    return Certificate(
        promise=AgreementPromise(
            epsilon=exact_level(epsilon, "epsilon"),
            delta=exact_level(delta, "delta"),
            point=point,
            points=agreeing.same.shape[1],
            reference=agreeing.role,
            judge=judge,
            **shared(agreeing.share),
            per_request=PerRequest.of(agreeing.clusters),
        ),
        kappa=1.0 if point is None else point_kappa(agreeing.kappas, point),
        **clustered.counts(agreeing.clusters, len(agreeing.same)),
        question_budget_nano=question_budget_nano,
        conditional_on=(
            *wording.MENU,
            DRAWN,
            *rests_on,
            *clustered.conditions(agreeing.clusters),
        ),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )
