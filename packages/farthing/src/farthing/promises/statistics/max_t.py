"""Intervals that hold at once for many means of the same questions, so that one may be picked.

A figure of the point that was chosen flatters it where the same questions chose. An interval wide
enough for all points that could have been chosen does not.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from farthing.promises.certificate import FloatArray

DRAWS = 1_000
_LEAST = 1e-12


def max_t(deviations: Sequence[FloatArray], level: float, rng: np.random.Generator) -> float:
    """Return how many standard errors the farthest of many means is off at most.

    It is approximate: right for many questions, by the multiplier bootstrap, which draws a weight
    for each question and leaves the points of one question together.

    Args:
        deviations: [n, G] each: what each question adds to a mean, less that mean.
        level: the probability that any of them is farther off, in (0, 1).
        rng: draws the weights.

    Returns:
        At least what one mean alone would have, 1.96 at a level of 0.05.

    Source: Chernozhukov, Chetverikov and Kato 2013, the Gaussian multiplier bootstrap.

    >>> points = np.random.default_rng(0).normal(size=(500, 20))
    >>> found = max_t([points - points.mean(axis=0)], 0.05, np.random.default_rng(1))
    >>> 2.8 < found < 3.2                                     # 1.96 for one, 3.02 for twenty
    True
    """
    every = np.unique(np.concatenate(list(deviations), axis=1), axis=1)
    n, spread = len(every), every.std(axis=0)
    every = every[:, spread > _LEAST] / spread[spread > _LEAST]
    one = NormalDist().inv_cdf(1 - level / 2)
    if not every.size:
        return one
    drawn = rng.standard_normal((DRAWS, n)) @ every / np.sqrt(n)
    return max(one, float(np.quantile(np.abs(drawn).max(axis=1), 1 - level)))
