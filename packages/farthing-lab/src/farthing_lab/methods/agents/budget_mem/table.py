"""What every combination of tiers comes to on known questions: 3^5 = 243 of them.

To train on a table costs no more than to make it, and it says what the best fixed choice is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Progress
from farthing.tasks.base import Question
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.agents.budget_mem.modules import (
    MODULES,
    PRICES,
    Memory,
    ModulePrices,
    ParagraphSearch,
    line_of,
    run,
)
from farthing_lab.methods.agents.budget_mem.policy import FEATURES, Router, features

DEPTH = len(MODULES)
STATES = (3**DEPTH - 1) // 2
LEAVES = 3**DEPTH
Reader = Callable[[Question, str], bool]
"""Whether a question is answered rightly from a text that is read."""


def first_state(module: int) -> int:
    """Return the number of states before those of a module; a state is a prefix of tiers.

    >>> [first_state(m) for m in range(5)]
    [0, 1, 4, 13, 40]
    """
    return sum(3**m for m in range(module))


@dataclass(frozen=True)
class TierTable:
    """Q questions; a state is a module and the tiers before it, read as a number to base 3."""

    features: FloatArray
    """[Q, STATES, FEATURES] what the policy sees."""
    step_nano: IntArray
    """[Q, STATES, 3] what each tier costs there, in nano-dollars."""
    right: BoolArray
    """[Q, 243] whether the question is answered rightly after all five."""
    cost_nano: IntArray
    """[Q, 243] what all five cost, in nano-dollars."""

    def __len__(self) -> int:
        return len(self.right)

    def take(self, rows: IntArray) -> "TierTable":
        return TierTable(
            self.features[rows], self.step_nano[rows], self.right[rows], self.cost_nano[rows]
        )

    def followed(self, router: Router) -> IntArray:
        """Return which of the 243 the likeliest tiers lead to, [Q]."""
        at, rows = np.zeros(len(self), dtype=np.int64), np.arange(len(self))
        for module in range(DEPTH):
            seen = self.features[rows, first_state(module) + at]
            at = 3 * at + router.logits(seen).argmax(axis=1)
        return at

    def means(self, leaf: IntArray) -> tuple[float, float]:
        """Return the share of right answers and the mean cost in nano-dollars of a leaf each."""
        rows = np.arange(len(self))
        return float(self.right[rows, leaf].mean()), float(self.cost_nano[rows, leaf].mean())


def tiers_of(leaf: int) -> tuple[int, ...]:
    """Return the tiers of one of the 243.

    >>> tiers_of(0), tiers_of(242), tiers_of(5)
    ((0, 0, 0, 0, 0), (2, 2, 2, 2, 2), (0, 0, 0, 1, 2))
    """
    return tuple(leaf // 3**place % 3 for place in reversed(range(DEPTH)))


def tabulate(
    questions: Sequence[Question],
    search: ParagraphSearch,
    reader: Reader,
    progress: Progress,
    prices: ModulePrices = PRICES,
) -> TierTable:
    """Run every combination of tiers on every question; what two share is run once."""
    if not questions:
        raise InputError("there are no questions to learn from; give at least one")
    n = len(questions)
    table = TierTable(
        np.zeros((n, STATES, FEATURES)),
        np.zeros((n, STATES, 3), dtype=np.int64),
        np.zeros((n, LEAVES), dtype=bool),
        np.zeros((n, LEAVES), dtype=np.int64),
    )
    found = lru_cache(maxsize=None)(lambda query, top=None: tuple(search(query, top)))
    for row, question in enumerate(questions):
        read = lru_cache(maxsize=None)(lambda text, asked=question: reader(asked, text))
        _fill(table, row, found, read, prices, _TierNode(Memory(line_of(question.text))))
        progress.update(row + 1, n, {})
    return table


@dataclass(frozen=True)
class _TierNode:
    memory: Memory
    tiers: tuple[int, ...] = ()
    at: int = 0
    cost_nano: int = 0


def _fill(
    table: TierTable,
    row: int,
    search: ParagraphSearch,
    read: Callable[[str], bool],
    prices: ModulePrices,
    node: _TierNode,
) -> None:
    module = len(node.tiers)
    if module == DEPTH:
        table.right[row, node.at] = read(node.memory.text)
        table.cost_nano[row, node.at] = node.cost_nano
        return
    state = first_state(module) + node.at
    table.features[row, state] = features(node.memory, node.tiers)
    for tier in range(3):
        memory, paid = run(module, tier, node.memory, search, prices)
        table.step_nano[row, state, tier] = paid
        below = _TierNode(memory, (*node.tiers, tier), 3 * node.at + tier, node.cost_nano + paid)
        _fill(table, row, search, read, prices, below)


def best_fixed(table: TierTable, price: float) -> int:
    """Return which of the 243 has the largest mean of right - price x cost in nano-dollars.

    Of several that are as good, the cheapest: so the cost never rises with the price.
    """
    right, cost = table.right.mean(axis=0), table.cost_nano.mean(axis=0)
    worth = right - price * cost
    return int(np.where(worth >= worth.max() - 1e-12, cost, np.inf).argmin())


def blinded(table: TierTable) -> TierTable:
    """Return the table whose questions cannot be told apart: what fixed tiers can learn from."""
    kept = table.features.copy()
    kept[..., 2 * DEPTH :] = 0.0
    return replace(table, features=kept)
