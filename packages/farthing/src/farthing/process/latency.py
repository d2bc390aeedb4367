"""How long calls take one after another; those that saw nothing of each other, at once.

It is read from the recorded signal `latency_s`, and unknown (NaN) where a call that was made has
none.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


def of_calls(traces: TraceArrays) -> FloatArray | None:
    """Return the seconds of each call, [n, T * L], 0 for none; None where nothing was recorded.

    At worst a call that was not made may be asked, and takes nobody knows how long: NaN.
    """
    recorded = traces.signals.get("latency_s")
    if recorded is None:
        return None
    none = np.nan if traces.at_worst else 0.0
    seconds = np.where(traces.made, recorded.astype(np.float64), none)
    return seconds.reshape(len(traces), -1)


def percentile_95(seconds: FloatArray | None) -> float | None:
    """Return what 95 of 100 questions stay within, [n]; unknown ones count as the slowest.

    None where that is unknown.

    >>> percentile_95(np.array([1.0, 2.0, 3.0])), percentile_95(np.array([1.0, np.nan, 3.0]))
    (2.9, None)
    """
    if seconds is None or not len(seconds):
        return None
    unknown = np.isnan(seconds)
    if not unknown.any():
        return float(np.quantile(seconds, 0.95))
    # infinite seconds have no mean with others
    found = float(np.quantile(np.where(unknown, np.inf, seconds), 0.95, method="higher"))
    return found if np.isfinite(found) else None


def relative(traces: TraceArrays) -> FloatArray:
    """Return the seconds of each call in mean seconds of one, [n, T * L]; 1 where unknown."""
    made = traces.made.reshape(len(traces), -1)
    seconds = of_calls(traces)
    seconds = np.full(made.shape, np.nan) if seconds is None else seconds
    known = made & np.isfinite(seconds)
    mean = seconds[known].sum() / max(known.sum(), 1)
    found: FloatArray = np.ones(made.shape)
    if mean > 0:
        found[known] = seconds[known] / mean
    return found


def of_purchases(
    traces: TraceArrays, calls: IntArray, waits: BoolArray | None = None
) -> FloatArray | None:
    """Return the seconds of each purchase, [n, S]; None where nothing was recorded.

    One that is made together with those before it takes what it takes longer than they do.

    Args:
        traces: the questions.
        calls: [n, S, U] the calls of each purchase, t * L + l.
        waits: [n, S] whether it waits for the replies to those before it; None: each does.
    """
    seconds = of_calls(traces)
    if seconds is None:
        return None
    each = seconds[np.arange(len(traces))[:, None, None], calls]
    together = traces.independent[:, None]
    taken: FloatArray = np.where(together, each.max(axis=2), each.sum(axis=2))
    if waits is None:
        return taken
    longest = np.zeros(len(taken))
    more = np.empty_like(taken)
    for step in range(taken.shape[1]):
        so_far = np.where(waits[:, step], 0.0, longest)
        longest = np.maximum(so_far, taken[:, step])
        more[:, step] = longest - so_far
    return more


def after(purchases: FloatArray | None, number: NDArray[Any]) -> FloatArray | None:
    """Return the seconds that the first purchases of each question take, [n].

    Args:
        purchases: [n, S] or None, as `of_purchases` returns them.
        number: [n] how many were made.
    """
    if purchases is None:
        return None
    made = np.arange(purchases.shape[1]) < number[:, None]
    total: FloatArray = np.where(made, purchases, 0.0).sum(axis=1)
    return total
