"""Tests and bounds for the mean of bounded numbers, by betting against it."""

import math

import numpy as np

from farthing.promises.certificate import FloatArray

_MOST = 0.75
_STEPS = 40


def mean_p_value(values: FloatArray, mean: float, delta: float) -> float:
    """Return the p-value of the hypothesis that the expectation is `mean` or more.

    A gambler who bets on values below `mean` cannot expect to win where the hypothesis holds; the
    p-value is one over the largest fortune on the way. Valid for any independent values in [0, 1]
    with that expectation. Rows are first shuffled by a permutation that is always the same, so that
    a file sorted by subject does no harm.

    Args:
        values: [n] in [0, 1].
        mean: the hypothesis; 1 is refuted by any smaller value, and more than 1 needs no refuting.
        delta: the level that bets are sized for; any p-value is valid, this one is strongest there.

    Source: Waudby-Smith and Ramdas 2024, section 4.1 and equation 26 (predictable plug-in bets).

    >>> cheap = np.full(100, 0.1)
    >>> mean_p_value(cheap, 0.2, 0.05) < 0.05 < mean_p_value(cheap, 0.1, 0.05)
    True
    """
    if mean >= 1:  # the largest mean there is, which only values that are all 1 do not refute
        return float(mean == 1 and bool((values >= 1).all()))
    if mean <= 0 or not len(values):
        return 1.0
    x = np.asarray(values, dtype=np.float64)[np.random.default_rng(0).permutation(len(values))]
    bets = np.minimum(_bets(x, delta), _MOST / (1 - mean))
    fortune = np.cumsum(np.log1p(-bets * (x - mean)))
    return float(min(1.0, math.exp(-max(0.0, fortune.max()))))


def mean_upper(values: FloatArray, delta: float) -> float:
    """Return an upper bound of the expectation of values in [0, 1], at confidence 1 - delta.

    The smallest mean that is refuted from there on, by bisection: the fortune grows with the mean.

    >>> round(mean_upper(np.full(400, 0.1), 0.05), 3) < 0.13
    True
    """
    low, high = float(np.mean(values)), 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if mean_p_value(values, middle, delta) <= delta:
            high = middle
        else:
            low = middle
    return high


def _bets(x: FloatArray, delta: float) -> FloatArray:
    """Return the size of each bet, [n], from the values before it alone."""
    n = len(x)
    t = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    spread = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    sizes: FloatArray = np.sqrt(2 * math.log(1 / delta) / (n * before))
    return sizes
