"""Play tasks step by step: what is asked of a chain of steps, and what came of it.

A chain is anything whose tasks have steps that either model can do: the generator's, or live
models. All tasks of a call have the same number of steps and are played side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from farthing.methods.routers.bopo.policy import NOBODY
from farthing.methods.routers.bopo.reward import affordable
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

UNLIMITED = 2**62
"""The budget of a task that has none, in nano-dollars."""


class Chain(Protocol):
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


Chances = Callable[[FloatArray, BoolArray], FloatArray]
"""Features [n, F] and mask [n, 2] to the probability of each model, [n, 2]."""


@dataclass(frozen=True)
class Episodes:
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

    def take(self, index: IntArray | BoolArray) -> "Episodes":
        """Return the episodes at an index or under a mask."""
        return Episodes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def run(
    chain: Chain,
    task: IntArray,
    chances: Chances,
    budget_nano: IntArray,
    rng: np.random.Generator,
) -> Episodes:
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
    return Episodes(
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
