"""Agreement: the cheapest operating point proved to answer as a reference model would have."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.base import BoolArray, Certificate, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level, exact_text
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.binomial import binomial_cdf, binomial_upper, trials_needed
from farthing.promises.statistics.clusters import Clusters, PerRequest, clustered_p_values
from farthing.promises.statistics.fixed_sequence import cheapest_proven, check_shapes, point_kappa
from farthing.promises.statistics.sampled_mean import weighted_p_values

DRAWN = "The reference answers as it did on the calibration questions: one recorded draw of it."
FAIR = "Accuracy follows from it only where equal answers are graded alike."
JUDGED = "Accuracy does not follow from it: a judge said of some answers that they are the same."
CHECKED = "The questions that were checked were drawn by chance, and so many as was fixed before."


@dataclass(frozen=True)
class Checks:
    """A judge's word that answers are the same, checked on questions that chance drew."""

    judge: str
    """The judge."""
    checked: int
    """Questions that chance drew; a person compared whatever the judge called the same on them."""
    errors: int
    """Those of them on which something was not; what nobody compared counts as an error."""


@dataclass(frozen=True)
class Agreeing:
    """Operating points, and whether their answers are the reference's."""

    cost_nano: IntArray
    """[n, G] nano-dollars, operating points from the cheapest to the dearest."""
    same: BoolArray
    """[n, G] whether the operating point's answer is the reference's; a missing one never is."""
    role: str
    """The role that the reference model fills."""
    kappas: FloatArray | None = None
    """[G] the threshold of each operating point, where they are one policy at several
    thresholds."""
    checks: Checks | None = None
    """Whose word `same` takes, and how that was checked; None: the task's own equality alone."""
    reference_nano: IntArray | None = None
    """[n] what the reference costs alone, in nano-dollars; a point that costs as much is not
    chosen. None: it is not known, or points may cost more."""
    weights: FloatArray | None = None
    """[n] what each question counts, inversely to the probability with which it was drawn, in
    (0, 1]; None: all alike."""
    candidates: int = 1
    """Among how many, proved side by side, delta is shared evenly: then the promises of all of them
    hold together, and any may be chosen."""
    clusters: Clusters | None = None
    """Of a promise per request: which rows ask the same; None: each row is another question."""

    def __post_init__(self) -> None:
        check_shapes("same", self.same, "cost_nano", self.cost_nano)
        if self.same.dtype != np.bool_:
            raise CalibrationError("same must be an array of bool")
        clustered.check(self.clusters, len(self.same), self.checks)


class JudgeShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of epsilon and delta goes to a judge who says what is the same."""

    epsilon: Fraction
    """The share of questions on which its "same" may be false."""
    delta: Fraction
    """How often the bound of that share may fail."""

    @property
    def pairs(self) -> int:
        """How many checked questions prove it, if there is no error on any.

        >>> JudgeShare(epsilon=Fraction("0.025"), delta=Fraction("0.05")).pairs
        119
        """
        return trials_needed(self.epsilon, self.delta)


class Judged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a certificate keeps of a judge who said what is the same."""

    name: str
    """The judge."""
    share: JudgeShare
    checked: int
    """Questions that were checked."""
    errors: int
    """Those of them on which its "same" was false."""

    def sentence(self) -> str:
        """Say how the levels are split."""
        epsilon, delta = exact_text(self.share.epsilon), exact_text(self.share.delta)
        return (
            f"What is the same {self.name} says as well: of epsilon {epsilon} and of delta {delta} "
            f"are spent on its errors, of which {self.checked} checked questions show "
            f"{self.errors}; that the accuracy is close to the reference's does not follow."
        )


class AgreementPromise(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="agreement",
):
    """The answer that a reference would have given, with confidence 1 - delta over the draw."""

    evidence: ClassVar[type] = Agreeing

    epsilon: Fraction
    """The share of questions that may be answered otherwise."""
    delta: Fraction
    """How often the promise may fail over calibration draws."""
    points: int
    """Number of operating points."""
    reference: str
    """The role that the reference model fills."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    judge: Judged | None = None
    """Who said what is the same, beside the task; None: the task alone."""
    shared_by: int | None = None
    """How many candidates were proved side by side, each at its share of delta; None: one has all
    of it."""
    per_request: PerRequest | None = None
    """How often a question counts, where it may count more than once."""

    @property
    def promises(self) -> bool:
        """Whether an operating point is proved."""
        return self.point is not None

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        level = exact_text(1 - self.epsilon)
        if self.point is None:
            claim = (
                f"any cheaper operating point answers as {self.reference} would with probability "
                f"{level}, so {self.reference} answers, which is always valid."
            )
            return self._and_whose(wording.unproved(self.delta, of, claim))
        chosen = wording.chosen(self.point, self.points)
        claim = (
            f"the answer of {chosen} is the one that {self.reference} would have given, with "
            f"probability at least {level}."
        )
        said = wording.confident(self.delta, of, claim) + wording.side_by_side(self.shared_by)
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

    >>> same = np.ones((60, 1), bool)
    >>> found = certify(Agreeing(same * 10, same, "gpt-4o"), 0.05, 0.1, fingerprint="")
    >>> print(found.sentence())
    With confidence 0.9 in the draw of 60 questions, the answer of operating point 1 of 1 is the \
one that gpt-4o would have given, with probability at least 0.95.
    """
    levels = (exact_level(epsilon, "epsilon"), exact_level(delta, "delta") / agreeing.candidates)
    judge, left = _split(agreeing, *levels, share)
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
            shared_by=agreeing.candidates if agreeing.candidates > 1 else None,
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


def _split(
    agreeing: Agreeing, epsilon: Fraction, delta: Fraction, share: JudgeShare | None
) -> tuple[Judged | None, tuple[Fraction, Fraction] | None]:
    """Return the judge's part, and the levels that are left to the policy; None: it errs too often.

    Raises:
        CalibrationError: a judge without a share, or one that leaves nothing.
    """
    checks = agreeing.checks
    if checks is None:
        return None, (epsilon, delta)
    if share is None or not (share.epsilon < epsilon and share.delta < delta):
        raise CalibrationError(
            f"{checks.judge} said what is the same; give its errors a share of epsilon "
            f"({exact_text(epsilon)}) and of delta ({exact_text(delta)}), less than the whole"
        )
    found = Judged(name=checks.judge, share=share, checked=checks.checked, errors=checks.errors)
    upper = binomial_upper(checks.errors, checks.checked, float(share.delta))
    kept = upper <= float(share.epsilon)
    return found, (epsilon - share.epsilon, delta - share.delta) if kept else None


def agreement_point(agreeing: Agreeing, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest operating point proved to differ from the reference less than epsilon.

    The number of differing answers among n independent questions is binomial, so its distribution
    function at epsilon is an exact p-value. Operating points are tested from the dearest down until
    one fails, so the order must not come from these questions.

    Returns:
        Its index; None where nothing is proved: use the reference itself, which needs no proof.

    Raises:
        CalibrationError: epsilon or delta outside (0, 1).

    >>> same = np.arange(100)[:, None] >= [9, 1]          # 9 and 1 answers differ
    >>> cost = np.tile([10, 90], (100, 1))
    >>> agreement_point(Agreeing(cost, same, "gpt-4o"), 0.05, 0.1)
    1
    """
    p_values = agreement_p_values(agreeing, epsilon)
    limit = exact_level(delta, "delta")
    return cheapest_proven(p_values, limit, agreeing.cost_nano, agreeing.reference_nano)


def agreement_p_values(agreeing: Agreeing, epsilon: Level) -> FloatArray:
    """Return the p-value of each operating point's differing by epsilon or more, [G].

    Exact; by bets where questions count differently; per request, by a bet on each question.
    """
    chance, n = float(exact_level(epsilon, "epsilon")), len(agreeing.same)
    if agreeing.weights is not None:
        return weighted_p_values((~agreeing.same).astype(np.float64), agreeing.weights, chance)
    if agreeing.clusters is not None:
        return clustered_p_values((~agreeing.same).astype(np.float64), agreeing.clusters, chance)
    differ = (~agreeing.same).sum(axis=0)
    return np.array([binomial_cdf(int(number), n, chance) for number in differ])
