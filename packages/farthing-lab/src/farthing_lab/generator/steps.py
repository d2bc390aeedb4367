"""Tasks of several steps, made up: a small or a large model does each, and one outcome ends them.

A task has a level, which is seen, and a health, which a step may better or worsen: each model moves
it by a matrix of the level's own. After the last step the task succeeds with a chance that depends
on level and health. So what a step is worth shows at the end alone. Steps have fixed prices, hence
what was spent follows from how many were done by the large model, and the best policy under any
budget is found exactly, by backward induction over (step, level, health, large steps so far).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray

SMALL, LARGE = 0, 1
"""The two actions of a step."""


@dataclass(frozen=True)
class StepsConfig:
    """How tasks come about; K levels, S healths, of which every task begins in the first."""

    steps: int
    """Steps of a task, H."""
    weight: FloatArray
    """[K] share of the tasks."""
    move: FloatArray
    """[K, 2, S, S] probability of the next health, by level, model and health."""
    success: FloatArray
    """[K, S] probability of success after the last step."""
    cost_nano: tuple[int, int]
    """Price of a step by the small and by the large model, in nano-dollars."""

    @property
    def extra_nano(self) -> int:
        return self.cost_nano[LARGE] - self.cost_nano[SMALL]

    def spent_nano(self, step: int, large: IntArray) -> IntArray:
        """Return what so many steps cost, of which so many were large ones."""
        spent: IntArray = step * self.cost_nano[SMALL] + large * self.extra_nano
        return spent


def two_models() -> StepsConfig:
    """Return the preset: easy tasks, hard ones that need the large model here and there, hopeless.

    On a hard task the small model derails one step in three, and only the large one mends that; so
    the large model is worth its price where something went wrong, and late in a task. Made up: its
    figures are of no recorded agents.
    """
    easy_small = [[0.97, 0.03, 0.0], [0.60, 0.38, 0.02], [0.10, 0.30, 0.60]]
    easy_large = [[0.99, 0.01, 0.0], [0.80, 0.19, 0.01], [0.30, 0.40, 0.30]]
    hard_small = [[0.65, 0.30, 0.05], [0.10, 0.60, 0.30], [0.00, 0.05, 0.95]]
    hard_large = [[0.96, 0.04, 0.00], [0.75, 0.23, 0.02], [0.10, 0.30, 0.60]]
    move = [[easy_small, easy_large], [hard_small, hard_large], [hard_small, hard_large]]
    return StepsConfig(
        steps=6,
        weight=np.array([0.4, 0.4, 0.2]),
        move=np.array(move),
        success=np.array([[0.98, 0.70, 0.05], [0.95, 0.40, 0.02], [0.04, 0.02, 0.01]]),
        cost_nano=(100_000, 1_000_000),
    )


Reward = Callable[[int], float]
"""What a success is worth after so many large steps."""
Allowed = Callable[[int, IntArray], BoolArray]
"""Which actions are allowed before a step, after so many large ones: [U, 2]."""


def within(config: StepsConfig, budget_nano: int | None) -> Allowed:
    """Return which actions fit into what is left of a budget, whatever comes after; None: all."""

    def allowed(step: int, large: IntArray) -> BoolArray:
        if budget_nano is None:
            return np.ones((len(large), 2), dtype=bool)
        left = budget_nano - config.spent_nano(step, large)
        return np.asarray(config.cost_nano) <= left[:, None]

    return allowed


@dataclass(frozen=True)
class Best:
    """The best there is under a budget."""

    value: float
    """Expected reward of a task."""
    action: IntArray
    """[H, K, S, H + 1] by step, level, health and large steps so far; -1 where nothing fits."""

    @property
    def chances(self) -> FloatArray:
        """[H, K, S, H + 1, 2] the same as probabilities, for `evaluate`."""
        chances: FloatArray = (self.action[..., None] == np.arange(2)).astype(np.float64)
        return chances


def optimum(
    config: StepsConfig,
    reward: Reward,
    budget_nano: int | None = None,
    toll: Reward = lambda large: 0.0 * large,
) -> Best:
    """Return the policy of greatest expected reward, by backward induction; of equals the small.

    A task in which a step cannot be paid for any more ends without success, at no toll.

    Args:
        config: the generator.
        reward: what a success is worth.
        budget_nano: most that a task may cost; None for no limit.
        toll: what is taken off at the end, success or not. With a reward of 1 and a toll in
            proportion to the cost, no policy succeeds as often as the optimum for less.
    """
    steps, levels, healths = config.steps, *config.success.shape
    large = np.arange(steps + 1)
    worth = np.array([reward(int(u)) for u in large])
    value = config.success[:, :, None] * worth - np.array([toll(int(u)) for u in large])
    action = np.full((steps, levels, healths, steps + 1), -1)
    allowed = within(config, budget_nano)
    for step in range(steps - 1, -1, -1):
        moved = np.einsum("kmst,ktu->mksu", config.move, value)
        after = np.concatenate([moved[LARGE][:, :, 1:], moved[LARGE][:, :, -1:]], axis=2)
        both = np.stack([moved[SMALL], after], axis=3)
        can = allowed(step, large)
        both = np.where(can, both, -np.inf)
        best = both.argmax(axis=3)
        action[step] = np.where(can.any(axis=1), best, -1)
        value = np.where(can.any(axis=1), both.max(axis=3), 0.0)
    return Best(float((config.weight * value[:, 0, 0]).sum()), action)


@dataclass(frozen=True)
class StepsOutcome:
    """What a policy comes to on the generator, exactly."""

    success: float
    """Probability of success."""
    cost_nano: float
    """Expected cost of a task, in nano-dollars."""
    most_nano: int
    """The most that a task can cost under it."""
    value: float
    """Expected reward."""


def evaluate(config: StepsConfig, chance: FloatArray, reward: Reward) -> StepsOutcome:
    """Return what a policy comes to, by the probability of every state that it can reach.

    Args:
        config: the generator.
        chance: [H, K, S, H + 1, 2] probability of each action; both 0 where the task ends there.
        reward: what a success is worth.
    """
    levels, healths = config.success.shape
    at = np.zeros((levels, healths, config.steps + 1))
    at[:, 0, 0] = config.weight
    cost, most = 0.0, 0
    for step in range(config.steps):
        for model in (SMALL, LARGE):
            cost += float((at * chance[step, ..., model]).sum()) * config.cost_nano[model]
        moved = np.zeros_like(at)
        for model in (SMALL, LARGE):
            gone = np.einsum("ksu,kst->ktu", at * chance[step, ..., model], config.move[:, model])
            moved += np.roll(gone, model, axis=2)  # the last column holds nothing yet
        at = moved
        reached = np.flatnonzero(at.sum(axis=(0, 1)) > 0)
        if reached.size:
            most = max(most, int(config.spent_nano(step + 1, reached[-1:])[0]))
    worth = np.array([reward(u) for u in range(config.steps + 1)])
    succeeded = at * config.success[:, :, None]
    return StepsOutcome(float(succeeded.sum()), cost, most, float((succeeded * worth).sum()))
