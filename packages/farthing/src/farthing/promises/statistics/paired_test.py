"""An exact test of how much accuracy is lost against a reference on the same questions.

On each question an operating point loses (the reference is right and it is not), wins (the other
way round) or neither. Their chances are b, c and 1 - b - c, and the loss of accuracy is b - c. The
score statistic orders the outcomes; the p-value of one is the largest chance of those that are as
good over all (b, c) with b - c >= epsilon and b + c in a confidence interval, plus the chance that
b + c is outside. That interval depends on the outcome, so of these p-values the largest is taken
over fewer losses and more wins.
"""

from functools import cache
from math import ceil, floor, isqrt, sqrt

import numpy as np

from farthing.promises.certificate import FloatArray, IntArray
from farthing.promises.statistics.binomial import binomial_interval

OUTSIDE = 0.001
"""The chance that b + c is outside its interval, which every p-value contains."""
_CELLS = 48
_SPLIT = 4
_FINE = 250
"""Cells of the square root of b + c, for the square root of a question."""
SLACK = 0.01
"""How far a p-value may be above the supremum, relatively."""
_TINY = 1e-300
_LEFT_OUT = 1e-12
"""The chance of what is not added up; it is added as a whole."""


@cache
def loss_p_value(lost: int, won: int, n: int, epsilon: float) -> float:
    """Return the p-value of the hypothesis that accuracy falls by epsilon or more.

    It is exact and unconditional: for every b and c with b - c >= epsilon, Pr[p <= u] <= u. It is
    monotone: one more loss or one less win never lowers it, so that questions which nobody graded
    may count at worst, whoever chose them. The supremum over b + c is bounded on the cells of a
    grid that depends on n alone; the bound is about 1 % above the supremum. It is never below
    0.00101, of which 0.001 is the chance that b + c is outside its interval.

    Args:
        lost: questions that the reference alone has right.
        won: questions that the operating point alone has right.
        n: questions.
        epsilon: the loss that is to be ruled out, in (-1, 1); 0 and below rule out that accuracy
            does not rise, or rises by less.

    Source: the score statistic of Tango 1998 with b + c estimated by its share; maximised as in
    Hsueh, Liu and Chen 2001, over an interval as in Berger and Boos 1994.

    >>> [round(loss_p_value(lost, 9, 300, 0.02), 3) for lost in (5, 8, 12)]
    [0.009, 0.06, 0.288]
    """
    own, stride = _cells(lost + won, n), 1 + isqrt(lost + won) // 4
    best = _highest(_monotone(lost, won, n, epsilon), own, epsilon, OUTSIDE * SLACK)
    # A cell outside the interval is in that of other outcomes as well. Regions only shrink on the
    # way to them, so the nearest one decides; now and then all that is left is compared at once.
    fewer = [(left, won) for left in range(lost - 1, -1, -1)]
    more = [(lost, right) for right in range(won + 1, n - lost + 1)]
    for side, outcomes in enumerate((fewer, more)):
        edge, limit = own[side], _cells((won, n)[side], n)[side]
        for step, outcome in enumerate(outcomes, start=1):
            reach, end = _monotone(*outcome, n, epsilon), _cells(sum(outcome), n)[side]
            if not step % stride and _highest(reach, (edge, limit), epsilon, best) == best:
                break
            best, edge = _highest(reach, (edge, end), epsilon, best), end
    return min(1.0, best + OUTSIDE)


@cache
def first_loss_p_value(lost: int, won: int, n: int, epsilon: float) -> float:
    """Return the p-value of the first rule, to check its certificates; it is not monotone."""
    reach = _region(float(_score(lost, won, n, epsilon)), n, epsilon)
    least, most = binomial_interval(lost + won, n, OUTSIDE)
    edges = np.linspace(max(least, abs(epsilon)), max(most, abs(epsilon)), _CELLS + 1)
    low, high = edges[:-1], edges[1:]
    best = 0.0
    while low.size:
        middle = (low + high) / 2
        best = max(best, float(_chance(reach, middle, middle, epsilon).max()))
        alive = _chance(reach, low, high, epsilon) > best * (1 + SLACK)
        edges = np.linspace(low[alive], high[alive], _SPLIT + 1)
        low, high = edges[:-1].ravel(), edges[1:].ravel()
    return min(1.0, best * (1 + SLACK) + OUTSIDE)


@cache
def _cells(discordant: int, n: int) -> tuple[int, int]:
    """Return the cells that the interval of b + c is in, the first and the one after the last."""
    least, most = binomial_interval(discordant, n, OUTSIDE)
    cells = ceil(_FINE * sqrt(n))
    return floor(sqrt(least) * cells), ceil(sqrt(most) * cells)


def _highest(reach: IntArray, cells: tuple[int, int], epsilon: float, best: float) -> float:
    """Return the largest bound of a region's chance on any of the cells, or `best` if that is more.

    More wins and fewer losses make a region likelier, so the corner of one or more cells bounds it.
    """
    (first, last), n = sorted(cells), len(reach) - 1

    def bound(starts: IntArray, size: int) -> FloatArray:
        ends = np.stack([starts, np.minimum(starts + size, last)]) / ceil(_FINE * sqrt(n))
        some = np.array_split(np.maximum(ends**2, abs(epsilon)), len(starts) // _CELLS + 1, axis=1)
        return np.concatenate([_chance(reach, low, high, epsilon) for low, high in some])

    size = 1
    while last - first > _CELLS * size:
        size *= _SPLIT
    starts = np.arange(first, last, size)
    while starts.size:
        bounds = bound(starts, size)
        if size == 1:
            return max(best, float(bounds.max()))
        likely = starts[bounds.argmax()] + size // 2
        best = max(best, float(bound(np.array([min(likely, last - 1)]), 1)[0]))
        starts, size = starts[bounds > best], size // _SPLIT
        starts = (starts[:, None] + size * np.arange(_SPLIT)).ravel()
        starts = starts[starts < last]
    return best


def _score(lost: IntArray | int, won: IntArray | int, n: int, epsilon: float) -> FloatArray:
    spread = np.maximum(_spread(np.asarray(lost + won), n, epsilon), _TINY)
    return np.asarray((lost - won - n * epsilon) / spread)


def _spread(discordant: IntArray, n: int, epsilon: float) -> FloatArray:
    return np.asarray(np.sqrt(n * (np.maximum(discordant / n, abs(epsilon)) - epsilon**2)))


def _monotone(lost: int, won: int, n: int, epsilon: float) -> IntArray:
    """Return the region of the largest score over fewer losses and more wins."""
    fewer = _score(np.arange(lost + 1), won, n, epsilon)
    more = _score(lost, np.arange(won, n - lost + 1), n, epsilon)
    return _region(float(max(fewer.max(), more.max())), n, epsilon)


def _region(z: float, n: int, epsilon: float) -> IntArray:
    """Return for each number of discordant questions, [n + 1], how many losses score z or less.

    -1: none. Fewer losses or more wins never leave the region: it stays or rises by one.
    """
    k = np.arange(n + 1)
    spread = _spread(k, n, epsilon)
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
