"""Knapsack RL: roll-outs go where they most likely show both a success and a failure.

With n episodes of a prompt whose success rate is p, GRPO learns something if they do not all end
alike. That has a chance of 1 - p^n - (1-p)^n, and one step towards success then moves the rate by
about p (1-p)^2. So n episodes of a prompt are worth

    v(n) = (1 - p^n - (1-p)^n) p (1-p)^2,    v(0) = v(1) = 0

and the n of all prompts, N together, maximise the sum. v is not concave (the second episode gains,
the first does not), so greedy steps are not exact; the dynamic programme is.

Source: "Knapsack RL" (arXiv 2509.25849). That what is left once nothing gains is shared evenly is
ours.
"""

import numpy as np

from farthing.corl.allocations import Prompts, in_proportion
from farthing.traces.arrays import FloatArray, IntArray


def value(chance: FloatArray, most: int) -> FloatArray:
    """Return what 0 to `most` episodes of each prompt are worth, [P, most + 1]; none falls with n.

    Args:
        chance: [P] success rates.
        most: the largest number of episodes.

    >>> value(np.array([0.5, 1.0]), 3)
    array([[0.     , 0.     , 0.0625 , 0.09375],
           [0.     , 0.     , 0.     , 0.     ]])
    """
    n, p = np.arange(most + 1), chance[:, None]
    both: FloatArray = 1.0 - p**n - (1.0 - p) ** n
    return np.where(n < 2, 0.0, both) * p * (1.0 - p) ** 2


def knapsack(prompts: Prompts, episodes: int, /) -> IntArray:
    """Share episodes so that the sum of their values is largest, exactly.

    It takes P N^2 steps for P prompts and N episodes: 60 ms for 64 and 512.

    >>> from farthing.tasks.base import Question
    >>> knapsack(Prompts([Question("q", "?")] * 4, np.array([0.3, 0.5, 0.9, 0.99])), 16)
    array([9, 7, 0, 0])
    """
    each = best(value(prompts.chance, episodes))
    return each + in_proportion(np.ones(len(each)), episodes - int(each.sum()))


def best(values: FloatArray) -> IntArray:
    """Return the numbers of largest value whose sum is at most N, [P]; of equal ones the fewest.

    Args:
        values: [P, N + 1] of 0 to N of each.

    >>> best(np.array([[0.0, 0.0, 2.0], [0.0, 1.0, 1.0]]))
    array([2, 0])
    """
    room = values.shape[1]
    given = np.arange(room)
    before = given[:, None] - given[None, :]
    """[N + 1, N + 1] what is left of a room after so many."""
    reached, taken = np.zeros(room), []
    for row in values:
        sums = np.where(before >= 0, reached[before] + row, -np.inf)
        taken.append(sums.argmax(axis=1))
        reached = sums[given, taken[-1]]
    left = int(reached.argmax())
    each = np.zeros(len(values), dtype=np.int64)
    for at in range(len(values) - 1, -1, -1):
        each[at] = taken[at][left]
        left -= int(each[at])
    return each
