"""Parity: the cheapest operating point whose accuracy is proved close to the reference model's."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.base import BoolArray, Certificate, FloatArray, IntArray
from farthing.promises.levels import Level, Margin, exact_level, exact_margin, exact_text
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.clusters import Clusters, PerRequest, clustered_p_values
from farthing.promises.statistics.fixed_sequence import cheapest_proven, check_shapes, point_kappa
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.promises.statistics.sampled_mean import (
    Drawn,
    Sample,
    sampled_p_values,
    weighted_p_values,
)

COMPARED = "The reference model answers as it did on the calibration questions."


@dataclass(frozen=True)
class Paired:
    """Operating points and a reference model on the same questions."""

    cost_nano: IntArray
    """[n, G] nano-dollars, operating points from the cheapest to the dearest."""
    correct: BoolArray
    """[n, G] whether the operating point's answer is right; an abstention is not."""
    reference: BoolArray
    """[n] whether the reference model's answer is right."""
    role: str | None = None
    """The role that the reference model fills, where it is known."""
    kappas: FloatArray | None = None
    """[G] the threshold of each operating point, where they are one policy at several
    thresholds."""
    sample: Sample | None = None
    """What chance drew to be graded; None: every question counts, ungraded ones at worst."""
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
        shape = self.correct.shape
        check_shapes("correct", self.correct, "cost_nano", self.cost_nano)
        if self.reference.shape != shape[:1]:
            raise CalibrationError(
                f"{shape[0]} questions but the reference has shape {self.reference.shape}"
            )
        if self.correct.dtype != np.bool_ or self.reference.dtype != np.bool_:
            raise CalibrationError("correct and reference must be arrays of bool")
        if self.sample is not None and self.sample.predicted.shape != shape:
            raise CalibrationError("the sample must be of the same questions and operating points")
        clustered.check(self.clusters, shape[0], self.sample)


class ParityPromise(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="parity",
):
    """Accuracy close to a reference model's, with confidence 1 - delta over the draw."""

    evidence: ClassVar[type] = Paired

    epsilon: Margin
    """How much accuracy may be lost against the reference; below 0: how much must be won."""
    delta: Fraction
    """How often the promise may fail over calibration draws."""
    points: int
    """Number of operating points."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    reference: str | None = None
    """The role that the reference model fills, where it is known."""
    sample: Drawn | None = None
    """The sample that it is proved by; None: all questions."""
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
        if self.point is None:
            claim = (
                f"any cheaper operating point is {self._near}, so "
                f"{self._whose} answers, which is always valid."
            )
            return wording.unproved(self.delta, of, claim)
        chosen = wording.chosen(self.point, self.points)
        claim = f"the accuracy of {chosen} is above {self._goal}."
        said = wording.confident(self.delta, of, claim) + wording.side_by_side(self.shared_by)
        if self.per_request is not None:
            said = f"{said} {self.per_request.sentence(of.requests)}"
        return said if self.sample is None else f"{said} {self.sample.sentence()}"

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return "Nothing cheaper is known to be as good as the reference, so that one answers."
        of_hundred = wording.of_hundred(abs(self.epsilon))
        fewer = f"at most {of_hundred} fewer" if self.epsilon > 0 else f"over {of_hundred} more"
        if not self.epsilon:
            fewer = "more"
        return (
            f"Of 100 {wording.units(of)} {fewer} are answered right than by {self._whose} alone, "
            f"{wording.how_sure(self.delta)}."
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
        return certify(
            evidence,
            self.epsilon,
            self.delta,
            **of.about,
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
    point = parity_point(paired, epsilon, exact_level(delta, "delta") / paired.candidates)
    return Certificate(
        promise=ParityPromise(
            epsilon=exact_margin(epsilon),
            delta=exact_level(delta, "delta"),
            point=point,
            points=paired.correct.shape[1],
            reference=paired.role,
            sample=Drawn.of(paired.sample),
            shared_by=paired.candidates if paired.candidates > 1 else None,
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


def parity_point(paired: Paired, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest operating point proved to lose less than epsilon against the reference.

    With confidence 1 - delta over the draw of independent questions its accuracy is above the
    reference's minus epsilon. Operating points are tested from the dearest down until one fails, so
    the order must not come from these questions.

    Returns:
        Its index; None where nothing is proved: use the reference model, which needs no proof.

    Raises:
        CalibrationError: epsilon outside (-1, 1), or delta outside (0, 1).

    >>> right = np.ones((200, 2), bool)
    >>> cost = np.tile([10, 90], (200, 1))
    >>> parity_point(Paired(cost, right, right[:, 0]), 0.02, 0.1)
    0
    """
    p_values = parity_p_values(paired, epsilon)
    limit = exact_level(delta, "delta")
    return cheapest_proven(p_values, limit, paired.cost_nano, paired.reference_nano)


def parity_p_values(paired: Paired, epsilon: Level) -> FloatArray:
    """Return the p-value of each operating point's losing epsilon or more, [G].

    Exact; of a sample, by bets that may be looked at after every grade; by bets as well where
    questions count differently; per request, by a bet on each question.
    """
    margin, n = float(exact_margin(epsilon)), len(paired.reference)
    reference = paired.reference[:, None]
    loss = reference.astype(np.float64) - paired.correct
    if paired.sample is not None:
        return sampled_p_values(loss, np.ones_like(paired.correct), paired.sample, margin)
    if paired.weights is not None:
        return weighted_p_values(loss, paired.weights, margin)
    if paired.clusters is not None:
        return clustered_p_values(loss, paired.clusters, margin)
    lost = (reference & ~paired.correct).sum(axis=0)
    won = (~reference & paired.correct).sum(axis=0)
    pairs = zip(lost, won, strict=True)
    return np.array([loss_p_value(int(minus), int(plus), n, margin) for minus, plus in pairs])
