"""Which model does the next step: a logistic score of what is seen, behind the budget's mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.methods.base import Dataset, Method, Variant
from farthing.methods.serialization import DataclassState
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

NOBODY = -1
"""The action where no model can be paid for."""
Class = Literal["easy", "hard", "intractable"]
CLASSES: tuple[Class, ...] = ("easy", "hard", "intractable")
HALF = 0.5
"""A boundary policy solves a task that it succeeds in at least so often."""


@dataclass(frozen=True)
class StepPolicy(DataclassState):
    """The probability that the large model does a step, from F numbers that are seen before it."""

    weight: FloatArray
    """[F]"""

    def large(self, features: FloatArray) -> FloatArray:
        """Return the probability of the large model before the mask, [n].

        Args:
            features: [n, F]
        """
        logit = np.clip(np.einsum("nf,f->n", features, self.weight), -30.0, 30.0)
        p: FloatArray = 1.0 / (1.0 + np.exp(-logit))
        return p

    def chances(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the probability of each model under a mask, [n, 2]; both 0 where none fits."""
        return masked(self.large(features), mask)

    def surely(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the chances of who chooses the likelier model each time, [n, 2]."""
        chosen: FloatArray = (self.choose(features, mask)[:, None] == np.arange(2)).astype(float)
        return chosen

    def choose(self, features: FloatArray, mask: BoolArray) -> IntArray:
        """Return the likelier model of those that fit, [n], else `NOBODY`; of equals the small."""
        chances = self.chances(features, mask)
        return np.where(mask.any(axis=1), chances.argmax(axis=1), NOBODY)


def masked(large: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the probability of each model, [n, 2], where only some may be asked.

    >>> masked(np.array([0.3, 0.3, 0.3]), np.array([[True, True], [True, False], [False, False]]))
    array([[0.7, 0.3],
           [1. , 0. ],
           [0. , 0. ]])
    """
    either = np.stack([1.0 - large, large], axis=1) * mask
    total = either.sum(axis=1, keepdims=True)
    alone = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, either / np.where(total > 0, total, 1.0), alone)


def relative_cost(cost: FloatArray, small: FloatArray, large: FloatArray) -> FloatArray:
    """Return (c - c_S) / (c_L - c_S): 0 for what always-small costs, 1 for always-large.

    0 where both cost the same.

    >>> relative_cost(np.array([1.0, 4.0, 10.0]), np.full(3, 1.0), np.full(3, 10.0)).round(3)
    array([0.   , 0.333, 1.   ])
    """
    apart = large - small
    share: FloatArray = np.where(apart > 0, (cost - small) / np.where(apart > 0, apart, 1.0), 0.0)
    return share


def boundary_reward(success: BoolArray, relative: FloatArray, price: float) -> FloatArray:
    """Return R; a failure is worth 0, however cheap.

    Args:
        success: whether each episode succeeded.
        relative: what it cost, as `relative_cost` has it.
        price: lambda, at least 0.

    >>> boundary_reward(np.array([True, True, False]), np.array([0.0, 1.0, 0.0]), 0.25)
    array([1.  , 0.75, 0.  ])
    """
    reward: FloatArray = np.where(success, 1.0 - price * relative, 0.0)
    return reward


def taxonomy(small: FloatArray, large: FloatArray) -> IntArray:
    """Return which class each task is of, as an index into `CLASSES`.

    Args:
        small: [n] share of always-small's episodes that succeeded.
        large: [n] the same of always-large.

    >>> [CLASSES[i] for i in taxonomy(np.array([1.0, 0.25, 0.0]), np.array([0.5, 0.75, 0.25]))]
    ['easy', 'hard', 'intractable']
    """
    return np.where(small >= HALF, 0, np.where(large >= HALF, 1, 2))


def reference_advantage(reward: FloatArray, reference: FloatArray) -> FloatArray:
    """Return R minus the mean of its group's mean reward and the reference, [n, G].

    Where all episodes of a group fail, their mean alone would call none better than another, and a
    policy that fails cheaply would stay as it is. Against what the better boundary policy comes to
    on the task, all of them are bad. A baseline that does not depend on the action leaves the
    gradient's mean as it is.

    Args:
        reward: [n, G] of G episodes of each task.
        reference: [n] mean reward of the better boundary policy.
    """
    baseline = (reward.mean(axis=1) + reference) / 2
    advantage: FloatArray = reward - baseline[:, None]
    return advantage


def affordable(left_nano: IntArray, largest_nano: IntArray, rest_nano: IntArray) -> BoolArray:
    """Return which models can be asked within what is left, [n, 2].

    The large one is masked where the small one could not finish the task after it; the small one
    where its largest cost does not fit.

    Args:
        left_nano: [n] of the budget.
        largest_nano: [n, 2] the most that this step can cost with each model.
        rest_nano: [n] the most that the steps after this one cost with the small model.
    """
    small = largest_nano[:, 0] <= left_nano
    large = largest_nano[:, 1] + rest_nano <= left_nano
    return np.stack([small, large & (largest_nano[:, 1] <= left_nano)], axis=1)


def _by_steps_only(_: Dataset) -> Sequence[Variant]:
    note = "what a step finds depends on the steps before it: see `farthing study steps`"
    return [Variant(BOPO.name, BOPO.label, None, note)]


BOPO = Method(
    name="bopo",
    label="BoPO",
    meaning="A small or a large model at each step of a task, never over the task's budget",
    policy=StepPolicy,
    paper="2602.21227",
    action_spaces=("steps",),
    replayable=False,
    calibration="none",
    variants=_by_steps_only,
    place=91,
)
