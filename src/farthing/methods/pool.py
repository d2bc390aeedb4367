"""What learners of pool methods share: grades, prices, and which models are worth asking.

All work on a pool of models, [n, 1, L], whose models stand in the order of their mean cost.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.errors import InputError, UnknownNameError
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

SLACK = 0.02
"""Accuracy that a first model may cost in training when first models are compared."""
SETTINGS = 60
"""Operating points, at most."""


@dataclass(frozen=True)
class PoolTables:
    """A pool without its axis of rounds."""

    right: BoolArray
    """[n, L]"""
    cost: FloatArray
    """[n, L] dollars, for estimates; what is paid is added up in nano-dollars elsewhere."""


def tables(pool: TraceArrays) -> PoolTables:
    """Drop the axis of rounds.

    Raises:
        InputError: the traces are no pool.
    """
    if pool.horizon != 1:
        raise InputError("these traces have rounds; this method chooses among a pool of models")
    return PoolTables(pool.correct[:, 0, :], pool.cost_nano[:, 0, :] / 1e9)


def strongest(train: TraceArrays, name: str | None) -> int:
    """Return the place of the model called `name`, or of the most accurate one in training.

    Raises:
        UnknownNameError: no model of the pool has this name.
    """
    if name is None:
        return int(train.correct[:, 0, :].mean(axis=0).argmax())
    if name not in train.roles:
        raise UnknownNameError("model", name, train.roles)
    return train.roles.index(name)


def possible_answers(train: TraceArrays) -> float:
    """Return K, how many answers a question may have, of which all wrong ones are as likely.

    Two wrong answers are the same with probability 1 / (K - 1): K comes from how often they were,
    half a pair counting for either outcome. It is no whole number, and 3 where no pair was seen.

    Args:
        train: questions of a pool; what was not graded, or not answered, counts for nothing.
    """
    answer = train.answer[:, 0]
    wrong = train.made[:, 0] & ~train.ungraded[:, 0] & ~train.correct[:, 0] & (answer != NO_ANSWER)
    same, pairs = 0, 0
    for one in range(1, train.n_roles):
        both = wrong[:, :one] & wrong[:, one : one + 1]
        same += int((both & (answer[:, :one] == answer[:, one : one + 1])).sum())
        pairs += int(both.sum())
    return 1.0 + (pairs + 1.0) / (same + 0.5)


def frontier(cost: FloatArray, gain: FloatArray) -> IntArray:
    """Return the settings that no other setting beats in both, from the cheapest to the dearest.

    >>> frontier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.4, 0.7, 0.7]))
    array([0, 2])
    """
    order = np.lexsort((-gain, cost))
    best = np.maximum.accumulate(np.append(-np.inf, gain[order][:-1]))
    return order[gain[order] > best]


def quantiles(score: FloatArray, most: int = SETTINGS) -> FloatArray:
    """Return thresholds between which a score falls about equally often, and one above them all."""
    if not score.size:
        return np.array([np.inf])
    inner = np.unique(np.quantile(score, np.linspace(0, 1, most - 1)))
    return np.append(inner, np.inf)


def falling(most: Fraction, number: int = SETTINGS) -> list[Fraction]:
    """Return levels evenly apart, from `most` down to 0, exactly.

    >>> falling(Fraction(1, 2), 3)
    [Fraction(1, 2), Fraction(1, 4), Fraction(0, 1)]
    """
    return [most * left / (number - 1) for left in range(number - 1, -1, -1)]


def ladder(pool: PoolTables, top: int) -> IntArray:
    """Return the models up to `top`, cheapest first, without any that a cheaper one matches."""
    cost = pool.cost.mean(axis=0)
    steps = frontier(cost, pool.right.mean(axis=0))
    return np.append(steps[(cost[steps] < cost[top]) & (steps != top)], top)


def cheapest_first(pool: PoolTables, score: FloatArray, second: int) -> int:
    """Choose the model to ask before `second`: the one that spends least near its accuracy.

    Args:
        pool: training questions.
        score: [n, L] how sure each model is; below a threshold, `second` is asked as well.
        second: the model to be near to, by `SLACK` of accuracy.
    """
    spent = [_cost_near(pool, score[:, first], first, second) for first in range(score.shape[1])]
    return int(np.argmin(spent))


def pair(first: int, second: int) -> IntArray:
    """Return the order of asking; one model alone where both are the same."""
    return np.array([first, second] if first != second else [first])


def _cost_near(pool: PoolTables, score: FloatArray, first: int, second: int) -> float:
    """Return the least mean cost near the second model's accuracy, in dollars."""
    if first == second:
        return float(pool.cost[:, second].mean())
    below = score[:, None] < quantiles(score)
    right = np.where(below, pool.right[:, second, None], pool.right[:, first, None])
    cost = pool.cost[:, first].mean() + (below * pool.cost[:, second, None]).mean(axis=0)
    near = right.mean(axis=0) >= pool.right[:, second].mean() - SLACK
    return float(cost[near].min())
