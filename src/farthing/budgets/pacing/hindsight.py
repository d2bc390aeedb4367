"""The best that hindsight could have done with a day's budget: what pacers are measured by."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
    gains, prices = steps(values, costs)
    order = np.argsort(-gains / np.maximum(prices, np.finfo(float).tiny), kind="stable")
    gains, prices = gains[order], prices[order]
    before = np.concatenate([[0.0], np.cumsum(prices)[:-1]])
    part = np.clip((budget - before) / np.where(prices > 0, prices, 1.0), 0.0, 1.0)
    return float((gains * np.where(prices > 0, part, 1.0)).sum())


def steps(values: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what each step of each request's concave chain gains and costs more, two of [S].

    From where a request stands, the next step leads to the option with the largest gain per cost;
    a gain that costs nothing comes first.
    """
    rows = np.arange(len(values))
    worth, spent = np.zeros(len(values)), np.zeros(len(values))
    gains, prices = [], []
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
        taken = per_cost[rows, best] > -np.inf
        gains.append(gain[rows, best][taken])
        prices.append(price[rows, best][taken])
        worth = np.where(taken, values[rows, best], worth)
        spent = np.where(taken, costs[rows, best], spent)
    return np.concatenate(gains), np.concatenate(prices)
