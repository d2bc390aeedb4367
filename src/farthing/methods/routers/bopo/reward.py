"""What an episode is worth between the two boundaries, and how much better it was than they are.

The boundary policies do every step with the small model, or every step with the large one. They say
how hard a task is, and what its cost is measured by:

    R = 1[success] (1 - lambda (c - c_S) / (c_L - c_S))

Source: Zhang et al. 2026, arXiv:2602.21227; the abstract names the parts, the formulas are ours.
"""

from typing import Literal

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray

Class = Literal["easy", "hard", "intractable"]
CLASSES: tuple[Class, ...] = ("easy", "hard", "intractable")
HALF = 0.5
"""A boundary policy solves a task that it succeeds in at least so often."""


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
