"""An exact test of how much accuracy is lost against a reference on the same questions.

On each question an operating point loses (the reference is right and it is not), wins (the other
way round) or neither. Their chances are b, c and 1 - b - c, and the loss of accuracy is b - c. The
score statistic orders the outcomes; its p-value is the largest over all (b, c) with b - c >=
epsilon and b + c in a confidence interval, plus the chance that b + c is outside.
"""

from functools import cache

import numpy as np

from farthing.promises.certificate import FloatArray, IntArray
from farthing.promises.statistics.binomial import binomial_interval

OUTSIDE = 0.001
"""The chance that b + c is outside its interval, which every p-value contains."""
_CELLS = 48
_SPLIT = 4
SLACK = 0.01
"""How far a p-value may be above the supremum, relatively."""
_TINY = 1e-300
_LEFT_OUT = 1e-12
"""The chance of what is not added up; it is added as a whole."""


@cache
def loss_p_value(lost: int, won: int, n: int, epsilon: float) -> float:
    """Return the p-value of the hypothesis that accuracy falls by epsilon or more.

    It is exact and unconditional: for every b and c with b - c >= epsilon, Pr[p <= u] <= u. The
    supremum over the unknown b + c is bounded on intervals, so it holds between points of a grid
    too; the bound is at most 1 % above the supremum. It is never below 0.001, the chance that
    b + c is outside its interval.

    Args:
        lost: questions that the reference alone has right.
        won: questions that the operating point alone has right.
        n: questions.
        epsilon: the loss that is to be ruled out, in (-1, 1); 0 and below rule out that accuracy
            does not rise, or rises by less.

    Source: the score statistic of Tango 1998 with b + c estimated by its share; maximised as in
    Hsueh, Liu and Chen 2001, over an interval as in Berger and Boos 1994.

    >>> [round(loss_p_value(lost, 9, 300, 0.02), 3) for lost in (5, 8, 12)]
    [0.009, 0.06, 0.289]
    """
    reach = _region(lost, won, n, epsilon)
    least, most = binomial_interval(lost + won, n, OUTSIDE)
    edges = np.linspace(max(least, abs(epsilon)), max(most, abs(epsilon)), _CELLS + 1)
    low, high = edges[:-1], edges[1:]
    best = 0.0
    while low.size:
        middle = (low + high) / 2
        best = max(best, float(_chance(reach, middle, middle, epsilon).max()))
        # More wins and fewer losses make the region likelier, so its corner bounds the interval.
        alive = _chance(reach, low, high, epsilon) > best * (1 + SLACK)
        low, high = _refine(low[alive], high[alive])
    return min(1.0, best * (1 + SLACK) + OUTSIDE)


def _refine(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    edges = np.linspace(low, high, _SPLIT + 1)
    return edges[:-1].ravel(), edges[1:].ravel()


def _region(lost: int, won: int, n: int, epsilon: float) -> IntArray:
    """Return for each number of discordant questions, [n + 1], how many losses are as good.

    -1: none. Fewer losses or more wins never leave the region: it stays or rises by one.
    """
    k = np.arange(n + 1)
    spread = np.sqrt(n * (np.maximum(k / n, abs(epsilon)) - epsilon**2))
    z = (lost - won - n * epsilon) / max(spread[lost + won], _TINY)
    reach = np.floor((k + n * epsilon + z * spread) / 2 + 1e-9).astype(np.int64)
    reach[spread == 0] = 0 if z >= 0 else -1  # no discordant question, at epsilon 0: z is 0 there
    # The edge's slope is below 3/4 wherever it is below k, but for a large epsilon it may fall, and
    # for one below 0 rise by two. Closing it only adds outcomes, which keeps the test valid.
    closed = np.maximum.accumulate(np.clip(reach, -1, k))
    gentle: IntArray = np.maximum.accumulate((closed - k)[::-1])[::-1] + k
    return gentle


def _chance(reach: IntArray, low: FloatArray, high: FloatArray, epsilon: float) -> FloatArray:
    """Return Pr[losses <= reach[discordant]], [K], at b = (low + eps) / 2, c = (high - eps) / 2.

    Given k discordant questions the losses are Binomial(k, b / (b + c)). Along k the region's edge
    stays or rises by one, so its distribution function there is a running sum. Numbers of
    discordant questions that are all but impossible are left out, and their chance is added.
    """
    n = len(reach) - 1
    loss, win = ((low + epsilon) / 2)[:, None], ((high - epsilon) / 2)[:, None]
    share = loss / (loss + win)
    k = _likely(n, loss + win)
    rises = np.diff(reach[k])
    j = reach[k[:-1]] + rises
    possible = (j >= 0) & (j <= k[:-1])
    at_edge = _binomial(k[:-1], np.where(possible, j, 0), share) * possible
    steps = at_edge * np.where(rises == 1, 1 - share, -share)
    fewest, first = np.arange(reach[k[0]] + 1), k[:1]
    begin = np.zeros_like(loss)
    if fewest.size:
        begin = _binomial(np.broadcast_to(first, fewest.shape), fewest, share).sum(axis=1)[:, None]
    inside = np.cumsum(np.concatenate([begin, steps], axis=1), axis=1)
    chance = _binomial(np.full(k.shape, n), k, loss + win)
    total: FloatArray = (chance * inside).sum(axis=1) + _LEFT_OUT
    return total


def _likely(n: int, chance: FloatArray) -> IntArray:
    """Return which of n trials may succeed, but for a chance of `_LEFT_OUT` at most (Bernstein)."""
    room = np.log(2 / _LEFT_OUT)
    least, most = n * float(chance.min()), n * float(chance.max())
    below = least - room - np.sqrt(2 * room * least)
    above = most + room + np.sqrt(2 * room * most)
    return np.arange(max(int(below), 0), min(int(above) + 1, n) + 1)


def _binomial(trials: IntArray, successes: IntArray, chance: FloatArray) -> FloatArray:
    """Return Pr[Binomial(trials, chance) = successes], [K, m] for chances [K, 1]."""
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials.max() + 1)))])
    choose = factorial[trials] - factorial[successes] - factorial[trials - successes]
    hit, miss = np.log(np.maximum(chance, _TINY)), np.log(np.maximum(1 - chance, _TINY))
    mass: FloatArray = np.exp(choose + successes * hit + (trials - successes) * miss)
    return mass
