"""The best that hindsight could have done with a day's budget: what pacers are measured by."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Chain:
    """The steps of all requests' concave chains, S in all; those of one request in their order."""

    gain: FloatArray
    """[S] what a step is worth more."""
    price: FloatArray
    """[S] what it costs more."""
    request: IntArray
    """[S] whose step it is."""
    option: IntArray
    """[S] which of its options it leads to."""
    rate: FloatArray
    """[S] value per cost, which never rises along a request's chain; infinite where it is free."""

    def in_order(self) -> "Chain":
        """Return the steps of all requests in the order of value per cost."""
        order = np.argsort(-self.rate, kind="stable")
        return Chain(*(getattr(self, field.name)[order] for field in fields(self)))


def optimum(values: FloatArray, costs: FloatArray, budget: float) -> float:
    """Return the largest value that the budget could have bought, all requests known.

        max sum_t sum_j v_tj x_tj   with   sum_t sum_j c_tj x_tj <= B,  sum_j x_tj <= 1,  x >= 0

    This is the linear relaxation of the multiple-choice knapsack: one request may be split, which
    adds at most one request's value. Nothing is always allowed. Each request's options that are
    worth it form a concave chain of steps from nothing upwards; the optimum takes the steps of all
    requests in the order of value per cost until the money is gone, the last one in part.

    Args:
        values: [T, K].
        costs: [T, K], at least 0.
        budget: in the unit of the costs.

    Source: Sinha and Zoltners 1979, "The Multiple-Choice Knapsack Problem".

    >>> optimum(np.array([[0.5, 0.9], [0.5, 0.6]]), np.array([[1.0, 3.0], [1.0, 3.0]]), 3.0)
    1.2
    """
    steps = chain(values, costs).in_order()
    before = np.concatenate([[0.0], np.cumsum(steps.price)[:-1]])
    price = np.where(steps.price > 0.0, steps.price, 1.0)
    part = np.clip((budget - before) / price, 0.0, 1.0)
    return float((steps.gain * np.where(steps.price > 0.0, part, 1.0)).sum())


def chain(values: FloatArray, costs: FloatArray) -> Chain:
    """Return each request's concave chain of steps, which begins at nothing: worth 0, for 0.

    From where a request stands, the next step leads to the option with the largest gain per cost;
    a gain that costs nothing comes first. An option worth minus infinity is never taken.

    Args:
        values: [T, K].
        costs: [T, K], at least 0.
    """
    rows = np.arange(len(values))
    worth, spent = np.zeros(len(values)), np.zeros(len(values))
    rate = np.full(len(values), np.inf)
    none = np.zeros(0, dtype=np.int64)
    found: list[tuple[NDArray[Any], ...]] = [(np.zeros(0), np.zeros(0), none, none, np.zeros(0))]
    for _ in range(values.shape[1] + 1):
        gain, price = values - worth[:, None], costs - spent[:, None]
        free = price <= 0.0
        per_cost = np.where(free, np.inf, gain / np.where(free, 1.0, price))
        per_cost = np.where(gain > 0.0, per_cost, -np.inf)
        best = np.where(
            per_cost.max(axis=1) == np.inf,
            np.where(free, gain, -1.0).argmax(axis=1),
            per_cost.argmax(axis=1),
        )
        at = rows, best
        taken = per_cost[at] > -np.inf
        rate = np.minimum(rate, per_cost[at])  # equal rates may differ by rounding
        found.append(tuple(part[taken] for part in (gain[at], price[at], *at, rate)))
        worth = np.where(taken, values[at], worth)
        spent = np.where(taken, costs[at], spent)
    return Chain(*map(np.concatenate, zip(*found, strict=True)))
