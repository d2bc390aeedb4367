"""Perfect foresight over a pool: the limit that no policy passes, and no policy itself.

It sees calls before they are made: it asks the cheapest model that is right, if its price is worth
it. Nothing else answers as many questions rightly for less.
"""

import numpy as np

from farthing.methods.pool import SETTINGS, tables
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import IntArray, TraceArrays

NEVER = 2**62
"""A price that nothing is worth."""


def foresight(train: TraceArrays, traces: TraceArrays) -> OperatingPoints:
    """Buy the cheapest right answer where it costs at most a price, learnt from training questions.

    Args:
        train: a pool, for the prices that right answers have.
        traces: a pool.
    """
    price = _cheapest_right(train)
    paid = price[price < NEVER]
    levels = np.quantile(paid, np.linspace(0, 1, SETTINGS - 1)) if paid.size else paid
    values = np.append(np.unique(levels), NEVER / 2)
    price = _cheapest_right(traces)
    model = np.where(traces.correct[:, 0, :], traces.cost_nano[:, 0, :], NEVER).argmin(axis=1)
    chosen = np.where(price[:, None] <= values, model[:, None], -1)
    made = chosen[:, :, None] == np.arange(traces.n_roles)
    return of_calls(traces, values, made, chosen)


def _cheapest_right(traces: TraceArrays) -> IntArray:
    tables(traces)
    cost: IntArray = np.where(traces.correct, traces.cost_nano, NEVER).min(axis=(1, 2))
    return cost
