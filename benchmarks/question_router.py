"""A router on features of the question alone: the plain rival of a controller that reads it.

A forest says from a question's length and signs how likely each model of a pool is right and what
it costs; the model with the best chance less the price of its cost answers. The parameter is the
price.
"""

from collections.abc import Callable

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import FloatArray, TraceArrays

SIGNS = ";*+?,."
PRICES = np.geomspace(10.0, 0.001, 60)
"""Shares of the answers that the dearest model's mean cost is worth, falling."""


def seen(traces: TraceArrays) -> FloatArray:
    """Return length, words, digits and signs of each question's text, [n, F]."""
    texts = [] if traces.question is None else traces.question.tolist()
    rows = [
        [len(text), len(text.split()), sum(map(str.isdigit, text)), *map(text.count, SIGNS)]
        for text in texts
    ]
    return np.array(rows, dtype=np.float64)


def fit_router(train: TraceArrays, seed: int) -> Callable[[TraceArrays], OperatingPoints]:
    """Fit on some questions of a pool; return what routes others at every price."""
    right, cost = train.correct[:, 0].astype(float), train.cost_nano[:, 0] / 1e9
    unit = cost.mean(axis=0).max()
    forest = ExtraTreesRegressor(100, min_samples_leaf=5, random_state=seed)
    forest.fit(seen(train), np.hstack([right, cost / unit]))

    def routed(traces: TraceArrays) -> OperatingPoints:
        chance, price = np.split(forest.predict(seen(traces)), 2, axis=1)
        chosen = (chance[:, None] - PRICES[:, None] * price[:, None]).argmax(axis=2)
        made = chosen[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, PRICES, made, chosen)

    return routed
