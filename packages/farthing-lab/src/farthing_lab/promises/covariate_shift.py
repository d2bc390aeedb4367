"""Is a shift only one of what was seen? A test of what weighted calibration takes for granted."""

from dataclasses import dataclass

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray

_AT_ONCE = 4_000_000
"""Labels drawn at a time, at most."""
_ROUNDING = 1e-9
"""A column that varies by less than this share of its size is constant."""


@dataclass(frozen=True)
class Observed:
    """Questions of one mix: what the weights were not made of, and the weights."""

    statistics: FloatArray
    """[n, K] numbers that are known of a question without grading."""
    weights: FloatArray
    """[n] likelihood ratio of target to calibration mix, up to a common factor; above 0."""

    def __post_init__(self) -> None:
        if self.statistics.ndim != 2 or self.weights.shape != self.statistics.shape[:1]:
            raise CalibrationError(
                f"statistics of shape {self.statistics.shape} do not fit weights of shape "
                f"{self.weights.shape}; give a row and a weight for each question"
            )
        if not len(self.weights) or not np.isfinite(self.statistics).all():
            raise CalibrationError("both samples need at least one question and finite statistics")
        if not np.isfinite(self.weights).all() or (self.weights <= 0).any():
            raise CalibrationError("weights must be finite and above 0")


def covariate_shift_p_values(
    old: Observed, new: Observed, rng: np.random.Generator, draws: int = 999
) -> FloatArray:
    """Return p-values, [K], of the hypothesis that weights account for all of a shift.

    If nothing but what the weights are made of has changed, then given that and the statistics,
    each question is one of the target with odds proportional to its weight. So the labels are drawn
    anew with these odds, as many of the target as there are, and each statistic's sum over the
    target is compared with its sums in the draws, in their standard deviations. Each p-value is of
    the largest such distance of any statistic (Westfall and Young), so that under the hypothesis
    the smallest of them is at most p with probability at most p: exactly so for the true weights,
    for any sizes, ties and dependence among the statistics.

    Args:
        old: the calibration questions.
        new: questions of the target mix, with the same statistics.
        rng: draws the labels.
        draws: how often; no p-value is below 1 / (draws + 1).

    Raises:
        CalibrationError: the samples have different statistics.

    Source: Candes et al. 2018, section 4 (conditional randomisation).

    >>> rng = np.random.default_rng(0)
    >>> old = Observed(rng.normal(0, 1, (100, 2)), np.ones(100))
    >>> new = Observed(rng.normal([0, 1], 1, (100, 2)), np.ones(100))
    >>> unchanged, changed = covariate_shift_p_values(old, new, rng)
    >>> bool(unchanged > 0.1), float(changed)
    (True, 0.001)
    """
    if old.statistics.shape[1] != new.statistics.shape[1]:
        raise CalibrationError("both samples need the same statistics")
    values = np.concatenate([old.statistics, new.statistics])
    varies = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    centred = np.where(varies, values - values.mean(axis=0), 0.0)
    is_new = np.arange(len(values)) >= len(old.weights)
    others = _labels(np.concatenate([old.weights, new.weights]), len(new.weights), rng, draws)
    sums = np.concatenate([is_new[None], others]).astype(np.float64) @ centred
    # The observed labels are among those that mean and spread are of: no row stands out.
    apart = np.abs(sums - sums.mean(axis=0))
    spread = sums.std(axis=0)
    apart /= np.where(spread > _ROUNDING * np.abs(centred).max(axis=0), spread, np.inf)
    farthest = apart.max(axis=1, initial=0.0)
    p_values: FloatArray = (farthest[:, None] >= apart[0] * (1 - 1e-12)).mean(axis=0)
    return p_values


def _labels(weights: FloatArray, m: int, rng: np.random.Generator, draws: int) -> BoolArray:
    """Draw who is of the target, [draws, n]: independent with odds like weights, given m in all.

    Drawn until m are; their expected number is m, so that is the likeliest number to come up.
    """
    chance = _chances(np.log(weights), m)
    needed = 3 * draws * np.sqrt(1 + (chance * (1 - chance)).sum())
    rows = max(min(_AT_ONCE // len(weights), int(needed)), 1)
    found: list[BoolArray] = []
    while sum(map(len, found)) < draws:
        drawn = rng.random((rows, len(weights))) < chance
        found.append(drawn[drawn.sum(axis=1) == m])
    return np.concatenate(found)[:draws]


def _chances(log_weights: FloatArray, m: int) -> FloatArray:
    """Return the chance of each question to be of the target, [n]: m in sum, odds like weights."""
    low, high = -log_weights.max() - 50, -log_weights.min() + 50
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _logistic(log_weights + middle).sum() > m else (middle, high)
    return _logistic(log_weights + high)


def _logistic(values: FloatArray) -> FloatArray:
    chance: FloatArray = np.exp(-np.logaddexp(0, -values))
    return chance
