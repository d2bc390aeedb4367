"""Is one policy really cheaper? Paired differences over splits, with an interval."""

import math

import numpy as np

from farthing.promises.statistics.beta import beta_quantile
from farthing.traces.arrays import FloatArray, IntArray


def ratio_interval(
    ours: IntArray | FloatArray, theirs: IntArray | FloatArray, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of mean(ours) / mean(theirs), of the same questions.

    It holds the ratios r at which the paired t-test does not reject that ours - r theirs has mean
    0: Fieller's theorem. Its level is as near as means of so many questions are to normal.

    Args:
        ours: [n] costs of independent draws; of requests, of which some ask the same, their sum
            for each question (`Clusters.sums`).
        theirs: [n] costs, not all 0.
        level: probability that the interval is to hold the true ratio with.

    Returns:
        None of one question, or where the mean of theirs may well be 0: any ratio is possible.

    Source: Fieller 1954.

    >>> ratio_interval(np.array([1, 1, 1, 1]), np.array([2, 2, 2, 2]))
    (0.5, 0.5)
    >>> low, high = ratio_interval(np.array([1, 2, 1, 2]), np.array([4, 4, 4, 4]))
    >>> round(low, 3), round(high, 3)
    (0.145, 0.605)
    """
    n = len(ours)
    if n < 2:
        return None
    x, y = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    scale = y.mean()
    x, y = x / scale, y / scale
    spread = t_quantile((1 + level) / 2, n - 1) ** 2 / n * np.cov(x, y)
    a, b, c = 1 - spread[1, 1], x.mean() - spread[0, 1], x.mean() ** 2 - spread[0, 0]
    if a <= 0:
        return None
    half = math.sqrt(max(b * b - a * c, 0.0))
    return float((b - half) / a), float((b + half) / a)


def proved_positive(difference: IntArray | FloatArray, level: float) -> bool:
    """Return whether a one-sided t-test rejects that the mean difference is 0 or less.

    >>> proved_positive(np.array([3, 4, 5, 4]), 0.05), proved_positive(np.array([3, -4, 5]), 0.05)
    (True, False)
    """
    n = len(difference)
    if n < 2:
        return False
    error = float(difference.std(ddof=1)) / math.sqrt(n)
    return float(difference.mean()) > t_quantile(1 - level, n - 1) * error


def t_quantile(probability: float, degrees: int) -> float:
    """Return x with Pr[t <= x] = probability, for Student's t and a probability above 1/2.

    It is the Beta quantile in disguise: degrees / (degrees + t^2) is Beta(degrees / 2, 1 / 2).

    >>> round(t_quantile(0.975, 99), 6)
    1.984217
    """
    x = beta_quantile(2 * (1 - probability), degrees / 2, 0.5)
    return math.sqrt(degrees * (1 / x - 1))
