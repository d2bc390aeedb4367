"""The generator's tasks as a chain of steps."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.routers.bopo.episodes import Chances, spare
from farthing.methods.routers.bopo.policy import NOBODY
from farthing.methods.routers.bopo.reward import affordable
from farthing.process.generator.steps import StepsConfig
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

Where = tuple[IntArray, IntArray]
"""Level and health of each task, [n] each."""


@dataclass(frozen=True)
class Generated:
    """Tasks whose levels were drawn."""

    config: StepsConfig
    level: IntArray
    """[tasks]"""

    @classmethod
    def draw(cls, config: StepsConfig, tasks: int, rng: np.random.Generator) -> "Generated":
        """Draw the levels of so many tasks."""
        return cls(config, rng.choice(len(config.weight), tasks, p=config.weight))

    @property
    def steps(self) -> int:
        """Steps of a task."""
        return self.config.steps

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.level)

    def begin(self, task: IntArray) -> Where:
        """Return level and health."""
        return self.level[task], np.zeros(len(task), dtype=np.int64)

    def features(self, state: Where, step: int, spare: FloatArray) -> FloatArray:
        """Return a 1 for the step, level and health, and again times `spare`: [n, 2 H K S]."""
        levels, healths = self.config.success.shape
        place = (step * levels + state[0]) * healths + state[1]
        one = np.zeros((len(spare), 2, self.steps * levels * healths))
        rows = np.arange(len(spare))
        one[rows, 0, place] = 1.0
        one[rows, 1, place] = spare
        return one.reshape(len(spare), -1)

    def largest_nano(self, state: Where, step: int) -> IntArray:
        """Return the two prices, which are known."""
        del step
        return np.broadcast_to(np.array(self.config.cost_nano), (len(state[0]), 2))

    def rest_nano(self, state: Where, step: int) -> IntArray:
        """Return what the steps after this one cost with the small model."""
        after = self.steps - step - 1
        return np.full(len(state[0]), after * self.config.cost_nano[0])

    def act(
        self, state: Where, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[Where, IntArray]:
        """Move each task's health by its level's and model's matrix."""
        del step
        level, health = state
        asked = model != NOBODY
        edges = self.config.move[level, np.maximum(model, 0), health].cumsum(axis=1)
        moved = (rng.random(len(level))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        cost = np.where(asked, np.array(self.config.cost_nano)[np.maximum(model, 0)], 0)
        return (level, np.where(asked, moved, health)), cost

    def succeeded(self, state: Where, rng: np.random.Generator) -> BoolArray:
        """Draw the outcome."""
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
    chain = Generated(config, level)
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
