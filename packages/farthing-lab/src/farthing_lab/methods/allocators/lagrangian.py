"""One price of a dollar for all items, and an exact choice around the last step that fits.

`optimum` is the best that hindsight could have done with a day's budget: what pacers are measured
by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.base import Allocation, ItemBatch, chosen, room_nano


@dataclass(frozen=True)
class Chain:
    """The steps of all requests' concave chains, S in all; those of one request in their order."""

    gain: FloatArray
    """[S] what a step is worth more."""
    price: FloatArray
    """[S] what it costs more."""
    request: IntArray
    """[S] whose step it is."""
    option: IntArray
    """[S] which of its options it leads to."""
    rate: FloatArray
    """[S] value per cost, which never rises along a request's chain; infinite where it is free."""

    def in_order(self) -> "Chain":
        """Return the steps of all requests in the order of value per cost."""
        order = np.argsort(-self.rate, kind="stable")
        return Chain(*(part[order] for part in vars(self).values()))


def optimum(values: FloatArray, costs: FloatArray, budget: float) -> float:
    """Return the largest value that the budget could have bought, all requests known.

        max sum_t sum_j v_tj x_tj   with   sum_t sum_j c_tj x_tj <= B,  sum_j x_tj <= 1,  x >= 0

    This is the linear relaxation of the multiple-choice knapsack: one request may be split, which
    adds at most one request's value. Nothing is always allowed. Each request's options that are
    worth it form a concave chain of steps from nothing upwards; the optimum takes the steps of all
    requests in the order of value per cost until the money is gone, the last one in part.

    Args:
        values: [T, K].
        costs: [T, K], at least 0.
        budget: in the unit of the costs.

    Source: Sinha and Zoltners 1979, "The Multiple-Choice Knapsack Problem".

    >>> optimum(np.array([[0.5, 0.9], [0.5, 0.6]]), np.array([[1.0, 3.0], [1.0, 3.0]]), 3.0)
    1.2
    """
    steps = chain(values, costs).in_order()
    before = np.concatenate([[0.0], np.cumsum(steps.price)[:-1]])
    price = np.where(steps.price > 0.0, steps.price, 1.0)
    part = np.clip((budget - before) / price, 0.0, 1.0)
    return float((steps.gain * np.where(steps.price > 0.0, part, 1.0)).sum())


def chain(values: FloatArray, costs: FloatArray) -> Chain:
    """Return each request's concave chain of steps, which begins at nothing: worth 0, for 0.

    From where a request stands, the next step leads to the option with the largest gain per cost;
    a gain that costs nothing comes first. An option worth minus infinity is never taken.

    Args:
        values: [T, K].
        costs: [T, K], at least 0.
    """
    rows = np.arange(len(values))
    worth, spent = np.zeros(len(values)), np.zeros(len(values))
    rate = np.full(len(values), np.inf)
    none = np.zeros(0, dtype=np.int64)
    found: list[tuple[NDArray[Any], ...]] = [(np.zeros(0), np.zeros(0), none, none, np.zeros(0))]
    for _ in range(values.shape[1] + 1):
        gain, price = values - worth[:, None], costs - spent[:, None]
        free = price <= 0.0
        per_cost = np.where(free, np.inf, gain / np.where(free, 1.0, price))
        per_cost = np.where(gain > 0.0, per_cost, -np.inf)
        best = np.where(
            per_cost.max(axis=1) == np.inf,
            np.where(free, gain, -1.0).argmax(axis=1),
            per_cost.argmax(axis=1),
        )
        at = rows, best
        taken = per_cost[at] > -np.inf
        rate = np.minimum(rate, per_cost[at])  # equal rates may differ by rounding
        found.append(tuple(part[taken] for part in (gain[at], price[at], *at, rate)))
        worth = np.where(taken, values[at], worth)
        spent = np.where(taken, costs[at], spent)
    return Chain(*map(np.concatenate, zip(*found, strict=True)))


EXACT = 1 << 16
"""Sums of costs that all items may have for an exact solution; ours."""
CORE = 1 << 16
"""Sums of costs that the items of the repair may have; ours."""


@dataclass(frozen=True)
class Lagrangian:
    """Solves the multiple-choice knapsack: exactly where it is small, else within its own bound.

    >>> from farthing.budgets.pacing.base import Option
    >>> batch = ItemBatch.of([[Option(0.5, 1, 1), Option(0.9, 5, 5)], [Option(0.4, 1, 1)]])
    >>> LAGRANGIAN.allocate(batch, 6).choice, LAGRANGIAN.allocate(batch, 5).choice
    (array([1, 0]), array([0, 0]))
    """

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        packed = pack(batch, budget_nano)
        return chosen(batch, packed.choice, packed.bound)


LAGRANGIAN = Lagrangian()
CARD = SystemCard(
    name="lagrangian",
    label="Lagrangian and knapsack",
    meaning="One price of a dollar for all questions of a batch; exact around the last that fits",
    kind="allocator",
    make=LAGRANGIAN,
    page="docs/research/allocators.md",
    place=10,
)


@dataclass(frozen=True)
class Packed:
    """A solution of the knapsack."""

    choice: IntArray
    """[n] the option of each item; its costs are within the budget."""
    bound: float
    """No choice within the budget is worth more."""


def pack(batch: ItemBatch, budget_nano: int, worth: FloatArray | None = None) -> Packed:
    """Return the best choice that is found within a budget, and a bound on all of them.

    Args:
        batch: items and options; what they cost is read of it.
        budget_nano: for the expected costs together.
        worth: [n, K] what options are worth, any finite numbers; None: their values.
    """
    room = room_nano(batch, budget_nano)
    worth = np.where(batch.offered, batch.value if worth is None else worth, -np.inf)
    start = _cheapest(batch, worth)
    rows = np.arange(len(batch))
    more = np.where(batch.offered, worth - worth[rows, start][:, None], -np.inf)
    extra = np.where(batch.offered, batch.expected_nano, 0)
    extra -= batch.expected_nano[rows, start][:, None]
    steps = chain(more, np.where(batch.offered, extra, 0).astype(float)).in_order()
    paid = np.cumsum(np.rint(steps.price).astype(np.int64))
    fits = int(np.searchsorted(paid, room, side="right"))
    choice = start.copy()
    choice[steps.request[:fits]] = steps.option[:fits]  # of several steps of an item, the last
    left = room - (int(paid[fits - 1]) if fits else 0)
    base = float(worth[rows, start].sum() + steps.gain[:fits].sum())
    if fits == len(steps.request):
        return Packed(choice, base)
    lists = _Lists(more, extra)
    every = list(dict.fromkeys(steps.request.tolist())) if len(batch) <= EXACT.bit_length() else []
    exact = bool(every) and lists.sums(every)[-1] <= EXACT
    items = every if exact else _near(steps, fits, lists)
    room_there = left + int(extra[items, choice[items]].sum())
    choice[items] = lists.solve(items, room_there)
    bound = base + left * float(steps.rate[fits])
    return Packed(choice, float(worth[rows, choice].sum()) if exact else bound)


def _cheapest(batch: ItemBatch, worth: FloatArray) -> IntArray:
    """Return each item's cheapest option, [n]; of several the one worth most."""
    cost = np.where(batch.offered, batch.expected_nano, np.iinfo(np.int64).max)
    least = cost == cost.min(axis=1, keepdims=True)
    at: IntArray = np.where(least, worth, -np.inf).argmax(axis=1)
    return at


@dataclass(frozen=True)
class _Lists:
    more: FloatArray
    """[n, K] what an option is worth more; minus infinity where there is none."""
    extra: IntArray
    """[n, K] what it costs more."""

    def options(self, item: int) -> IntArray:
        order = np.lexsort((-self.more[item], self.extra[item]))
        order = order[self.more[item][order] > -np.inf]
        worth = self.more[item][order]
        before = np.append(-np.inf, np.maximum.accumulate(worth)[:-1])
        kept: IntArray = order[worth > before]
        return kept

    def sums(self, items: Sequence[int]) -> list[int]:
        return list(accumulate((len(self.options(item)) for item in items), mul))

    def solve(self, items: Sequence[int], room: int) -> IntArray:
        """Return the best options of some items within a room, exactly."""
        options = [self.options(item) for item in items]
        lists = [
            (self.extra[i][at], self.more[i][at]) for i, at in zip(items, options, strict=True)
        ]
        picked = dynamic_programme(lists, room)
        return np.array([at[k] for at, k in zip(options, picked, strict=True)], dtype=np.int64)


def _near(steps: Chain, fits: int, lists: _Lists) -> list[int]:
    around = (
        int(steps.request[at])
        for far in range(len(steps.request))
        for at in dict.fromkeys((fits + far, fits - 1 - far))
        if 0 <= at < len(steps.request)
    )
    found: dict[int, None] = {}
    sums = 1
    for item in around:
        if item not in found:
            sums *= len(lists.options(item))
            if sums > CORE and found:
                break
            found[item] = None
    return list(found)


def dynamic_programme(items: Sequence[tuple[IntArray, FloatArray]], room: int) -> list[int]:
    """Return which option of each item is best within a room, exactly.

    After each item it keeps the sums of costs that no cheaper sum matches in value, so that costs
    may be any whole numbers. It takes time and memory as there are such sums: at most the product
    of the numbers of options, and at most `room + 1`.

    Args:
        items: of each, what its options cost, [k], at least 0, and are worth, [k]; each has one
            that costs 0.
        room: what they may cost together.

    >>> cost, worth = np.array([0, 3, 4]), np.array([0.0, 0.5, 0.9])
    >>> dynamic_programme([(cost, worth), (cost, worth)], 7)
    [1, 2]
    """
    spent, value = np.zeros(1, dtype=np.int64), np.zeros(1)
    back: list[tuple[IntArray, int]] = []
    for cost, worth in items:
        sums, values = (spent[:, None] + cost).ravel(), (value[:, None] + worth).ravel()
        order = np.lexsort((-values, sums))
        order = order[sums[order] <= room]
        before = np.append(-np.inf, np.maximum.accumulate(values[order])[:-1])
        kept = order[values[order] > before]
        back.append((kept, len(cost)))
        spent, value = sums[kept], values[kept]
    at, picked = len(value) - 1, []
    for kept, options in reversed(back):
        at, option = divmod(int(kept[at]), options)
        picked.append(option)
    return picked[::-1]
