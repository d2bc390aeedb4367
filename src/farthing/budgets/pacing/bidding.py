"""Bidding by dynamic programming: is a request worth what later ones could do with its money?

For a stream with a known end, of requests that are drawn as yesterday's were, let V(t, b) be the
most that t requests can bring for b nano-dollars. With the options x of a request, worth f(x) for
c(x), or nothing for nothing,

    V(t, b) = E max { f(x) + V(t - 1, b - c(x)) : the largest cost of x fits b },    V(0, b) = 0

and the best choice is the option with the largest f(x) + V(t - 1, b - c(x)): it pays for x where
f(x) >= V(t - 1, b) - V(t - 1, b - c(x)), what later requests lose.

For many requests V is not tabulated. Its differences are learned from the table instead. Between
two neighbouring knots r of the money a request, b = r t, what a nano-dollar more is worth,

    (V(t, r' t) - V(t, r t)) / (r' t - r t) = a + a' / t

is regressed on 1 / t. As t grows it comes to a, the price that hindsight would set; a' is what a
near end changes.

Source: Cai, Ren, Zhang, Malialis, Wang, Yu and Guo 2017, "Real-Time Bidding by Reinforcement
Learning in Display Advertising" (arXiv 1701.02490), algorithm 1: there the cost becomes known after
the bid, and a network learns the differences. Several options a request, the largest cost and the
regression are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.budgets.pacing.base import Option, State
from farthing.budgets.pacing.hindsight import FloatArray
from farthing.errors import InputError

PAPER = "1701.02490"
TABULATED, STEPS, REQUESTS = 48, 48, 64
"""Requests that are tabulated; steps of money up to the dearest option; requests learned from."""
KNOTS = 32
"""Between the cheapest and the dearest option; ours."""
PRIOR_SHARES = 3.0
"""Before anything is learned: every request costs so many even shares, at an even value; ours."""


@dataclass(frozen=True)
class Worth:
    """What money is worth to requests to come, as learned from some."""

    table: FloatArray
    """[T + 1, J + 1] V(t, b) of up to T requests, at b = 0, 1, ... J units."""
    unit_nano: float
    rate_nano: FloatArray
    """[M + 1] knots of money a request, from 0 on."""
    slope: FloatArray
    """[M, 2] value of a nano-dollar more between two knots: a and a'."""

    def of(self, requests: int, nano: float) -> float:
        """Return V of so many requests, for so many nano-dollars."""
        nano = max(nano, 0.0)
        if requests < len(self.table):
            row = self.table[requests]
            at = min(nano / self.unit_nano, float(len(row) - 1))
            low = min(int(at), len(row) - 2)
            return float(row[low] + (at - low) * (row[low + 1] - row[low]))
        free = float(self.table[1, 0])  # what a request brings without money
        width = np.clip(nano / requests - self.rate_nano[:-1], 0.0, np.diff(self.rate_nano))
        return requests * (free + float(self._slopes(requests) @ width))

    def next_nano(self, requests: int, nano: float) -> float:
        """Return what a nano-dollar more is worth to so many requests that have so much."""
        if requests < len(self.table):
            gained = self.of(requests, nano + self.unit_nano) - self.of(requests, nano)
            return gained / self.unit_nano
        at = int(np.searchsorted(self.rate_nano, nano / requests, side="right")) - 1
        return float(self._slopes(requests)[at]) if at < len(self.slope) else 0.0

    def _slopes(self, requests: int) -> FloatArray:
        slopes: FloatArray = np.maximum(self.slope[:, 0] + self.slope[:, 1] / requests, 0.0)
        return slopes


@dataclass(frozen=True)
class Bidding:
    """Takes the option with the largest value less what later requests lose by its cost.

    How many requests are still to come is read off `now`: a share 1 - now of those expected.

    Until it has learned, it supposes that each request is worth something between 0 and 1, each as
    likely, for `PRIOR_SHARES` even shares of the budget.

    >>> day = State(budget_nano=100, requests=2)
    >>> taught = Bidding().taught([[Option(0.2, 100, 100)], [Option(0.8, 100, 100)]])
    >>> round(taught.forgone(day, 100, 0.0), 3), round(taught.forgone(day, 100, 0.5), 3)
    (0.5, 0.0)
    """

    worth: Worth | None = None
    meaning: str = "A request pays where it is worth what later ones lose, by a table of yesterday"
    """What `farthing methods` says of it."""
    paper: str = PAPER
    """arXiv id."""

    def taught(self, requests: Sequence[Sequence[Option]], seed: int = 0) -> "Bidding":
        """Return the pacer that knows what requests bring, from the options of recorded ones.

        Args:
            requests: each one's options; of many, `REQUESTS` are drawn.
            seed: of that draw.

        Raises:
            InputError: there is no request, or nothing costs anything.
        """
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
        table = value_table(requests, TABULATED, TABULATED * STEPS, unit)
        cheapest = min(cost for cost in costs if cost > 0)
        knots = np.geomspace(min(cheapest, max(costs) / 4.0) / 4.0, max(costs), KNOTS)
        rate = np.concatenate([[0.0], knots])
        return replace(self, worth=Worth(table, unit, rate, regressed(table, unit, rate)))

    def first_price(self) -> float:
        """Return 0, which is not read."""
        return 0.0

    def price(self, state: State, now: float, /) -> float:
        """Return what an even share more would bring the requests to come: the slope of V."""
        to_come = _to_come(state, now)
        if self.worth is not None:
            return state.share_nano * self.worth.next_nano(to_come, state.left_nano)
        rate = state.left_nano / state.share_nano / max(1, to_come)
        return max(0.0, 1.0 - rate / PRIOR_SHARES) / PRIOR_SHARES

    def settled(self, _state: State, _spent_nano: int, _now: float, /) -> float:
        """Return 0, which is not read."""
        return self.first_price()

    def forgone(self, state: State, nano: int, now: float, /) -> float:
        """Return V(t, b) - V(t, b - nano), t being the requests after this one."""
        t, left = _to_come(state, now), state.left_nano
        if self.worth is not None:
            return self.worth.of(t, left) - self.worth.of(t, left - nano)
        with_it, without = (_even(t, b / state.share_nano) for b in (left, left - nano))
        return with_it - without


def value_table(
    requests: Sequence[Sequence[Option]], horizon: int, units: int, unit_nano: float
) -> FloatArray:
    """Return V(t, b) for t = 0 to `horizon` and b = 0 to `units` units, [horizon + 1, units + 1].

    Every request is one of those given, each as likely. It is exact where all costs are multiples
    of the unit; elsewhere V is taken as a line between units.

    >>> coin = [[Option(0.0, 1, 1)], [Option(1.0, 1, 1)]]
    >>> value_table(coin, 2, 2, 1.0).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.75, 1.0]]
    """
    table = np.zeros((horizon + 1, units + 1))
    for t in range(1, horizon + 1):
        later, total = table[t - 1], np.zeros(units + 1)
        for options in requests:
            best = later.copy()
            for option in options:
                whole, part = divmod(option.expected_nano / unit_nano, 1.0)
                first = int(np.ceil(option.largest_nano / unit_nano))
                if first > units:
                    continue
                shift = int(whole)
                kept = later[first - shift : units + 1 - shift]
                if part > 0.0:
                    below = later[first - shift - 1 : units - shift]
                    kept = (1.0 - part) * kept + part * below
                np.maximum(best[first:], option.value + kept, out=best[first:])
            total += best
        table[t] = total / len(requests)
    return table


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
    money = np.arange(table.shape[1]) * unit_nano
    value = np.array([np.interp(rate_nano * t, *_majorant(money, table[t])) / t for t in some])
    slopes = np.diff(value, axis=1) / np.diff(rate_nano)
    seen = np.stack([np.ones(len(some)), 1.0 / some], axis=1)
    found: FloatArray = np.linalg.lstsq(seen, slopes, rcond=None)[0].T
    return found


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


def _to_come(state: State, now: float) -> int:
    return max(0, round(state.requests * (1.0 - now)) - 1)


BIDDING = Bidding()
"""The pacer `bidding`, which has learned nothing yet."""
