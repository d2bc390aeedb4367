"""The order of purchases while look-ahead is trained: what would be bought after what."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.methods.lookahead.policy import best_line
from farthing.traces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Order:
    """In which order to buy for each question, and how much each purchase is worth."""

    line: IntArray
    """[n, S] the line of each purchase; -1 once nothing is on offer."""
    worth: FloatArray
    """[n, S] gain per dollar of a purchase and what follows it; infinite for the first."""


Judge = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]
"""(row [R], bought [R, F]) to gain [R, F] and cost in nano-dollars [R, F] of each line."""


def ordered(on_offer: BoolArray, judge: Judge) -> Order:
    """Choose purchases one after another, as if every one of them were made.

    Args:
        on_offer: [n, F, K] the items that can be bought.
        judge: what the lines of a case are estimated to gain and cost.
    """
    n, lines, items = on_offer.shape
    every = np.arange(n)
    bought = np.zeros((n, lines), dtype=np.int64)
    line = np.full((n, lines * items), -1)
    worth = np.full((n, lines * items), -np.inf)
    for step in range(lines * items):
        can = offered(on_offer, every, bought)
        line[:, step], worth[:, step] = best_line(*judge(every, bought), can)
        made = line[:, step] >= 0
        bought[every[made], line[made, step]] += 1
    worth[:, 0] = np.inf
    return Order(line, worth)


def offered(on_offer: BoolArray, row: IntArray, bought: IntArray) -> BoolArray:
    """Return from which lines something can still be bought, [R, F].

    Args:
        on_offer: [n, F, K] the items that can be bought.
        row: [R] which question each case is about.
        bought: [R, F] how many items of each line it has.
    """
    items = on_offer.shape[2]
    place = np.minimum(bought, items - 1)[:, :, None]
    can: BoolArray = np.take_along_axis(on_offer[row], place, axis=2)[..., 0] & (bought < items)
    return can
