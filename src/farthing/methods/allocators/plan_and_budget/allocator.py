"""Plan-and-Budget over options: each part's share of the money, then the best that it pays for.

How fast a part's errors fall is fitted to its options (`shares.curve`); the shares are those of
equal marginal gains. Each part takes its most valuable option within its share, and what is left
goes to the parts with the most errors first.

**When it is of use.** It needs two numbers a part, so it shares tokens or money where no table of
options exists (`shares.shares`). Where there is one, the multiple-choice knapsack reads all of it
and is never worse: the card lays both side by side, as `rco` does.

Source: arXiv 2505.16122; that it chooses among options, and what happens to the rest, are ours.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.allocators.base import Allocation, Batch, chosen, room_nano
from farthing.methods.allocators.knapsack import pack
from farthing.methods.allocators.plan_and_budget.shares import curve, shares, whole
from farthing.traces.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class PlanAndBudget:
    """The allocator."""

    def allocate(self, batch: Batch, budget_nano: int) -> Allocation:
        """Give each part one option: by its share, or by the knapsack where that is worth more."""
        packed = pack(batch, budget_nano)
        direct = chosen(batch, packed.choice, packed.bound)
        by_share = chosen(batch, self.shared(batch, budget_nano), packed.bound)
        return by_share if by_share.value > direct.value else direct

    def shared(self, batch: Batch, budget_nano: int, credit: FloatArray | None = None) -> IntArray:
        """Return the options that the parts' shares pay for, [n].

        Args:
            batch: parts and their options.
            budget_nano: for the expected costs together, never exceeded.
            credit: [n] how much more, or less, a part weighs; None: all alike.

        Raises:
            InputError: not even the cheapest options fit the budget.
        """
        room_nano(batch, budget_nano)
        fits = [
            curve(batch.expected_nano[i, on].astype(np.float64), batch.value[i, on])
            for i, on in enumerate(batch.offered)
        ]
        c, beta = np.array(fits).T
        least = batch.expected_nano[np.arange(len(batch)), batch.cheapest]
        weight = c if credit is None else c * credit
        extra = shares(weight, beta, float(budget_nano), least.astype(float)) - least
        share = least + whole(np.maximum(extra, 0.0), budget_nano - int(least.sum()))
        return spent(batch, share, budget_nano)


def spent(batch: Batch, share: IntArray, budget_nano: int) -> IntArray:
    """Return each part's most valuable option within its share, [n]; what is left is passed on.

    Parts with the least value are served first.

    Args:
        batch: parts and their options.
        share: [n] nano-dollars, each at least the part's cheapest option; together the budget.
        budget_nano: never exceeded.
    """
    choice = np.array([_best(batch, part, room) for part, room in enumerate(share.tolist())])
    left = budget_nano - batch.cost_of(choice)
    for part in np.argsort(batch.value[np.arange(len(batch)), choice], kind="stable").tolist():
        now = int(batch.expected_nano[part, choice[part]])
        choice[part] = _best(batch, part, now + left)
        left -= int(batch.expected_nano[part, choice[part]]) - now
    return choice


def _best(batch: Batch, part: int, room: int) -> int:
    """Return a part's most valuable option that costs no more; the cheaper one of equal ones."""
    within = batch.offered[part] & (batch.expected_nano[part] <= room)
    worth = np.where(within, batch.value[part], -1.0)
    most = np.flatnonzero(worth == worth.max())
    return int(most[batch.expected_nano[part, most].argmin()])


PLAN_AND_BUDGET = PlanAndBudget()
"""The allocator `plan-and-budget`."""
