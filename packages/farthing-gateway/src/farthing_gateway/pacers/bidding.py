"""Bidding by dynamic programming: is a request worth what later ones could do with its money?

For a stream with a known end, of requests that are drawn as yesterday's were, let V(t, b) be the
most that t requests can bring for b nano-dollars. With the options x of a request, worth f(x) for
c(x), or nothing for nothing,

    V(t, b) = E max { f(x) + V(t - 1, b - c(x)) : the largest cost of x fits b },    V(0, b) = 0

and the best choice is the option with the largest f(x) + V(t - 1, b - c(x)): it pays for x where
f(x) >= V(t - 1, b) - V(t - 1, b - c(x)), what later requests lose.

What a call really costs is known after it. Where that was recorded, the cost is c(x) times a ratio
that is drawn from those of all recorded calls, and V(t - 1, b - c(x)) is the mean over the ratios.

For many requests V is not tabulated. Its differences are learned from the table instead. Between
two neighbouring knots r of the money a request, b = r t, what a nano-dollar more is worth,

    (V(t, r' t) - V(t, r t)) / (r' t - r t) = a + a' / t

is regressed on 1 / t. As t grows it comes to a, the price that hindsight would set; a' is what a
near end changes.

Source: Cai, Ren, Zhang, Malialis, Wang, Yu and Guo 2017, "Real-Time Bidding by Reinforcement
Learning in Display Advertising" (arXiv 1701.02490), algorithm 1, where a
network learns the differences. Several options a request, the largest cost, the ratios and the
regression are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farthing.budgets.pacing.base import Option, PacingState
from farthing.errors import InputError

FloatArray = NDArray[np.float64]
PAPER = "1701.02490"
TABULATED, STEPS, REQUESTS = 48, 48, 64
"""Requests that are tabulated; steps of money up to the dearest option; requests learned from."""
KNOTS = 32
"""Between the cheapest and the dearest option; ours."""
QUANTILES = 8
"""Of real over expected costs; ours."""
ALIKE: FloatArray = np.ones(1)
"""Every call costs what is expected."""
PRIOR_SHARES = 3.0
"""Before anything is learned: every request costs so many even shares, at an even value; ours."""


@dataclass(frozen=True)
class Worth:
    """What money is worth to requests to come, as learned from some."""

    table: FloatArray
    """[T + 1, J + 1] V(t, b) of up to T requests, at b = 0, 1, ... J units."""
    unit_nano: float
    rate_nano: FloatArray
    """[M] money a request, in the middle between two knots."""
    slope: FloatArray
    """[M, 2] value of a nano-dollar more there: a and a'."""
    ratio: FloatArray
    """[Q] what calls really cost, as multiples of what they cost on average."""

    def forgone(self, requests: int, nano: float, cost: float) -> float:
        """Return V(t, b) - E V(t, b - cost), for t requests that have b nano-dollars.

        Beyond the table it is the integral of the slope, by Simpson's rule.
        """
        if requests < len(self.table):
            row, units = self.table[requests], np.arange(self.table.shape[1])
            before, after = nano / self.unit_nano, (nano - cost * self.ratio) / self.unit_nano
            return float(np.interp(before, units, row) - np.interp(after, units, row).mean())
        cost = min(cost, nano)
        at = np.array([nano, nano - cost / 2.0, nano - cost])
        return float(cost * self._slopes(requests, at) @ (1.0, 4.0, 1.0)) / 6.0

    def next_nano(self, requests: int, nano: float) -> float:
        """Return what a nano-dollar more is worth to so many requests that have so much."""
        if requests < len(self.table):
            unit = self.unit_nano
            at, row = np.arange(self.table.shape[1]), self.table[requests]
            gained = np.interp(nano / unit + 1.0, at, row) - np.interp(nano / unit, at, row)
            return float(gained / unit)
        return float(self._slopes(requests, np.array([nano]))[0])

    def _slopes(self, requests: int, nano: FloatArray) -> FloatArray:
        height = np.maximum(self.slope[:, 0] + self.slope[:, 1] / requests, 0.0)
        slopes: FloatArray = np.interp(nano / requests, self.rate_nano, height, right=0.0)
        return slopes


@dataclass(frozen=True)
class Bidding:
    """Takes the option with the largest value less what later requests lose by its cost.

    How many requests are still to come is read off `now`: a share 1 - now of those expected.

    Until it has learned, it supposes that each request is worth something between 0 and 1, each as
    likely, for `PRIOR_SHARES` even shares of the budget.

    >>> day = PacingState(budget_nano=100, requests=2)
    >>> taught = Bidding().taught([[Option(0.2, 100, 100)], [Option(0.8, 100, 100)]])
    >>> round(taught.forgone(day, 100, 0.0), 3), round(taught.forgone(day, 100, 0.5), 3)
    (0.5, 0.0)
    """

    worth: Worth | None = None
    meaning: str = "Spends on a request what is worth more there than to later ones"
    """What `farthing methods` says of it."""
    paper: str = PAPER
    """arXiv id."""

    def taught(
        self,
        requests: Sequence[Sequence[Option]],
        costs_nano: Sequence[Sequence[int]] | None = None,
        seed: int = 0,
    ) -> "Bidding":
        """Return the pacer that knows what requests bring, from the options of recorded ones.

        Args:
            requests: each one's options; of many, `REQUESTS` are drawn.
            costs_nano: what each option really cost, where that is known.
            seed: of that draw.

        Raises:
            InputError: there is no request, or nothing costs anything.
        """
        ratio = _ratios(requests, costs_nano)
        kinds = list(dict.fromkeys(tuple(options) for options in requests))
        if len(kinds) > 1 and len(requests) > REQUESTS:
            drawn = np.random.default_rng(seed).choice(len(requests), REQUESTS, replace=False)
            requests = [requests[at] for at in drawn.tolist()]
        elif len(kinds) == 1:
            requests = kinds
        costs = [option.expected_nano for options in requests for option in options]
        if max(costs, default=0) <= 0:
            raise InputError("nothing costs anything in these requests; there is nothing to pace")
        unit = max(costs) / STEPS
        table = value_table(requests, TABULATED, TABULATED * STEPS, unit, ratio)
        cheapest = min(cost for cost in costs if cost > 0)
        first = min(cheapest, max(costs) / 4.0) / 4.0
        knots = np.concatenate([[0.0], np.geomspace(first, max(costs), KNOTS)])
        middle, slope = (knots[1:] + knots[:-1]) / 2.0, regressed(table, unit, knots)
        return replace(self, worth=Worth(table, unit, middle, slope, ratio))

    def first_price(self) -> float:
        return 0.0

    def price(self, state: PacingState, now: float, /) -> float:
        """Return what an even share more would bring the requests to come: the slope of V."""
        to_come = _to_come(state, now)
        if self.worth is not None:
            return state.share_nano * self.worth.next_nano(to_come, state.left_nano)
        rate = state.left_nano / state.share_nano / max(1, to_come)
        return max(0.0, 1.0 - rate / PRIOR_SHARES) / PRIOR_SHARES

    def settled(self, _state: PacingState, _spent_nano: int, _now: float, /) -> float:
        return self.first_price()

    def forgone(self, state: PacingState, nano: int, now: float, /) -> float:
        """Return V(t, b) - V(t, b - nano), t being the requests after this one."""
        t, left = _to_come(state, now), state.left_nano
        if self.worth is not None:
            return self.worth.forgone(t, left, nano)
        with_it, without = (_even(t, b / state.share_nano) for b in (left, left - nano))
        return with_it - without


def value_table(
    requests: Sequence[Sequence[Option]],
    horizon: int,
    units: int,
    unit_nano: float,
    ratio: FloatArray = ALIKE,
) -> FloatArray:
    """Return V(t, b) for t = 0 to `horizon` and b = 0 to `units` units, [horizon + 1, units + 1].

    Every request is one of those given, each as likely, and so is each ratio of its cost to the
    expected one; a cost is at most the largest. It is exact where all costs are multiples of the
    unit; elsewhere V is taken as a line between units.

    >>> coin = [[Option(0.0, 1, 1)], [Option(1.0, 1, 1)]]
    >>> value_table(coin, 2, 2, 1.0).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.75, 1.0]]
    """
    table = np.zeros((horizon + 1, units + 1))
    for t in range(1, horizon + 1):
        total = np.zeros(units + 1)
        for options in requests:
            best = table[t - 1].copy()
            for option in options:
                first = int(np.ceil(option.largest_nano / unit_nano))
                costs = np.minimum(option.expected_nano * ratio, option.largest_nano) / unit_nano
                if first <= units:
                    kept = sum(_after(table[t - 1], first, cost) for cost in costs.tolist())
                    gain = option.value + kept / len(costs)
                    np.maximum(best[first:], gain, out=best[first:])
            total += best
        table[t] = total / len(requests)
    return table


def _after(row: FloatArray, first: int, cost: float) -> FloatArray:
    """Return what is had after a cost from each number of units on, from `first`."""
    whole, part = int(cost), cost % 1.0
    kept = row[first - whole : len(row) - whole]
    if part <= 0.0:
        return kept
    mixed: FloatArray = (1.0 - part) * kept + part * row[first - whole - 1 : len(row) - whole - 1]
    return mixed


def regressed(table: FloatArray, unit_nano: float, rate_nano: FloatArray) -> FloatArray:
    """Regress the differences of V between knots on the reciprocal of requests, [M, 2].

    The second half of the table is learned from, by least squares, each row by its least concave
    majorant: a row rises in steps where costs are alike, which says nothing of many requests.

    Args:
        table: [T + 1, J + 1] V.
        unit_nano: its step of money.
        rate_nano: [M + 1] knots of money a request.
    """
    some = np.arange(len(table) // 2, len(table))
    money = np.arange(table.shape[1], dtype=np.float64) * unit_nano
    value = np.array([np.interp(rate_nano * t, *_majorant(money, table[t])) / t for t in some])
    slopes = np.diff(value, axis=1) / np.diff(rate_nano)
    seen = np.stack([np.ones(len(some)), 1.0 / some], axis=1)
    return np.asarray(np.linalg.lstsq(seen, slopes, rcond=None)[0].T, dtype=np.float64)


def _ratios(
    requests: Sequence[Sequence[Option]], costs_nano: Sequence[Sequence[int]] | None
) -> FloatArray:
    """Return so many quantiles of real costs over expected ones, [Q], with the mean of all."""
    pairs = [
        (cost, option.expected_nano)
        for options, costs in zip(requests, costs_nano or [()] * len(requests), strict=True)
        for option, cost in zip(options, costs, strict=costs_nano is not None)
        if option.expected_nano
    ]
    if not pairs:
        return ALIKE
    real, expected = np.array(pairs, dtype=np.float64).T
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    found = np.quantile(real / expected, levels, method="inverted_cdf")
    return np.asarray(found * ((real / expected).mean() / max(found.mean(), 1e-12)))


def _majorant(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the least concave function above points, which x orders."""
    kept: list[tuple[float, float]] = []
    for at, height in zip(x.tolist(), y.tolist(), strict=True):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (at - x1) > (height - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append((at, height))
    corners = np.array(kept).T
    return corners[0], corners[1]


def _even(requests: int, shares: float) -> float:
    """Return V of values drawn evenly from 0 to 1 at `PRIOR_SHARES` each, without chance."""
    if not requests:
        return 0.0
    bought = min(1.0, max(0.0, shares) / PRIOR_SHARES / requests)
    return requests * bought * (1.0 - bought / 2.0)


def _to_come(state: PacingState, now: float) -> int:
    return max(0, round(state.requests * (1.0 - now)) - 1)


BIDDING = Bidding()
"""The pacer `bidding`, which has learned nothing yet."""
