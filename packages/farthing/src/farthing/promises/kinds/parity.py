"""Parity: the cheapest operating point whose accuracy is proved close to the reference model's."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.base import Per
from farthing.promises.beside_reference import (
    COUNTED,
    WITH_WHOM,
    BesideReference,
    BesideReferencePayload,
    check_named,
    forecast_beside,
    named,
)
from farthing.promises.certificate import About, BoolArray, Certificate, FloatArray
from farthing.promises.chains import shared
from farthing.promises.figures import Figure, accuracy_difference, difference_by_request
from farthing.promises.levels import (
    Level,
    Margin,
    exact_level,
    exact_margin,
    exact_text,
    level_of,
    margin_of,
)
from farthing.promises.observed import Acted, Facts, Gradable, PlayedPoints
from farthing.promises.paired import Paired, parity_p_values, parity_point, parity_proved
from farthing.promises.payload import Reads, Watched
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.clusters import PerRequest
from farthing.promises.statistics.expected_cost import Allowed, parity_allows
from farthing.promises.statistics.fixed_sequence import point_kappa
from farthing.promises.statistics.label_selection import SequenceTest, first_failure
from farthing.promises.statistics.power import Compared
from farthing.promises.statistics.sampled_mean import Drawn
from farthing.promises.texts import (
    DELTA,
    REALISED,
    Column,
    Goal,
    Means,
    PromiseOption,
    decimal,
    known,
    signed,
)

COMPARED = "The reference model answers as it did on the calibration questions."


@dataclass(frozen=True)
class Parity(BesideReference):
    """The single best answer is as often right as a reference role's first one, minus epsilon.

    Raises:
        InputError: the reference is no name, or a number is no probability.
    """

    kind: ClassVar[str] = "parity"
    place: ClassVar[int] = 2
    options: ClassVar[tuple[PromiseOption, ...]] = (
        PromiseOption(
            "epsilon",
            "accuracy that may be lost, by default 0.02.",
            "margin",
            brief="the accuracy that may be lost, by default 0.02.",
            plain="max-loss",
        ),
        DELTA,
        WITH_WHOM,
        COUNTED,
    )
    graded_by = "lot"

    reference: str | None = None
    """A role of the traces; None: the one that most is paid for in training."""
    epsilon: Level = Fraction(1, 50)
    """Accuracy that may be lost; 0 or less: it must rise, by more than that."""
    delta: Level = Fraction(1, 10)
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side each has."""
    per: Per = "question"
    """What it is about: distinct questions, or requests, of which some ask the same."""

    def __post_init__(self) -> None:
        check_named(self.reference, self.per)
        margin_of(self.epsilon)
        level_of(self.delta, "delta")

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for."""
        del alpha
        return cls(**known(given, "reference", "epsilon", "delta", "per"))

    @property
    def may_cost_more(self) -> bool:
        """Whether accuracy must rise by something."""
        return self.margin < 0

    @property
    def must_gain(self) -> bool:
        """Whether accuracy must rise."""
        return self.margin <= 0

    @property
    def line(self) -> float:
        """The least difference to the reference's accuracy."""
        return -float(self.margin)

    def reads(self, known: Gradable) -> Reads:
        """Ungraded answers count at worst; where nobody graded any, the reference's are right."""
        if known.by_lot:
            return Reads(at_worst=named(self.reference, known.roles))
        if not known.ungraded or self.reference is None:
            return Reads()
        if known.nothing:
            return Reads(same_as=self.reference)
        return Reads(at_worst=self.reference)

    def evidence(self, observed: PlayedPoints, questions: Facts) -> Paired:
        """Hold the points against the reference on the same questions."""
        if questions.right is None:
            raise CalibrationError("parity is with a reference; give whether its answers are right")
        return Paired(
            observed.spent,
            observed.correct,
            questions.right,
            questions.role,
            observed.kappas,
            questions.sample,
            None if self.may_cost_more else questions.alone_nano,
            clusters=questions.clusters,
            weights=questions.weights,
            share=self.share,
        )

    def prove(self, evidence: Paired, **about: Unpack[About]) -> Certificate:
        """Certify the cheapest proved point."""
        return certify(evidence, self.epsilon, self.delta, **about)

    def allows(self, n: int) -> Allowed:
        """Return how many losses prove parity on n questions, by the number of wins."""
        return parity_allows(n, float(self.margin), float(exact_level(self.delta) * self.share))

    def proved(self, evidence: Paired) -> BoolArray:
        """Return which points are proved."""
        level = exact_level(self.delta, "delta") * self.share
        return parity_proved(evidence, self.epsilon, level)

    def testing(self, evidence: Paired) -> SequenceTest:
        """Return how it was tested: from the dearest point down."""
        delta = float(exact_level(self.delta, "delta") * self.share)
        failing = first_failure(parity_p_values(evidence, self.epsilon), delta)
        loss = evidence.reference[:, None].astype(np.float64) - evidence.correct
        return SequenceTest(
            failing, loss, np.ones_like(evidence.correct), float(self.margin), delta
        )

    def figure(
        self, spent_usd: float, right: BoolArray, answered: BoolArray, theirs: BoolArray | None
    ) -> float:
        """Return accuracy less the reference's."""
        del spent_usd, answered
        return float(right.mean() - (0.0 if theirs is None else theirs.mean()))

    def swept(self, correct: BoolArray, theirs: BoolArray | None) -> FloatArray:
        """Return the accuracy of each point less the reference's."""
        shares: FloatArray = correct.mean(axis=0) - (0.0 if theirs is None else theirs.mean())
        return shares

    def goal(self) -> Goal:
        """Return how it is shown."""
        goal, verb = f"at most {decimal(self.margin)} of accuracy may be lost", "allowed"
        if self.must_gain:
            goal, verb = f"more than {decimal(-self.margin)} of accuracy is to be won", "asked for"
        title, level = f"Parity with {self.reference}: {goal}", signed(self.line)
        return self.shown(title, f"Accuracy less {self.reference}'s", level, f"{level} {verb}")

    def claim(self, *, alone: bool = True) -> str:
        """Say what is promised of a hundred questions."""
        whose = " alone" if alone else "'s first answer"
        return (
            f"Of 100 questions {wording.fewer(self.margin)} are answered right than by "
            f"{self.reference}{whose}."
        )

    def under(self) -> str:
        """Begin a sentence about who wins."""
        sign = "minus" if self.margin > 0 else "plus"
        margin = f" {sign} {decimal(abs(self.margin))}" if self.margin else ""
        return f"Under parity with {self.reference}{margin},"

    def result(self, means: Means) -> str:
        """Say what the winner came to, and beside the reference."""
        known, beside = super().result(means), f"{signed(means.realised)} beside {self.reference}"
        return f"{known} ({beside})" if known else beside

    def columns(self) -> list[Column]:
        """Return the column of the difference."""
        name = f"Accuracy less {self.reference}'s"
        return [Column(REALISED, name, "Gap", signed, name[0].lower() + name[1:])]


class ParityPromise(BesideReferencePayload, frozen=True, kw_only=True, tag="parity"):
    """Accuracy close to a reference model's, with confidence 1 - delta over the draw."""

    rule: int = 2  # the first proved by `first_loss_p_value`
    evidence: ClassVar[type] = Paired
    difference: ClassVar[bool] = True

    epsilon: Margin
    """How much accuracy may be lost against the reference; below 0: how much must be won."""
    points: int
    """Number of operating points."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    reference: str | None = None
    """The role that the reference model fills, where it is known."""
    sample: Drawn | None = None
    """The sample that it is proved by; None: all questions."""
    per_request: PerRequest | None = None
    """How often a question counts, where it may count more than once."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        if self.point is None:
            then = (
                "which is always valid" if self.epsilon >= 0 else "and that gain is not to be had"
            )
            which = "anything cheaper" if self.epsilon >= 0 else "anything"
            claim = f"{which} is {self._near}, so {self._whose} answers, {then}."
            return wording.unproved(self.delta, of, claim)
        claim = f"the accuracy of {wording.chosen()} is above {self._goal}."
        said = wording.confident(self.delta, of, claim) + self.side_by_side()
        if self.per_request is not None:
            said = f"{said} {self.per_request.sentence(of.requests)}"
        return said if self.sample is None else f"{said} {self.sample.sentence()}"

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises and self.epsilon < 0:
            return "Nothing is known to be so much better than the reference, so that one answers."
        if not self.promises:
            return "Nothing cheaper is known to be as good as the reference, so that one answers."
        return (
            f"Of 100 {wording.units(of)} {wording.fewer(self.epsilon)} are answered right than by "
            f"{self._whose} alone, {wording.how_sure(self.delta)}."
        )

    @property
    def _goal(self) -> str:
        """What accuracy is proved to be above."""
        if not self.epsilon:
            return f"{self._whose}'s"
        sign = "minus" if self.epsilon > 0 else "plus"
        return f"{self._whose}'s {sign} {exact_text(abs(self.epsilon))}"

    @property
    def _near(self) -> str:
        """What no operating point is proved to be."""
        if self.epsilon > 0:
            return f"within {exact_text(self.epsilon)} of {self._whose}'s accuracy"
        return f"of an accuracy above {self._goal}"

    @property
    def _whose(self) -> str:
        return self.reference or "the reference model"

    def recompute(self, evidence: Paired, of: Certificate) -> Certificate:
        """Certify again from other questions."""
        return certify(evidence, self.epsilon, self.delta, **of.about)

    @classmethod
    def asks(cls) -> type[Parity]:
        """Return the record of what is asked for."""
        return Parity

    def asked(self) -> Parity | None:
        """Return the same parity, where its reference is known."""
        if self.reference is None:
            return None
        per: Per = "question" if self.per_request is None else "request"
        return Parity(self.reference, self.epsilon, self.delta, per=per)

    @property
    def reads(self) -> Reads:
        """As it was proved: at worst where nobody graded answers."""
        return Reads(as_proved=True)

    @property
    def watched(self) -> Watched:
        """The difference of two accuracies, in [-1, 1], as a share."""
        return Watched((1 - float(self.epsilon)) / 2, reference=self.reference)

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure accuracy less the reference's; of requests by question."""
        if questions.right is None:
            return None
        what, by = f"accuracy less that of {self.reference}", questions.clusters
        if by is not None:
            what = f"accuracy by request less that of {self.reference}"
            return Figure(
                what,
                *difference_by_request(of.best_correct, questions.right, by),
                -float(self.epsilon),
            )
        gained = accuracy_difference(of.best_correct, questions.right)
        return Figure(what, *gained, -float(self.epsilon))

    def forecast(self, evidence: Paired, of: Certificate) -> str:
        """Say how many questions, or which epsilon, would probably do."""
        return forecast_beside(
            evidence,
            lambda some: parity_point(some, self.epsilon, self.own_delta),
            Compared.of,
            (self.epsilon, self.own_delta),
            of.n,
        )


def certify(
    paired: Paired,
    epsilon: Level,
    delta: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
) -> Certificate:
    """Choose the cheapest operating point proved to lose less than epsilon against the reference.

    Args:
        paired: the operating points and the reference on the calibration questions.
        epsilon: how much accuracy may be lost, in (-1, 1); 0 or less proves that it rises.
        delta: how often the promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the answers are from.
        question_budget_nano: the budget a question that they were given under; None: without.

    Raises:
        CalibrationError: as `parity_point`.
    """
    point = parity_point(paired, epsilon, exact_level(delta, "delta") * paired.share)
    return Certificate(
        promise=ParityPromise(
            epsilon=exact_margin(epsilon),
            delta=exact_level(delta, "delta"),
            point=point,
            points=paired.correct.shape[1],
            reference=paired.role,
            sample=Drawn.of(paired.sample),
            **shared(paired.share),
            per_request=PerRequest.of(paired.clusters),
        ),
        kappa=1.0 if point is None else point_kappa(paired.kappas, point),
        **clustered.counts(paired.clusters, len(paired.reference)),
        question_budget_nano=question_budget_nano,
        conditional_on=(
            *wording.MENU,
            COMPARED,
            *wording.by_lot(paired.sample is not None),
            *clustered.conditions(paired.clusters),
        ),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )
