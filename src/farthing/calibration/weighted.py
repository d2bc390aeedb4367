"""Weighted split conformal: calibrate on one mix of questions for another."""

from dataclasses import dataclass

import numpy as np

from farthing.calibration.base import FloatArray, IntArray, Level, Threshold, as_scores, exact_level
from farthing.errors import CalibrationError


@dataclass(frozen=True)
class Weighted:
    """Critical thresholds, and how much likelier each question is where the promise applies."""

    critical: FloatArray
    """[n] kappa* of held-out questions; inf for an unsolvable one."""
    weights: FloatArray
    """[n] likelihood ratio of target to calibration mix, up to a common factor."""
    largest: float
    """Largest weight of a new question that the promise covers, in the same units."""

    def __post_init__(self) -> None:
        as_scores(self.critical)
        if self.weights.shape != self.critical.shape:
            raise CalibrationError(
                f"{len(self.critical)} scores but weights of shape {self.weights.shape}"
            )
        all_weights = np.append(self.weights, self.largest)
        if not np.isfinite(all_weights).all() or (all_weights < 0).any() or self.largest == 0:
            raise CalibrationError("weights must be finite and >= 0, and the largest above 0")


def weighted_threshold(sample: Weighted, alpha: Level) -> Threshold:
    """Return one threshold that is safe for every new question of weight up to `largest`.

    Such a question is covered with probability at least 1 - alpha over the target mix: the
    threshold of `weighted_thresholds` falls with the weight of the new question.

    Raises:
        CalibrationError: alpha outside (0, 1).

    >>> critical = np.array([0.9, 0.2, 0.5, 0.3, 0.7, 0.4, 0.8, 0.6, 1.0])
    >>> weighted_threshold(Weighted(critical, np.ones(9), 1.0), 0.2)
    Threshold(kappa=0.3, k=2, n=9)
    """
    k = int(_ranks(sample, np.array([sample.largest]), alpha)[0])
    kappa = float(np.sort(sample.critical)[k - 1]) if k else 0.0
    return Threshold(kappa, k, len(sample.critical))


def weighted_thresholds(sample: Weighted, new_weights: FloatArray, alpha: Level) -> FloatArray:
    """Return the threshold of each new question by its own weight, [m].

    kappa is the k-th smallest critical threshold for the largest k at which those before it and the
    new question together weigh at most alpha of all; 0 (everything) where there is none. With equal
    weights it is that of split conformal.

    Args:
        sample: the calibration questions.
        new_weights: [m] likelihood ratios of the new questions.
        alpha: miscoverage, in (0, 1).

    Source: Tibshirani et al. 2019, corollary 1.
    """
    ranks = _ranks(sample, np.asarray(new_weights, dtype=np.float64), alpha)
    ordered = np.concatenate([[0.0], np.sort(sample.critical)])
    found: FloatArray = ordered[ranks]
    return found


def effective_size(weights: FloatArray) -> float:
    """Return the number of equally weighted questions that are worth as much, (sum w)^2 / sum w^2.

    Source: Kish 1965.

    >>> effective_size(np.ones(200)), effective_size(np.array([1.0, 0, 0, 0]))
    (200.0, 1.0)
    """
    squares = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / squares if squares else 0.0


def _ranks(sample: Weighted, new: FloatArray, alpha: Level) -> IntArray:
    level = exact_level(alpha)
    order = np.argsort(sample.critical, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(sample.weights[order])])
    # Multiplied out, so that whole weights are compared without rounding.
    bearable = level.numerator * (before[-1] + new) - level.denominator * new
    ranks: IntArray = np.searchsorted(level.denominator * before[:-1], bearable, side="right")
    return ranks
