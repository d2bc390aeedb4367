"""Who wins a comparison under another promise than coverage."""

from collections.abc import Sequence

import numpy as np

from farthing.money import usd_from_nano
from farthing.promises.levels import exact_level, exact_margin
from farthing.recommendation.base import ANSWERED, FELL_BACK, REALISED, Row
from farthing.recommendation.promises import Agreement, Budget, Parity, Promise, Selective

ROUNDING = 1e-12
"""What a mean of floats may differ by from the same figure, exactly."""


def ranked(rows: Sequence[Row], promise: Promise) -> list[Row]:
    """Return the rows whose figure is as promised, on average over the splits, the best first.

    Parity and agreement: the cheapest. A selective promise: what answers most. A budget: what is
    right most often. Of equals the cheaper one, then the first in the table. Who never proved
    anything has won nothing, nor has who answers nothing on half of the splits or more.
    """
    ran = [row for row in rows if row.per_split.get("cost_usd")]
    most = 0.5 if isinstance(promise, Selective | Budget) else 1.0
    proved = [row for row in ran if mean(row, FELL_BACK) < most]
    kept = [row for row in proved if not falls_short(at(promise, row), mean(row, REALISED))]
    return sorted(kept, key=lambda row: _merit(row, promise))


def at(promise: Promise, row: Row) -> Promise:
    """Return what a row promises: of a selective promise, the share of wrong answers is its own."""
    if isinstance(promise, Selective):
        return Selective(1 - row.alpha, promise.delta)
    return promise


def beside_cost(promise: Promise) -> str:
    """Return the metric that counts beside money."""
    match promise:
        case Selective():
            return ANSWERED
        case Agreement():
            return REALISED
    return "accuracy"


def mean(row: Row, metric: str) -> float:
    """Return the mean over splits, NaN where it does not exist in any."""
    values = np.asarray(row.per_split.get(metric, []), dtype=np.float64)
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan


def falls_short(promise: Promise, figure: float) -> bool:
    """Return whether a figure is not what was promised; one that does not exist is.

    >>> falls_short(Parity("large", "0.02"), -0.02), falls_short(Parity("large", "0.02"), -0.03)
    (False, True)
    >>> falls_short(Parity("large", "-0.01"), 0.02), falls_short(Parity("large", 0), -0.01)
    (False, True)
    """
    line = line_of(promise)
    if line is None:
        return False
    if isinstance(promise, Budget):
        return figure > line + ROUNDING
    return figure < line - ROUNDING


def line_of(promise: Promise) -> float | None:
    """Return the figure that is promised: at most for a budget, in USD, at least for all others."""
    match promise:
        case Parity():
            return -float(exact_margin(promise.epsilon))
        case Agreement():
            return float(1 - exact_level(promise.epsilon))
        case Selective():
            return float(1 - promise.alpha)
        case Budget():
            return usd_from_nano(promise.nano)
    return None


def _merit(row: Row, promise: Promise) -> tuple[float, float]:
    cost = mean(row, "cost_usd")
    if isinstance(promise, Selective | Budget):
        return -round(mean(row, beside_cost(promise)), 12), cost
    return cost, 0.0
