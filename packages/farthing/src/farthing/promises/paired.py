"""Operating points held against a reference model on the same questions: the test of parity."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level, exact_margin
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.clusters import Clusters, clustered_p_values
from farthing.promises.statistics.fixed_sequence import cheapest, check_shapes, proven
from farthing.promises.statistics.paired_test import first_loss_p_value, loss_p_value
from farthing.promises.statistics.sampled_mean import Sample, sampled_p_values, weighted_p_values


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
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side this one has: where all shares are at
    most 1 together, the promises of all of them hold together, and any may be chosen."""
    clusters: Clusters | None = None
    """Of a promise per request: which rows ask the same; None: each row is another question."""
    rule: int | None = None
    """The version of the rule that proves; None: the newest."""

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

    @property
    def exact(self) -> bool:
        """Whether every question counts once, so that losses and wins are all that matters."""
        return self.sample is None and self.weights is None and self.clusters is None

    def cheaper(self) -> Self | None:
        """Return the points that cost less than the reference alone; None: there are none."""
        if self.reference_nano is None or self.sample is not None:
            return None
        less = self.cost_nano.sum(axis=0) < self.reference_nano.sum()
        if not less.any():
            return None
        kappas = None if self.kappas is None else self.kappas[less]
        cost, correct = self.cost_nano[:, less], self.correct[:, less]
        return replace(self, cost_nano=cost, correct=correct, kappas=kappas)


def parity_point(paired: Paired, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest operating point proved to lose less than epsilon against the reference.

    With confidence 1 - delta over the draw of independent questions its accuracy is above the
    reference's minus epsilon. Operating points are tested from the dearest down until one fails, so
    the order must not come from these questions.

    Returns:
        Its index; None where nothing is proved: use the reference model, which needs no proof.

    >>> right = np.ones((200, 2), bool)
    >>> cost = np.tile([10, 90], (200, 1))
    >>> parity_point(Paired(cost, right, right[:, 0]), 0.02, 0.1)
    0
    """
    found = np.flatnonzero(parity_proved(paired, epsilon, delta))
    return cheapest(found, paired.cost_nano, paired.reference_nano)


def parity_proved(paired: Paired, epsilon: Level, delta: Level) -> BoolArray:
    """Return which operating points are proved, tested from the dearest down until one fails, [G].

    The exact test takes its time where there are many questions, so that none is made in vain.
    """
    margin, limit = float(exact_margin(epsilon)), float(exact_level(delta, "delta"))
    found = np.zeros(paired.correct.shape[1], dtype=bool)
    if paired.exact:
        (lost, won), test = _counts(paired), _test(paired)
        for point in range(len(found) - 1, -1, -1):
            n = len(paired.reference)
            if test(int(lost[point]), int(won[point]), n, margin) > limit:
                break
            found[point] = True
        return found
    return proven(parity_p_values(paired, epsilon)[::-1], limit)[::-1]


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
    pairs, test = zip(*_counts(paired), strict=True), _test(paired)
    return np.array([test(int(minus), int(plus), n, margin) for minus, plus in pairs])


def _test(paired: Paired) -> Callable[[int, int, int, float], float]:
    return first_loss_p_value if paired.rule == 1 else loss_p_value


def _counts(paired: Paired) -> tuple[IntArray, IntArray]:
    """Return how many questions each operating point loses, and how many it wins, [G] both."""
    reference = paired.reference[:, None]
    lost = (reference & ~paired.correct).sum(axis=0)
    return lost, (~reference & paired.correct).sum(axis=0)
