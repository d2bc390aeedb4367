"""What an episode is worth: whether its answer is right, and what it cost.

A reward is a callable from `Outcomes` to [n] numbers, registered under `farthing.rewards`. It is
pure: what Router-R1 remembers of earlier costs comes in with the outcomes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray

REMEMBERED = 1_000
"""How many of the last costs Router-R1 compares with."""


@dataclass(frozen=True)
class RecentCosts:
    """The costs of the last episodes: the trainer keeps it, and saves it with a checkpoint."""

    cost_nano: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[at most REMEMBERED] in nano-dollars, the oldest first."""

    def after(self, cost_nano: IntArray) -> "RecentCosts":
        """Return the memory after further episodes, of which these are the costs, [n].

        >>> RecentCosts().after(np.array([3, 1])).after(np.array([2])).cost_nano
        array([3, 1, 2])
        """
        return RecentCosts(np.concatenate([self.cost_nano, cost_nano])[-REMEMBERED:])


@dataclass(frozen=True)
class Outcomes:
    """How a batch of episodes ended, [n] each."""

    correct: BoolArray
    """Whether the answer is right; false where there is none."""
    cost_nano: IntArray
    """What the episode cost, in nano-dollars."""
    budget_nano: IntArray
    """B(mode): what it was told that it may cost, in nano-dollars."""
    well_formed: BoolArray
    """Whether all that the controller wrote could be read."""
    recent: RecentCosts = field(default_factory=RecentCosts)
    """What the episodes before this batch cost."""


Reward = Callable[[Outcomes], FloatArray]
"""What is registered under `farthing.rewards`; a plain function will do.

Returns the reward of each episode, [n], without changing anything.
"""


@dataclass(frozen=True)
class HardGate:
    """1 for a right answer within the budget, else 0: r = r_perf [cost <= B].

    Costs are compared as integers. A malformed call costs nothing by itself.

    Source: CORL (arXiv 2511.02755), the reward r_perf r_cost.

    >>> HARD_GATE(Outcomes(
    ...     correct=np.array([True, True, False]),
    ...     cost_nano=np.array([500, 501, 0]),
    ...     budget_nano=np.array([500, 500, 500]),
    ...     well_formed=np.array([True, True, True]),
    ... ))
    array([1., 0., 0.])
    """

    def __call__(self, episodes: Outcomes, /) -> FloatArray:
        within = episodes.cost_nano <= episodes.budget_nano
        reward: FloatArray = (episodes.correct & within).astype(np.float64)
        return reward


@dataclass(frozen=True)
class SoftGate:
    """As the hard gate, but beyond the budget the reward falls off gradually.

    With the relative overspending u = max(0, cost / B - 1), a right answer is worth

        linear:       max(0, 1 - u / width)
        exponential:  exp(-u / width)

    so a policy that is a little too dear is told which way is down. Where B is 0, any cost is worth
    0. A width of 0 gives the hard gate. It is ours: no paper has it.

    >>> SOFT_GATE(Outcomes(
    ...     correct=np.array([True, True, True, False]),
    ...     cost_nano=np.array([100, 150, 200, 0]),
    ...     budget_nano=np.array([100, 100, 100, 100]),
    ...     well_formed=np.array([True, True, True, True]),
    ... ))
    array([1. , 0.5, 0. , 0. ])
    """

    fall: Literal["linear", "exponential"] = "linear"
    width: float = 1.0
    """In budgets: where the linear fall ends, and where the exponential one is at 1/e; >= 0."""

    def __call__(self, episodes: Outcomes, /) -> FloatArray:
        beyond = np.maximum(episodes.cost_nano - episodes.budget_nano, 0).astype(np.float64)
        unit = self.width * episodes.budget_nano
        free = np.where(beyond > 0, np.inf, 0.0)
        over = np.divide(beyond, unit, out=free, where=unit > 0)
        gate = np.maximum(0.0, 1.0 - over) if self.fall == "linear" else np.exp(-over)
        reward: FloatArray = episodes.correct * gate
        return reward


@dataclass(frozen=True)
class RouterR1:
    """Router-R1's reward: the form first, then the answer, then the price.

    -1 where the form is violated; 0 for a wrong answer; (1 - a) + a r_cost for a right one, with

        r_cost = 1 - clip((sqrt(c) - q05) / (q95 - q05), 0, 1)

    and q05, q95 the quantiles of sqrt(c) over the last 1,000 costs, this batch included. Where
    these are equal, r_cost is 1/2. The budget does not count.

    The authors' code adds a batch's costs one by one, each just before it is judged. Here the whole
    batch is added first, so that the order in it does not matter.

    Source: Router-R1 (arXiv 2506.09033), and `normalize_reward` in the authors' repository.

    >>> ROUTER_R1(Outcomes(
    ...     correct=np.array([True, True, False, True]),
    ...     cost_nano=np.array([0, 10_000, 100, 100]),
    ...     budget_nano=np.array([0, 0, 0, 0]),
    ...     well_formed=np.array([True, True, True, False]),
    ... ))
    array([ 1. ,  0.5,  0. , -1. ])
    """

    cost_weight: float = 0.5
    """a, in [0, 1]; the authors try several, and this default is ours."""

    def __call__(self, episodes: Outcomes, /) -> FloatArray:
        if not len(episodes.cost_nano):
            return np.zeros(0)
        window = np.sqrt(episodes.recent.after(episodes.cost_nano).cost_nano)
        low, high = np.quantile(window, [0.05, 0.95])
        cheap = np.full(len(episodes.cost_nano), 0.5)  # r_cost, 1 for the cheapest
        if low != high:
            cheap = 1.0 - np.clip((np.sqrt(episodes.cost_nano) - low) / (high - low), 0.0, 1.0)
        right = 1.0 - self.cost_weight + self.cost_weight * cheap
        return np.where(episodes.well_formed, np.where(episodes.correct, right, 0.0), -1.0)


HARD_GATE = HardGate()
SOFT_GATE = SoftGate()
ROUTER_R1 = RouterR1()
