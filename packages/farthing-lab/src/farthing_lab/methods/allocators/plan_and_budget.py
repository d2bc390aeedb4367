"""Plan-and-Budget over options: each part's share of the money, then the best that it pays for.

How fast a part's errors fall is fitted to its options (`shares.curve`); the shares are those of
equal marginal gains. Each part takes its most valuable option within its share, and what is left
goes to the parts with the most errors first.

**When it is of use.** It needs two numbers a part, so it shares tokens or money where no table of
options exists (`shares.shares`). Where there is one, the multiple-choice knapsack reads all of it
and is never worse: the card lays both side by side, as `rco` does.

Source: arXiv 2505.16122; that it chooses among options, and what happens to the rest, are ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.base import Allocation, ItemBatch, chosen, room_nano
from farthing_lab.methods.allocators.lagrangian import pack

STEPS = 200
"""Of the bisection; the last ones change nothing."""
RESTS = np.geomspace(0.01, 2.0, 16)
"""How far below the least error a rest may lie that no budget removes, in ranges of errors."""
SCHEDULES: Mapping[str, Callable[[FloatArray, int], FloatArray]] = {
    "linear": lambda j, m: m - j,
    "polynomial": lambda j, m: (m - j) ** 2.0,
    "exponential": lambda j, _: 0.5**j,
    "cosine": lambda j, m: (1.0 + np.cos(np.pi * j / m)) / 2.0,
}
"""What part j of m weighs, j from 0: the earlier, the more; exponents and bases are ours."""


@dataclass(frozen=True)
class PlanAndBudget:
    """The allocator."""

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        packed = pack(batch, budget_nano)
        direct = chosen(batch, packed.choice, packed.bound)
        by_share = chosen(batch, self.shared(batch, budget_nano), packed.bound)
        return by_share if by_share.value > direct.value else direct

    def shared(
        self, batch: ItemBatch, budget_nano: int, credit: FloatArray | None = None
    ) -> IntArray:
        """Return the options that the parts' shares pay for, [n].

        Args:
            batch: parts and their options.
            budget_nano: for the expected costs together, never exceeded.
            credit: [n] how much more, or less, a part weighs; None: all alike.
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


def spent(batch: ItemBatch, share: IntArray, budget_nano: int) -> IntArray:
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


def _best(batch: ItemBatch, part: int, room: int) -> int:
    """Return a part's most valuable option that costs no more; the cheaper one of equal ones."""
    within = batch.offered[part] & (batch.expected_nano[part] <= room)
    worth = np.where(within, batch.value[part], -1.0)
    most = np.flatnonzero(worth == worth.max())
    return int(most[batch.expected_nano[part, most].argmin()])


def shares(
    credit: FloatArray, beta: FloatArray, budget: FloatArray | float, least: FloatArray | float = 0
) -> FloatArray:
    """Return what each part gets, not rounded: [..., m].

    Args:
        credit: [..., m] c_j at least 0: what is uncertain of a part at a budget of 1.
        beta: [..., m] above 0: how fast that falls.
        budget: [...] B, above 0.
        least: [..., m] what a part gets at least; together no more than the budget.

    >>> shares(np.array([4.0, 1.0]), np.array([1.0, 1.0]), 30.0).round(6)
    array([20., 10.])
    >>> shares(np.array([4.0, 0.0]), np.array([1.0, 1.0]), 30.0, 5.0).round(6)
    array([25.,  5.])
    """
    alone = credit.max(axis=-1, keepdims=True) <= 0.0
    worth = np.where(alone, 1.0, np.maximum(credit, 0.0)) * np.where(alone, 1.0, beta)
    root = np.where(alone, 2.0, beta + 1.0)
    with np.errstate(divide="ignore"):
        log = np.log(worth)
    goal, floor = np.asarray(budget, dtype=np.float64), np.broadcast_to(least, log.shape)
    low = np.full(goal.shape, -1e4)
    high = np.full(goal.shape, 1e4)
    for _ in range(STEPS):  # of log mu
        middle = (low + high) / 2.0
        exponent = np.minimum((log - middle[..., None]) / root, 700.0)
        over = np.maximum(np.exp(exponent), floor).sum(axis=-1) > goal
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    exponent = np.minimum((log - high[..., None]) / root, 700.0)
    found: FloatArray = np.maximum(np.exp(exponent), floor)
    return found


def whole(share: FloatArray, budget: int) -> IntArray:
    """Return whole numbers that add up to the budget exactly, [m]: the largest remainders get one.

    >>> whole(np.array([3.4, 3.3, 3.3]), 10)
    array([4, 3, 3])
    """
    each = np.floor(share).astype(np.int64)
    order = np.argsort(each - share, kind="stable")
    left = budget - int(each.sum())
    each += left // len(each)
    each[order[: left % len(each)]] += 1
    while (each < 0).any():  # what rounding took from a part that had nothing
        each[each.argmax()] += each.min()
        each[each.argmin()] = 0
    return each


def scheduled(name: str, credit: FloatArray) -> FloatArray:
    """Return the weights of a schedule times credits, [m]; they add up to 1.

    >>> scheduled("linear", np.ones(3)).round(3), scheduled("exponential", np.ones(2)).round(3)
    (array([0.5  , 0.333, 0.167]), array([0.667, 0.333]))
    """
    if name not in SCHEDULES:
        raise InputError(f"the schedule is '{name}'; give {', '.join(SCHEDULES)}")
    m = len(credit)
    weight = credit * SCHEDULES[name](np.arange(m, dtype=np.float64), m)
    total = float(weight.sum())
    return np.asarray(weight / total) if total > 0.0 else np.full(m, 1.0 / m)


def efficiency(accuracy: float, tokens: float) -> float:
    """Return E3: accuracy squared per token, so that being right weighs more than being short.

    >>> round(efficiency(0.8, 400.0), 6), round(efficiency(0.4, 200.0), 6)
    (0.0016, 0.0008)
    """
    return accuracy**2 / tokens if tokens > 0.0 else 0.0


def curve(spent: FloatArray, value: FloatArray) -> tuple[float, float]:
    """Return (c, beta) of 1 - value = c / b^beta + rest, by what a part's options cost, [K] each.

    Over those options that no cheaper one matches: for each of some rests, which no budget removes,
    a line of least squares through the logarithms; then the one that is nearest to the values. One
    option alone says nothing of beta: 1.

    >>> b = np.array([1.0, 2.0, 4.0, 8.0])
    >>> c, beta = curve(b, 1 - 0.8 / b)
    >>> round(c, 6), round(beta, 6)
    (0.8, 1.0)
    """
    order = np.lexsort((-value, spent))
    x, v = np.maximum(spent[order], 1e-9), value[order]
    kept = v > np.append(-np.inf, np.maximum.accumulate(v)[:-1])
    x, error = x[kept], 1.0 - v[kept]
    spread = float(error[0] - error[-1])
    if len(x) < 2 or spread <= 1e-12:
        return max(float(error[-1]), 1e-6) * float(x[-1]), 1.0
    rests = np.append(0.0, float(error[-1]) - spread * RESTS)
    log = np.log(x)
    far = log - log.mean()
    left = np.log(np.maximum(error - rests[rests >= 0.0][:, None], 1e-6))
    steep = np.clip(-(left @ far) / float(far @ far), 0.05, 5.0)
    height = left.mean(axis=1) + steep * log.mean()
    fitted = np.exp(height[:, None] - steep[:, None] * log) + rests[rests >= 0.0][:, None]
    best = int(((fitted - error) ** 2).sum(axis=1).argmin())
    return float(np.exp(height[best])), float(steep[best])


PLAN_AND_BUDGET = PlanAndBudget()
CARD = SystemCard(
    name="plan-and-budget",
    label="Plan-and-Budget",
    meaning="Shares a budget among a task's parts, by how each part's errors fall with it",
    kind="allocator",
    make=PLAN_AND_BUDGET,
    paper="2505.16122",
    page="docs/research/parts.md",
    place=40,
)
