"""One price of a dollar for all items, and an exact choice around the last step that fits."""

from dataclasses import dataclass

from farthing.methods.allocators.base import Allocation, Batch, chosen
from farthing.methods.allocators.knapsack import pack


@dataclass(frozen=True)
class Lagrangian:
    """Solves the multiple-choice knapsack: exactly where it is small, else within its own bound.

    >>> from farthing.budgets.pacing.base import Option
    >>> batch = Batch.of([[Option(0.5, 1, 1), Option(0.9, 5, 5)], [Option(0.4, 1, 1)]])
    >>> LAGRANGIAN.allocate(batch, 6).choice, LAGRANGIAN.allocate(batch, 5).choice
    (array([1, 0]), array([0, 0]))
    """

    def allocate(self, batch: Batch, budget_nano: int) -> Allocation:
        """Give each item one option; see `knapsack.pack`."""
        packed = pack(batch, budget_nano)
        return chosen(batch, packed.choice, packed.bound)


LAGRANGIAN = Lagrangian()
"""The allocator `lagrangian`."""
