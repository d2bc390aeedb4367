"""Who wins a comparison under a promise that is proved."""

from collections.abc import Sequence

import numpy as np

from farthing.promises.base import Promise
from farthing.promises.texts import ACCURACY, ANSWERED, REALISED, Means
from farthing.recommendation.base import FELL_BACK, Row


def ranked(rows: Sequence[Row], promise: Promise) -> list[Row]:
    """Return the rows whose figure is as promised, on average over the splits, the best first.

    Of equals the first in the table. Who never proved anything has won nothing, nor has who proved
    something on too few of the splits (`Promise.least_proved`).
    """
    ran = [row for row in rows if row.per_split.get("cost_usd")]
    proved = [row for row in ran if mean(row, FELL_BACK) < 1 - promise.least_proved]
    kept = [row for row in proved if not promise.at(row.alpha).falls_short(mean(row, REALISED))]
    return sorted(kept, key=lambda row: promise.merit(means_of(row)))


def means_of(row: Row) -> Means:
    """Return what a row came to, on average over the splits."""
    return Means(*(mean(row, metric) for metric in ("cost_usd", ACCURACY, REALISED, ANSWERED)))


def mean(row: Row, metric: str) -> float:
    """Return the mean over splits, NaN where it does not exist in any."""
    values = np.asarray(row.per_split.get(metric, []), dtype=np.float64)
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan
