"""Play tasks step by step: what is asked of a chain of steps, and what came of it.

A chain is anything whose tasks have steps that either model can do: the generator's, or live
models. All tasks of a call have the same number of steps and are played side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.generator.steps import StepsConfig
from farthing_lab.methods.routers.bopo.policy import NOBODY, affordable

UNLIMITED = 2**62
"""The budget of a task that has none, in nano-dollars."""
Chances = Callable[[FloatArray, BoolArray], FloatArray]
"""Features [n, F] and mask [n, 2] to the probability of each model, [n, 2]."""
Where = tuple[IntArray, IntArray]
"""Level and health of each task, [n] each."""


class TaskChain(Protocol):
    """Tasks whose steps two models can do."""

    @property
    def steps(self) -> int:
        """Steps of a task, H."""
        ...

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        ...

    def begin(self, task: IntArray) -> Any:
        """Return the state of some tasks before their first step."""
        ...

    def features(self, state: Any, step: int, spare: FloatArray) -> FloatArray:
        """Return what a policy sees before a step, [n, F].

        Args:
            state: of n tasks.
            step: which step, from 0.
            spare: [n] share of the steps to come that the budget left allows the large model.
        """
        ...

    def largest_nano(self, state: Any, step: int) -> IntArray:
        """Return the most that the step can cost with each model, [n, 2], in nano-dollars."""
        ...

    def rest_nano(self, state: Any, step: int) -> IntArray:
        """Return the most that the steps after this one cost with the small model, [n]."""
        ...

    def act(
        self, state: Any, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[Any, IntArray]:
        """Do a step, and return the state after it and what it cost, [n], in nano-dollars.

        Where the model is `NOBODY` the task has ended, and nothing is asked.
        """
        ...

    def succeeded(self, state: Any, rng: np.random.Generator) -> BoolArray:
        """Return whether each task succeeded, [n]; asked of those that ended early as well."""
        ...


@dataclass(frozen=True)
class TaskEpisodes:
    """What n tasks came to."""

    features: FloatArray
    """[n, H, F]"""
    mask: BoolArray
    """[n, H, 2] which models the budget allowed."""
    action: IntArray
    """[n, H] who did each step; -1 where nobody could be paid."""
    cost_nano: IntArray
    """[n]"""
    success: BoolArray
    """[n]"""

    def take(self, index: IntArray | BoolArray) -> "TaskEpisodes":
        return TaskEpisodes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def run(
    chain: TaskChain,
    task: IntArray,
    chances: Chances,
    budget_nano: IntArray,
    rng: np.random.Generator,
) -> TaskEpisodes:
    """Play tasks; each step is drawn from a policy's chances, and never over the budget.

    Args:
        chain: the tasks.
        task: [n] which of them; one may come several times.
        chances: the policy.
        budget_nano: [n] most that each may cost.
        rng: draws actions, and what the chain leaves to chance.
    """
    n = len(task)
    state, left = chain.begin(task), budget_nano.astype(np.int64)
    running, seen, masks, actions = np.ones(n, dtype=bool), [], [], []
    for step in range(chain.steps):
        largest, rest = chain.largest_nano(state, step), chain.rest_nano(state, step)
        mask = affordable(left, largest, rest) & running[:, None]
        found = chain.features(state, step, spare(left, largest, rest, chain.steps - step))
        drawn = rng.random(n) < chances(found, mask)[:, 1]
        model = np.where(mask.any(axis=1), drawn.astype(np.int64), NOBODY)
        running &= model != NOBODY
        state, cost = chain.act(state, step, model, rng)
        left = left - cost
        seen.append(found)
        masks.append(mask)
        actions.append(model)
    success = chain.succeeded(state, rng) & running
    return TaskEpisodes(
        np.stack(seen, axis=1),
        np.stack(masks, axis=1),
        np.stack(actions, axis=1),
        budget_nano - left,
        success,
    )


def spare(left: IntArray, largest: IntArray, rest: IntArray, steps: int) -> FloatArray:
    """Return the share of so many steps that what is left allows the large model, [n], 0 to 1."""
    beyond = left - largest[:, 0] - rest
    extra = np.maximum(largest[:, 1] - largest[:, 0], 1)
    share: FloatArray = np.clip(np.floor_divide(beyond, extra) / steps, 0.0, 1.0)
    return share


def always(model: int) -> Chances:
    """Return the boundary policy that asks one model, where the mask allows it, else the other."""

    def chances(features: FloatArray, mask: BoolArray) -> FloatArray:
        del features
        wanted = np.zeros(mask.shape)
        wanted[:, model] = mask[:, model]
        wanted[:, 1 - model] = mask[:, 1 - model] & ~mask[:, model]
        return wanted

    return chances


def at_random(large: FloatArray) -> Chances:
    """Return the policy that asks the large model with each task's own probability, [n]."""

    def chances(features: FloatArray, mask: BoolArray) -> FloatArray:
        del features
        wanted = np.stack([1.0 - large, large], axis=1)
        alone = mask.sum(axis=1) == 1
        return np.where(alone[:, None], mask, wanted * mask)

    return chances


@dataclass(frozen=True)
class GeneratedTasks:
    """Tasks whose levels were drawn."""

    config: StepsConfig
    level: IntArray
    """[tasks]"""

    @classmethod
    def draw(cls, config: StepsConfig, tasks: int, rng: np.random.Generator) -> "GeneratedTasks":
        return cls(config, rng.choice(len(config.weight), tasks, p=config.weight))

    @property
    def steps(self) -> int:
        return self.config.steps

    @property
    def tasks(self) -> int:
        return len(self.level)

    def begin(self, task: IntArray) -> Where:
        return self.level[task], np.zeros(len(task), dtype=np.int64)

    def features(self, state: Where, step: int, spare: FloatArray) -> FloatArray:
        levels, healths = self.config.success.shape
        place = (step * levels + state[0]) * healths + state[1]
        one = np.zeros((len(spare), 2, self.steps * levels * healths))
        rows = np.arange(len(spare))
        one[rows, 0, place] = 1.0
        one[rows, 1, place] = spare
        return one.reshape(len(spare), -1)

    def largest_nano(self, state: Where, step: int) -> IntArray:
        del step
        return np.broadcast_to(np.array(self.config.cost_nano), (len(state[0]), 2))

    def rest_nano(self, state: Where, step: int) -> IntArray:
        after = self.steps - step - 1
        return np.full(len(state[0]), after * self.config.cost_nano[0])

    def act(
        self, state: Where, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[Where, IntArray]:
        del step
        level, health = state
        asked = model != NOBODY
        edges = self.config.move[level, np.maximum(model, 0), health].cumsum(axis=1)
        moved = (rng.random(len(level))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        cost = np.where(asked, np.array(self.config.cost_nano)[np.maximum(model, 0)], 0)
        return (level, np.where(asked, moved, health)), cost

    def succeeded(self, state: Where, rng: np.random.Generator) -> BoolArray:
        drawn: BoolArray = rng.random(len(state[0])) < self.config.success[state]
        return drawn


def table(config: StepsConfig, chances: Chances, budget_nano: int) -> FloatArray:
    """Return a policy's chances in every state, behind the mask of a budget, [H, K, S, H + 1, 2].

    `process.generator.steps.evaluate` says exactly what it comes to.
    """
    levels, healths = config.success.shape
    found = np.zeros((config.steps, levels, healths, config.steps + 1, 2))
    level = np.repeat(np.arange(levels), healths)
    health = np.tile(np.arange(healths), levels)
    chain = GeneratedTasks(config, level)
    for step in range(config.steps):
        largest = chain.largest_nano((level, health), step)
        rest = chain.rest_nano((level, health), step)
        for large in range(step + 1):
            spent = config.spent_nano(step, np.full(len(level), large))
            left = budget_nano - spent
            seen = chain.features(
                (level, health), step, spare(left, largest, rest, config.steps - step)
            )
            found[step, level, health, large] = chances(seen, affordable(left, largest, rest))
    return found
