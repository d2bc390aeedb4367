"""What a proof is likely to come to: the expected cost after it, from questions that prove nothing.

A method is chosen before its promise is proved. What counts then is not what it costs where it
would do, but what it will cost once so many questions have proved a point of it, or none. The
questions at hand are drawn anew, in the Bayesian bootstrap, which says what may be true of new
ones; as many as will prove are drawn of that, and the proof is run on them.

Source: the Bayesian bootstrap, Rubin 1981.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, sqrt
from statistics import NormalDist

import numpy as np

from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.statistics.paired_test import OUTSIDE, SLACK, loss_p_value

DRAWS = 100
"""Times that the questions are drawn anew."""
EXACT = 300
"""Questions up to which the exact test says how many losses it allows."""

Allowed = Callable[[int], int]
"""The number of wins to the most losses that a proof allows; -1: none."""


@dataclass(frozen=True)
class Prospect:
    """A row of operating points on questions that none of them was fitted to."""

    cost: FloatArray
    """[n, G] of each point, in any unit, from the cheapest."""
    lost: BoolArray
    """[n, G] whether the point loses the question against the reference."""
    won: BoolArray
    """[n, G] whether it wins it."""
    fallback: FloatArray
    """[n] cost of what is done where nothing cheaper is proved."""


def parity_allows(n: int, epsilon: float, delta: float) -> Allowed:
    """Return how many losses prove parity on n questions, by the number of wins.

    It is what the exact test allows up to 300 questions. That takes seconds a number where there
    are thousands; beyond, it is what the score test allows, which is at most one loss more or less.

    >>> allows = parity_allows(300, 0.02, 0.1)
    >>> allows(9), loss_p_value(8, 9, 300, 0.02) <= 0.1 < loss_p_value(9, 9, 300, 0.02)
    (8, True)
    """

    def proves(lost: int, won: int) -> bool:
        return lost + won <= n and loss_p_value(lost, won, n, epsilon) <= delta

    def allowed(won: int) -> int:
        lost = _score_allows(won, n, epsilon, delta)
        if n > EXACT:
            return lost
        while lost >= 0 and not proves(lost, won):
            lost -= 1
        while proves(lost + 1, won):
            lost += 1
        return lost

    return allowed


def _score_allows(won: int, n: int, epsilon: float, delta: float) -> int:
    """Solve (lost - won - n epsilon) / spread = z for the losses, rounded down.

    The spread is sqrt(n (max(k / n, |epsilon|) - epsilon^2)) at k = lost + won, that of
    `loss_p_value`; z is the level's quantile, of which the exact test keeps a little for itself.
    """
    level = (delta - OUTSIDE) / (1 + SLACK)
    if level <= 0:
        return -1
    z, edge = NormalDist().inv_cdf(level), abs(epsilon)
    lost = won + n * epsilon + z * sqrt(n * edge * (1 - edge))
    if lost + won > n * edge:
        root = (z + sqrt(z * z + 4 * (2 * won + n * epsilon * (1 - epsilon)))) / 2
        lost = root * root - won + n * epsilon**2
    return max(min(floor(lost + 1e-9), n - won), -1)


def agreement_allows(n: int, epsilon: float, delta: float) -> Allowed:
    """Return how many differing answers prove agreement on n questions; wins do not count.

    >>> agreement_allows(100, 0.05, 0.1)(7)
    1
    """
    differ = -1
    while differ < n and binomial_cdf(differ + 1, n, epsilon) <= delta:
        differ += 1
    return lambda _: differ


def expected_cost(
    prospect: Prospect, n: int, allowed: Allowed, rng: np.random.Generator
) -> FloatArray:
    """Return what a question costs after the proof, in expectation, by where testing begins, [G].

    Testing goes from where it begins to cheaper points, until one is not proved.

    Args:
        prospect: the points on questions at hand.
        n: questions that will prove.
        allowed: the most losses that prove a point, by its wins.
        rng: the only source of randomness.

    >>> lost = np.zeros((100, 2), dtype=bool)
    >>> lost[:50, 0] = True                     # the cheap point loses every other question
    >>> rows = Prospect(np.tile([1.0, 2.0], (100, 1)), lost, ~lost & False, np.full(100, 9.0))
    >>> expected_cost(rows, 500, agreement_allows(500, 0.05, 0.1), np.random.default_rng(0))
    array([9., 2.])
    """
    weight, count = _draws(len(prospect.cost), n, rng)
    lost, won = _counted(count, prospect.lost), _counted(count, prospect.won)
    most = np.array([allowed(wins) for wins in range(int(won.max(initial=0)) + 1)])
    proved = lost <= most[won]
    cost, fallback = weight @ prospect.cost, (weight @ prospect.fallback)[:, None]
    best = np.full((len(weight), 1), np.inf)
    found = np.empty_like(cost)
    for point in range(cost.shape[1]):
        cheaper = np.minimum(cost[:, point : point + 1], best)
        best = np.where(proved[:, point : point + 1], cheaper, np.inf)
        found[:, point] = np.minimum(best, fallback)[:, 0]
    expected: FloatArray = found.mean(axis=0)
    return expected


def _draws(s: int, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Return what may be true of s questions, [B, s], and how often n new ones are each, [B, s]."""
    weight = rng.dirichlet(np.ones(s), size=DRAWS)
    return weight, rng.multinomial(n, weight)


def _counted(count: IntArray, marked: BoolArray) -> IntArray:
    found: IntArray = np.rint(count.astype(np.float64) @ marked.astype(np.float64)).astype(np.int64)
    return found
