"""What a proof is likely to come to: the expected cost after it, from questions that prove nothing.

A method is chosen before its promise is proved. What counts then is not what it costs where it
would do, but what it will cost once so many questions have proved a point of it, or none. The
questions at hand are drawn anew, in the Bayesian bootstrap, which says what may be true of new
ones; as many as will prove are drawn of that, and the proof is run on them.

Source: the Bayesian bootstrap, Rubin 1981.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray, IntArray
from farthing.calibration.binomial import binomial_cdf
from farthing.calibration.trinomial import loss_p_value

DRAWS = 100
"""Times that the questions are drawn anew."""

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
    """[n] cost of what is done where nothing is proved."""


def parity_allows(n: int, epsilon: float, delta: float) -> Allowed:
    """Return how many losses prove parity on n questions, by the number of wins.

    >>> allows = parity_allows(300, 0.02, 0.1)
    >>> allows(9), loss_p_value(8, 9, 300, 0.02) <= 0.1 < loss_p_value(9, 9, 300, 0.02)
    (8, True)
    """
    known = [_most_losses(-1, 0, n, epsilon, delta)]

    def allowed(won: int) -> int:
        while len(known) <= won:
            known.append(_most_losses(known[-1], len(known), n, epsilon, delta))
        return known[won]

    return allowed


def _most_losses(at_least: int, won: int, n: int, epsilon: float, delta: float) -> int:
    lost = at_least
    while lost + 1 + won <= n and loss_p_value(lost + 1, won, n, epsilon) <= delta:
        lost += 1
    return lost


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
        found[:, point] = np.minimum(best, np.where(np.isinf(best), fallback, best))[:, 0]
    expected: FloatArray = found.mean(axis=0)
    return expected


def _draws(s: int, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Return what may be true of s questions, [B, s], and how often n new ones are each, [B, s]."""
    weight = rng.dirichlet(np.ones(s), size=DRAWS)
    return weight, rng.multinomial(n, weight)


def _counted(count: IntArray, marked: BoolArray) -> IntArray:
    found: IntArray = np.rint(count.astype(np.float64) @ marked.astype(np.float64)).astype(np.int64)
    return found
