"""What the last observations say, for an alarm to name: how it was, and how it is."""

import math

import numpy as np

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.confidence_sequence import MeanState, estimate
from farthing.promises.statistics.drift import ExchangeabilityTest, rounded, unrounded
from farthing_gateway.monitoring.promises import is_difference

LATELY = 50
"""Last observations of each signal that are kept."""
Window = tuple[tuple[float, float], ...]
"""The last observations, each with its weight, the oldest first."""


def with_last(window: Window, values: FloatArray, weights: FloatArray) -> Window:
    """Return a window after observations, [k] each; it has `LATELY` at most.

    >>> with_last((), np.array([0.5, 1.0]), np.array([1.0, 0.5]))
    ((0.5, 1.0), (1.0, 0.5))
    """
    return (*window, *zip(values.tolist(), weights.tolist(), strict=True))[-LATELY:]


def percent(share: float) -> str:
    """Write a share: what is not all is never written as all, nor what is not nothing as nothing.

    >>> percent(1.0), percent(0.62), percent(0.99987), percent(0.95), percent(0.0)
    ('100 %', '62 %', 'over 99.9 %', '95 %', '0 %')
    """
    if 0.9995 <= share < 1:
        return "over 99.9 %"
    return f"{100 * share:.3g} %" if share >= 0.0005 or share <= 0 else "under 0.1 %"


def promise_said(
    kind: str, promised: float, window: Window, life: MeanState, evidence: float
) -> str:
    """Say that a promise is broken, by what it is seen.

    No interval is named: those of all audits suppose that nothing changed, which the alarm denies.

    Args:
        kind: of the promise.
        promised: the mean that was promised, as it was watched.
        window: the last grades, one or more.
        life: of all graded audits.
        evidence: of the test; where the promise is kept it ever reaches e with probability 1 / e at
            most.
    """
    parity = is_difference(kind)  # a difference, which was watched as a number in [0, 1]
    values, weights = np.array(window).T
    lately, all_of_it = float(values @ weights / weights.sum()), estimate(life) or 0.0
    if parity:
        promised, lately, all_of_it = (2 * one - 1 for one in (promised, lately, all_of_it))
    was = f"an accuracy of at least {promised:+.4g} beside the reference's"
    now, of_all = f"it is {lately:+.3g}", f"{all_of_it:+.3g}"
    if not parity:
        was, now, of_all = (
            f"{100 * promised:.4g} %",
            f"{percent(lately)} kept it",
            percent(all_of_it),
        )
    beside = f", of all {life.n:,} {of_all}" if life.n > len(window) else ""
    odds = f"1 in {math.floor(min(evidence, 1e9)):,}"
    return (
        f"The promise is not kept any more: {was} was promised, and of the last "
        f"{len(window)} graded audits {now}{beside}. Were it kept, evidence so "
        f"strong would ever come with probability {odds} at most. "
        "Recalibrate from recorded traffic, or put the bundle before it back."
    )


def values_said(signal: str, window: Window, test: ExchangeabilityTest) -> str:
    """Say from what to what a signal changed, as means.

    What was before is known as it was rounded.

    Args:
        signal: its name.
        window: its last values, one or more.
        test: of all values that came, those of the window among them.
    """
    last = np.array(window)[:, 0]
    seen = np.array(test.seen, dtype=np.int64)
    counts = np.array(test.counts, dtype=np.int64)
    np.subtract.at(counts, np.searchsorted(seen, rounded(last)), 1)
    number = int(counts.sum())
    unit = "${:.3g}" if signal == "cost" else "{:.3g}"
    said = f"of the last {len(last)} the mean is {unit.format(float(last.mean()))}"
    if not number:
        return said
    before = float(unrounded(seen) @ counts / number)
    return f"{said}, of the {number:,} before {unit.format(before)}"


def signal_said(signal: str, how: str) -> str:
    """Say that a signal changed, and how."""
    return (
        f"The {signal} of replies is no longer what it was: {how}. Whether the promise is kept it "
        "does not say: look at the audits, or draw more of them."
    )
