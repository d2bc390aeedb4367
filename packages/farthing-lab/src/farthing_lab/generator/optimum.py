"""The cheapest policy for a generator at a given coverage, exactly.

This is the paper's protocol with lambda = 0: adding an answer to the set is free, so a policy is
a rule when to stop, and all answers seen are returned. A question is covered when a right answer
appeared before the stop, or never appears. For every price mu of coverage, backward induction
maximises mu E[coverage] - E[cost]. A history goes on exactly when mu exceeds its own price, the
least E[cost] / E[gain] that a rule for stopping later can offer from there; so every price's
optimum is one threshold on that index (Gittins 1979), and between two neighbouring thresholds the
frontier is the straight line of drawing lots.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.errors import InputError
from farthing.money import usd_from_nano
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import first_appearance, uncertainty_bin
from farthing_lab.generator.histories import (
    Histories,
    child_key,
    enumerate_histories,
    first_seen_next,
)

NOT_PLAYED = -1

ROUNDING = 1e-9
"""Relative difference within which two prices are equal."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """What the best policies cost and cover, and how they decide."""

    cost_nano: FloatArray
    """[V] mean cost of a question at the corners of the frontier, ascending, in nano-dollars."""
    coverage: FloatArray
    """[V] coverage at the corners: the first one stops after round 1, the last one covers all."""
    histories: tuple[Histories, ...]
    """The histories after rounds 1..T-1, after which there is something to decide."""
    price: tuple[FloatArray, ...]
    """For each of `histories`, [H] the price in nano-dollars per unit of coverage from which going
    on pays; +inf where nothing is left to gain."""


@dataclass(frozen=True, eq=False)
class _Stretch:
    """What going on buys, in pieces: each is bought whole, at one price."""

    owner: IntArray
    """[P] index of the history that the piece follows."""
    gain: FloatArray
    """[P] coverage gained."""
    cost: FloatArray
    """[P] money spent."""

    @property
    def price(self) -> FloatArray:
        """[P] cost per unit of coverage; +inf where there is no gain."""
        price: FloatArray = np.full(len(self.gain), np.inf)
        return np.divide(self.cost, self.gain, out=price, where=self.gain > 0)


def frontier(config: GeneratorConfig) -> list[tuple[float, float]]:
    """Return (cost in USD a question, coverage) of the optimal frontier's corners, ascending."""
    best = solve(config)
    return [
        (usd_from_nano(cost), float(covered))
        for cost, covered in zip(best.cost_nano, best.coverage, strict=True)
    ]


def optimal_cost(config: GeneratorConfig, coverage: float) -> float:
    """Return the least mean cost of a question, in USD, of any policy with this coverage."""
    best = solve(config)
    return usd_from_nano(float(np.interp(coverage, best.coverage, best.cost_nano)))


def optimal_scores(
    config: GeneratorConfig, traces: TraceArrays, lot: FloatArray | None = None
) -> FloatArray:
    """Score the generator's own questions so that thresholds replay the optimal policies.

    Questions with the same history have the same score. A lot for each question tells them apart
    and leaves the order of histories as it is: a threshold among them then draws lots, as the
    frontier does between its corners.

    Args:
        config: what made the questions.
        traces: the questions.
        lot: [n] in (0, 1], drawn without a look at the question; none: equal scores stay equal.

    Returns:
        [n, T, 3] base and guide 1 (all answers seen are returned); `next` scores the cheapest
        round's price over the history's own, in [0, 1]: the coverage gained for that money; 0
        after rounds that were not played.
    """
    best = solve(config)
    worth = [config.round_cost_nano.min() / price for price in best.price]
    every = np.concatenate([np.zeros(1), *worth])
    scores = np.ones((*traces.answer.shape[:2], 3))
    scores[:, :, 2] = 0.0
    for t, index in enumerate(_locate(config, best.histories, traces)):
        score = np.where(index == NOT_PLAYED, 0.0, worth[t][index])
        scores[:, t, 2] = score if lot is None else _apart(score, every, lot)
    return scores


def _apart(score: FloatArray, every: FloatArray, lot: FloatArray) -> FloatArray:
    """Lower each score by lot, to anywhere above the next lower one of all that there are.

    Scores that differ by rounding alone are one.
    """
    every = np.unique(every)
    last = np.append(every[1:] > every[:-1] * (1 + ROUNDING), np.ones(1, dtype=bool))
    tops = every[last]
    place = np.searchsorted(tops, score)
    below = tops[np.maximum(place - 1, 0)]
    lowered: FloatArray = below + (tops[place] - below) * lot
    return lowered


@lru_cache(maxsize=16)
def solve(config: GeneratorConfig) -> Optimum:
    """Solve for every price of coverage at once, from the last decision back to the first."""
    levels = enumerate_histories(config, config.rounds - 1)
    later = _Stretch(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    prices: list[FloatArray] = []
    for histories, round_cost in zip(levels[::-1], config.round_cost_nano[:0:-1], strict=True):
        following = _Stretch(
            np.arange(len(histories)),
            first_seen_next(config, histories),
            histories.probability * round_cost,
        )
        bought, left = _cheapest(following, later)
        prices.append(bought.price)
        later = _handed_up(bought, left, histories.parent)
    cost, coverage = _corners(later, float(config.round_cost_nano[0]))
    return Optimum(cost, coverage, tuple(levels), tuple(prices[::-1]))


def _cheapest(following: _Stretch, later: _Stretch) -> tuple[_Stretch, _Stretch]:
    """Join to each history's next round those later pieces that lower its cost per gain.

    The pieces cheaper than the price so far are taken and the price is computed anew, until none
    leaves: Newton's steps on a convex, piecewise linear function, which end at its exact root.
    """
    joined = following
    while True:
        taken = later.price < joined.price[later.owner]
        owner, size = later.owner[taken], len(following.owner)
        better = _Stretch(
            following.owner,
            following.gain + np.bincount(owner, later.gain[taken], size),
            following.cost + np.bincount(owner, later.cost[taken], size),
        )
        if np.array_equal(better.gain, joined.gain):
            rest = _Stretch(later.owner[~taken], later.gain[~taken], later.cost[~taken])
            return joined, rest
        joined = better


def _handed_up(bought: _Stretch, left: _Stretch, parent: IntArray) -> _Stretch:
    """Return all pieces as belonging to the histories one round earlier; drop those of no gain."""
    owner = np.concatenate([bought.owner, left.owner])
    gain, cost = np.concatenate([bought.gain, left.gain]), np.concatenate([bought.cost, left.cost])
    useful = gain > 0
    return _Stretch(parent[owner[useful]], gain[useful], cost[useful])


def _corners(pieces: _Stretch, first_round: float) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(pieces.price, kind="stable")
    gained = np.concatenate([[0.0], pieces.gain[order].cumsum()])
    spent = np.concatenate([[0.0], pieces.cost[order].cumsum()])
    return first_round + spent, 1 - gained[-1] + gained


def _locate(
    config: GeneratorConfig, histories: tuple[Histories, ...], traces: TraceArrays
) -> list[IntArray]:
    """Return, for each round before the last, [n] the index of every question's history.

    `NOT_PLAYED` where the round was not played yet.
    """
    if traces.answer.shape[1:] != (config.rounds, 2) or "uncertainty" not in traces.signals:
        raise InputError(
            f"these traces are not the generator's: it gives {config.rounds} rounds of two answers "
            "and an uncertainty; generate them with the same settings"
        )
    labels = first_appearance(traces.answer.astype(np.int64))
    uncertainty = traces.signals["uncertainty"][:, :, 1]
    played = np.logical_and.accumulate((traces.answer != NO_ANSWER).any(axis=2), axis=1)
    index = np.zeros(len(traces), dtype=np.int64)
    found = []
    for t, level in enumerate(histories):
        rows = np.flatnonzero(played[:, t])
        drawn = uncertainty_bin(config, uncertainty[rows, t])
        key = child_key(config, index[rows], labels[rows, t, 0], labels[rows, t, 1], drawn)
        place = np.minimum(np.searchsorted(level.key, key), len(level) - 1)
        if not np.array_equal(level.key[place], key):
            raise InputError(
                f"these traces show in round {t + 1} what this generator cannot produce; "
                "generate them with the same settings"
            )
        index = np.full(len(traces), NOT_PLAYED)
        index[rows] = place
        found.append(index)
    return found
