"""RCO: Adam along the surface of soft assignments that cost exactly the budget, then a knapsack.

A step: the gradient with respect to logits loses its part along the normal; Adam makes a step of
it; the logits come back to the surface along the cost vector; Adam's momentum loses its part along
the new normal. So the budget is exact at every step, and no penalty has to be tuned.

At the end soft assignments are rounded by the same multiple-choice knapsack that `lagrangian`
uses, once with log-probabilities as what options are worth (the paper's way) and once with the
objective's gradient. The better of both by the true objective is returned.

**When it is of use.** Where values simply add up, the second rounding is the whole answer and
descent adds nothing (`docs/research/allocators.md` has the figures). Descent is for objectives in
which items depend on each other, which no knapsack can read: `RCO.maximise`.

Source: arXiv 2605.00649, as its abstract says it. Deterministic probabilities instead of its
Gumbel straight-through estimate, the step size, the number of steps and the choice between both
roundings are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.base import Allocation, ItemBatch, chosen, room_nano
from farthing_lab.methods.allocators.lagrangian import pack

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""From soft assignments, [n, K], to what they are worth and its gradient, [n, K]."""
DECAYS = 0.9, 0.999
"""Of Adam's two averages (Kingma and Ba 2015)."""
FLOOR = 1e-12
"""Log-probabilities are rounded at this probability."""
FAR = 1e9
"""Where the search for t gives up: beyond it every item has its cheapest or dearest option."""
ENOUGH = 1e-10
"""Error of the expected cost at which the search ends, as a share of it."""


@dataclass(frozen=True)
class RiemannianOptimisation:
    """The allocator, and what it comes to for any smooth objective."""

    steps: int = 60
    """Of Adam; ours."""
    rate: float = 0.5
    """Size of a step in logits, which falls to 0 in a cosine; ours."""
    joint_only: bool = False
    """Whether a batch whose values add up goes to the knapsack at once."""

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        packed = pack(batch, budget_nano)
        if self.joint_only or batch.cost_of(batch.best) <= budget_nano:
            return chosen(batch, packed.choice, packed.bound)
        worth = np.where(batch.offered, batch.value, 0.0)
        soft = self.descend(
            batch, budget_nano, lambda soft: (float(np.einsum("nk,nk->", soft, worth)), worth)
        )
        rounded = chosen(batch, self.rounded(batch, budget_nano, soft), packed.bound)
        direct = chosen(batch, packed.choice, packed.bound)
        return rounded if rounded.value > direct.value else direct

    def maximise(self, batch: ItemBatch, budget_nano: int, objective: Objective) -> IntArray:
        """Give each item one option, [n], where the objective says what they are worth together.

        Args:
            batch: what options cost, and which there are; its values are not read.
            budget_nano: for the expected costs together.
            objective: what soft assignments are worth, and its gradient.
        """
        soft = self.descend(batch, budget_nano, objective)
        linear = pack(batch, budget_nano, objective(soft)[1]).choice
        both = self.rounded(batch, budget_nano, soft), linear
        options = np.arange(batch.value.shape[1])
        return max(both, key=lambda choice: objective((choice[:, None] == options) * 1.0)[0])

    def rounded(self, batch: ItemBatch, budget_nano: int, soft: FloatArray) -> IntArray:
        """Return the likeliest choice within the budget, [n]: a knapsack on log-probabilities."""
        return pack(batch, budget_nano, np.log(np.maximum(soft, FLOOR))).choice

    def descend(self, batch: ItemBatch, budget_nano: int, objective: Objective) -> FloatArray:
        """Return soft assignments, [n, K], whose expected cost is the budget.

        A budget that pays for more than every item's dearest option is not spent.
        """
        room_nano(batch, budget_nano)
        cost, budget = _in_shares(batch, budget_nano)
        logits = retract(np.where(batch.offered, 0.0, -inf), cost, budget)
        first, second = np.zeros_like(cost), np.zeros_like(cost)
        for step in range(1, self.steps + 1):
            soft = softmax(logits)
            normal = pulled_back(soft, cost)
            uphill = tangent(pulled_back(soft, objective(soft)[1]), normal)
            first = DECAYS[0] * tangent(first, normal) + (1 - DECAYS[0]) * uphill
            second = DECAYS[1] * second + (1 - DECAYS[1]) * uphill**2
            size = np.sqrt(second / (1 - DECAYS[1] ** step)) + 1e-12
            rate = self.rate * (1 + np.cos(np.pi * (step - 1) / self.steps)) / 2
            moved = rate * first / (1 - DECAYS[0] ** step) / size
            logits = retract(np.where(batch.offered, logits + moved, -inf), cost, budget)
        return softmax(logits)


def _in_shares(batch: ItemBatch, budget_nano: int) -> tuple[FloatArray, float]:
    """Return costs beyond the cheapest, [n, K], and the budget, in the largest such cost."""
    cost = np.where(batch.offered, batch.expected_nano, np.iinfo(np.int64).max)
    extra = np.where(batch.offered, cost - cost.min(axis=1, keepdims=True), 0)
    unit = float(max(1, extra.max()))
    room = min(budget_nano - batch.least_nano, int(extra.max(axis=1).sum()))
    return extra / unit, room / unit


def softmax(logits: FloatArray) -> FloatArray:
    """Return the probabilities, [n, K].

    >>> softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return probability


def pulled_back(probability: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the gradient with respect to logits of what has this one with respect to p, [n, K]."""
    mean = np.einsum("nk,nk->n", probability, gradient)
    back: FloatArray = probability * (gradient - mean[:, None])
    return back


def tangent(direction: FloatArray, normal: FloatArray) -> FloatArray:
    """Return what of a direction lies in the surface: the part along the normal is taken out.

    >>> tangent(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0]]))
    array([[1., 0.]])
    """
    length = float(np.einsum("nk,nk->", normal, normal))
    if length == 0.0:
        return direction
    return direction - float(np.einsum("nk,nk->", direction, normal)) / length * normal


def retract(logits: FloatArray, cost: FloatArray, budget: float) -> FloatArray:
    """Move logits along the cost vector until they cost the budget: z + t c with C(z + t c) = B.

    A bracket around t is halved where a Newton step would leave it. A budget below the cheapest
    options, or above the dearest, is come as close to as floats allow.
    """
    low, high, at = -np.inf, np.inf, 0.0
    for _ in range(200):
        moved = logits + at * cost
        probability = softmax(moved)
        mean = np.einsum("nk,nk->n", probability, cost)
        short = budget - float(mean.sum())
        if abs(short) <= ENOUGH * max(budget, 1.0) or abs(at) > FAR or high - low < 1e-12:
            return moved
        low, high = (at, high) if short > 0.0 else (low, at)
        slope = float(np.einsum("nk,nk->", pulled_back(probability, cost), cost))
        newton = at + short / slope if slope > 0.0 else np.inf * short
        if low < newton < high and abs(newton) < 1e3 * (1.0 + abs(at)):
            at = newton
        elif np.isfinite(low) and np.isfinite(high):
            at = (low + high) / 2.0
        else:  # twice as far out where the bracket is open
            at = 2.0 * low + 1.0 if np.isfinite(low) else 2.0 * high - 1.0
    return logits + at * cost


RCO = RiemannianOptimisation()
CARD = SystemCard(
    name="rco",
    label="RCO",
    meaning="Descends along soft assignments that cost exactly the budget, then rounds them",
    kind="allocator",
    make=RCO,
    paper="2605.00649",
    page="docs/research/allocators.md",
    place=20,
)
