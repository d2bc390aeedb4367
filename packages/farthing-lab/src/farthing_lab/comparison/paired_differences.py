"""Is one policy really cheaper? Paired differences over splits, with an interval."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from farthing.promises.base import Promise
from farthing.recommendation.base import OPTIMUM, Difference, Row
from farthing.recommendation.ranking import ranked
from farthing.recommendation.significance import t_quantile

METRICS = ("cost_usd", "coverage")
"""What is compared in pairs."""


CLAIM = (("ccpo", "cpo-batch"), ("ccpo", "cpo-online"))
"""The pairs that the paper's claim is about."""


def differences(
    rows: Sequence[Row], test_share: float, promise: Promise | None = None
) -> list[Difference]:
    """Return paired differences in cost and coverage, at each alpha.

    Every row with a threshold is held against the cheapest one with an exact promise, and CCPO
    against those that the paper holds it against. Rows without a threshold are left out: to cost
    less at a lower coverage is no saving. Under another promise than coverage every row is held
    against the winner, in cost and in what counts beside it.

    Args:
        rows: all rows of a comparison, played on the same splits.
        test_share: as in `paired_interval`.
        promise: what they promise; None: coverage.
    """
    found = []
    metrics = METRICS if promise is None else ("cost_usd", promise.beside_metric)
    for alpha in dict.fromkeys(row.alpha for row in rows):
        played = {row.policy: row for row in rows if row.alpha == alpha and row.per_split}
        pairs = _pairs(played) if promise is None else _with_winner(played, promise)
        for ours, theirs in pairs:
            for metric in metrics:
                interval = paired_interval(
                    played[ours].per_split[metric], played[theirs].per_split[metric], test_share
                )
                found.append(Difference(alpha, ours, theirs, metric, *interval))
    return found


def _pairs(played: Mapping[str, Row]) -> Iterator[tuple[str, str]]:
    rivals = [r for r in played.values() if r.calibration == "split" and r.policy != OPTIMUM]
    if not rivals:
        return
    cheapest = min(rivals, key=lambda r: (np.mean(r.per_split["cost_usd"]), r.policy)).policy
    thresholded = [name for name, row in played.items() if row.calibration != "none"]
    yield from ((name, cheapest) for name in thresholded if name != cheapest)
    yield from (pair for pair in CLAIM if cheapest not in pair and set(pair) <= set(played))


def _with_winner(played: Mapping[str, Row], promise: Promise) -> Iterator[tuple[str, str]]:
    first = next(iter(ranked(list(played.values()), promise)), None)
    if first is not None:
        yield from ((name, first.policy) for name in played if name != first.policy)


def paired_interval(
    ours: Sequence[float], theirs: Sequence[float], test_share: float, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of ours - theirs and the ends of its interval.

    Splits redraw the same questions, so their differences are not independent and the usual
    variance / J is far too small. The correction is variance (1 / J + n_test / n_other).

    Args:
        ours: one value a split.
        theirs: the other policy's, on the same splits.
        test_share: the share of the redrawn questions that a split tests on, in (0, 1).
        level: probability that the interval is to hold the true difference with.

    Returns:
        NaN for what too few splits cannot tell: everything of none, the interval of one.

    Source: Nadeau and Bengio 2003, equation 9.

    >>> [round(x, 3) for x in paired_interval([3.0, 2.0, 4.0], [1.0, 1.0, 1.0], 0.5)]
    [2.0, -2.968, 6.968]
    """
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    if n == 0:
        return math.nan, math.nan, math.nan
    mean = float(difference.mean())
    if n == 1:
        return mean, math.nan, math.nan
    variance = float(difference.var(ddof=1)) * (1 / n + test_share / (1 - test_share))
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance)
    return mean, mean - half, mean + half
