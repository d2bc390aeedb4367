"""An interval of a mean that holds at every moment at once: a confidence sequence, by betting.

For each candidate m of the mean two gamblers bet on numbers x in [0, 1] as they come: one that the
mean is above m, one that it is below. Fortunes begin at 1 and are multiplied by

    1 + w lambda (x - m)        and        1 - w lambda (x - m)

where the bet lambda depends on earlier observations alone. Where the mean is m or less, the first
gambler cannot expect to win, so that its fortune ever reaches 2 / delta with probability at most
delta / 2 (Ville 1939). The lower end moves up past candidates in order, as each gambler's fortune
reaches that; the upper end moves down. Candidates are a grid, and the ends are points of it, so the
interval is at most a step too wide at either end, and never too narrow: for the lower end to pass
the mean, the fortune at the first candidate at or above the mean must have reached 2 / delta.

**Weights.** Where observation i was drawn with probability p_i it enters with the weight
w_i = floor / p_i, floor being a lower bound of all p that was fixed beforehand. Among all requests,
drawn or not, the factor is 1 + D_i w_i lambda_i (x_i - m), D_i saying whether it was drawn. Given
the past, the request and p_i, D_i is independent of x_i with expectation p_i, so the factor's
expectation is 1 + floor lambda_i (E x_i - m): 1 at the true mean over *all* requests, whatever p_i
was. This is thinning (draw with probability p, keep what was drawn with probability floor / p) with
its second coin replaced by that coin's expectation. Where p is constant, w is 1.

**Assumed**: every request has the same mean given the past ones, and that a grade arrives does not
depend on what it says. Where no single mean fits any more the two ends meet; the interval is then
that of someone who knows nothing, and `refuted` says so.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting",
theorem 3 and appendix B.3 (aGRAPA). The package `confseq` has the unweighted processes, over a
stored sample; it is distributed as C++ that does not build with current Pythons.
"""

import math

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray

_STEPS = 400
_GRID: FloatArray = (1 - np.cos(np.pi * np.arange(_STEPS + 1) / _STEPS)) / 2
"""Candidates: denser where a mean near 0 or 1 makes intervals short."""
_MOST = 0.75
"""Largest share of a fortune that a single observation can take."""
_LEAST = 0.3
"""Least bet, as a share of the one that does not look at where the mean lies."""
_PRIOR = (4.0, 2.0, 4.0, 2.0, 2.0)
"""Four made-up observations, 0, 0, 1 and 1, beside which bets are sized; in units of `sums`."""
_AT_ONCE = 64


class MeanState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a mean so far; it goes through JSON unchanged, in 16 kB at most."""

    delta: float
    """The probability with which the interval may ever miss the mean."""
    n: int
    """Number of observations."""
    low: int
    """The candidate that is the lower end; those from there to the upper end are kept."""
    above: tuple[float, ...]
    """Logarithms of fortunes of those who bet that the mean is above candidate low + 1, ..."""
    below: tuple[float, ...]
    """Of those who bet that it is below candidate low, low + 1, ...; as many."""
    sums: tuple[float, ...]
    """Five: of w, w x, w^2, w^2 x and w^2 x^2."""
    refuted: bool
    """Whether the ends met: the observations do not have one mean."""

    @classmethod
    def begin(cls, delta: float) -> "MeanState":
        """Return what is known before any observation.

        Raises:
            CalibrationError: delta outside (0, 1).
        """
        if not 0 < delta < 1:
            raise CalibrationError(f"delta must be between 0 and 1, not {delta}")
        nothing = (0.0,) * _STEPS
        return cls(delta, 0, 0, nothing, nothing, (0.0,) * 5, refuted=False)


def observe(state: MeanState, values: FloatArray, weights: FloatArray | None = None) -> MeanState:
    """Take in observations, in the order in which they became known.

    Args:
        state: what was known before.
        values: [k] in [0, 1].
        weights: [k] in (0, 1]: floor / p of each; None: all 1.

    Raises:
        CalibrationError: values or weights outside their ranges, or not one weight a value.

    >>> state = observe(MeanState.begin(0.05), np.tile([1.0, 1.0, 1.0, 0.0], 100))
    >>> [round(end, 2) for end in interval(state)], estimate(state)
    ([0.67, 0.82], 0.75)
    """
    x, w = checked(values, weights)
    for start in range(0, len(x), _AT_ONCE):
        state = _observe(state, x[start : start + _AT_ONCE], w[start : start + _AT_ONCE])
    return state


def interval(state: MeanState) -> tuple[float, float]:
    """Return the ends of the interval.

    With probability at least 1 - delta the mean lies between them after every observation. The
    interval never grows, unless it is refuted: then it is (0, 1) from there on.

    >>> interval(MeanState.begin(0.05))
    (0.0, 1.0)
    """
    if state.refuted:
        return 0.0, 1.0
    return float(_GRID[state.low]), float(_GRID[state.low + len(state.above)])


def estimate(state: MeanState) -> float | None:
    """Return the weighted mean of what was observed; None before the first observation."""
    return state.sums[1] / state.sums[0] if state.n else None


def checked(values: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return values in [0, 1] and their weights in (0, 1], [k] each.

    Raises:
        CalibrationError: they are not.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones_like(x) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.ndim != 1 or x.shape != w.shape:
        raise CalibrationError("observations are a row of numbers, with one weight each")
    if not ((x >= 0) & (x <= 1)).all():
        raise CalibrationError("an observation must be a number between 0 and 1")
    if not ((w > 0) & (w <= 1)).all():
        raise CalibrationError("a weight must be above 0 and at most 1")
    return x, w


def _observe(state: MeanState, x: FloatArray, w: FloatArray) -> MeanState:
    added = np.stack([w, w * x, w**2, w**2 * x, (w * x) ** 2], axis=1)
    sums = np.vstack([state.sums, added]).cumsum(axis=0)
    after = msgspec.structs.replace(state, n=state.n + len(x), sums=tuple(sums[-1].tolist()))
    if state.refuted:
        return after
    high, enough = state.low + len(state.above), math.log(2 / state.delta)
    candidates = _GRID[state.low : high + 1]
    kelly, least = _bets(sums[:-1] + _PRIOR, state.n + np.arange(len(x)), candidates, enough)
    up, down = candidates[1:], candidates[:-1]
    gain = w[:, None] * (x[:, None] - candidates)
    more = np.minimum(np.maximum(kelly[:, 1:], least), _MOST / up) * gain[:, 1:]
    less = np.minimum(np.maximum(-kelly[:, :-1], least), _MOST / (1 - down)) * -gain[:, :-1]
    above = _fortunes(state.above, more, enough)
    below = _fortunes(state.below, less, enough)
    risen, fallen = _leading(above >= enough), _leading(below[::-1] >= enough)
    if risen + fallen >= len(above):
        return msgspec.structs.replace(after, low=0, above=(), below=(), refuted=True)
    kept = slice(risen, len(above) - fallen)
    return msgspec.structs.replace(
        after,
        low=state.low + risen,
        above=tuple(above[kept].tolist()),
        below=tuple(below[kept].tolist()),
    )


def _bets(
    sums: FloatArray, n: IntArray, candidates: FloatArray, enough: float
) -> tuple[FloatArray, FloatArray]:
    """Return the bets that the mean is above each candidate, [k, G], and the least bet, [k, 1].

    The first is Kelly's to second order: E w (x - m) / E w^2 (x - m)^2, both as observed so far. By
    itself it stays away where the observed mean is at m; the second, WSR's plug-in, does not.
    """
    weight, value, square, cross, product = sums.T[:, :, None]
    kelly = (value - weight * candidates) / (
        product - 2 * cross * candidates + square * candidates**2
    )
    mean = value / weight
    spread = product - 2 * cross * mean + square * mean**2
    least = _LEAST * np.sqrt(2 * enough / (spread * np.log(n + 2)[:, None]))
    return kelly, least


def _fortunes(logs: tuple[float, ...], gains: FloatArray, enough: float) -> FloatArray:
    """Return logarithms of fortunes after gains, [G]; who has won enough stays at that."""
    path = np.vstack([np.array(logs), np.log1p(gains)]).cumsum(axis=0)
    won: FloatArray = np.where((path >= enough).any(axis=0), enough, path[-1])
    return won


def _leading(passed: BoolArray) -> int:
    """Return how many are passed before the first that is not."""
    return len(passed) if passed.all() else int(np.argmin(passed))
