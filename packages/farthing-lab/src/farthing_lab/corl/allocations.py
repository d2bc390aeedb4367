"""Who gets the roll-outs of an update: the same number of episodes in all, shared among prompts.

An allocation is a callable from `PromptBatch` and that number to how many episodes each prompt
gets, registered under `farthing.allocations`. It is pure: what the trainer remembers of earlier
episodes comes in with the prompts. One that has a true `in_tokens` shares their tokens instead: so
many as that number of episodes takes on average.

*Even* and *uncertain* share in proportion. *Knapsack RL* (arXiv 2509.25849) puts roll-outs where
they most likely show both a success and a failure. With n episodes of a prompt whose success rate
is p, GRPO learns something if they do not all end alike. That has a chance of 1 - p^n - (1-p)^n,
and one step towards success then moves the rate by about p (1-p)^2. So n episodes of a prompt are
worth

    v(n) = (1 - p^n - (1-p)^n) p (1-p)^2,    v(0) = v(1) = 0

and the n of all prompts, N together, maximise the sum. v is not concave (the second episode gains,
the first does not), so greedy steps are not exact; the dynamic programme is. That what is left once
nothing gains is shared evenly is ours.

*DUET* (arXiv 2605.08441) goes by how open an outcome is and how many tokens an episode takes. The
variance of the prompts' mean rewards together is sum s_q^2 / n_q. Under a budget of tokens,
sum n_q L_q = B, it is least where

    n_q = clip(s_q / sqrt(lambda L_q), least, most)

with lambda such that the tokens are B: their sum falls as lambda rises, so bisection finds it. That
s_q = sqrt(p (1-p)) by what came of the prompt's kind so far, and both bounds, are ours. Its rule
for breaking off episodes under way is not here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.plan_and_budget import whole as whole_shares

KEPT = 0.9
"""Share of what is remembered that an update leaves, since the controller changes; ours."""


@dataclass(frozen=True)
class Successes:
    """What came of earlier episodes, by cell: a kind of question under a mode.

    The trainer keeps it, and saves it with a checkpoint.
    """

    counts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """(episodes, those that earned more than 0) of each cell; older ones count less."""
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """(reward, tokens that the controller wrote) of the same episodes, where they were noted."""

    def after(
        self, cells: Sequence[str], reward: FloatArray, tokens: Sequence[int] | None = None
    ) -> "Successes":
        """Return the memory after an update, whose episodes were of these cells, [n] each.

        >>> Successes().after(["a", "a", "b"], np.array([1.0, 0.0, -1.0])).counts
        {'a': (2.0, 1.0), 'b': (1.0, 0.0)}
        """
        counts, sums = _faded(self.counts), _faded(self.sums)
        written = [0] * len(cells) if tokens is None else tokens
        for cell, one, wrote in zip(cells, reward.tolist(), written, strict=True):
            n, earned = counts.get(cell, (0.0, 0.0))
            counts[cell] = n + 1.0, earned + (one > 0)
            rewards, total = sums.get(cell, (0.0, 0.0))
            sums[cell] = rewards + one, total + wrote
        return Successes(counts, sums)

    def chance(self, cells: Sequence[str]) -> FloatArray:
        """Return how likely an episode of each cell earns something, [n]; 1/2 where none was seen.

        It is Laplace's rule of succession, (earned + 1) / (episodes + 2).

        >>> Successes({"a": (2.0, 2.0)}).chance(["a", "b"])
        array([0.75, 0.5 ])
        """
        pairs = [self.counts.get(cell, (0.0, 0.0)) for cell in cells]
        return np.array([(earned + 1.0) / (n + 2.0) for n, earned in pairs])

    def value(self, cells: Sequence[str]) -> FloatArray:
        """Return the mean reward of each cell, [n]; two episodes of the mean of all are added.

        >>> Successes().after(["a", "a", "b"], np.array([1.0, 1.0, 0.0])).value(["a", "b", "c"])
        array([0.83333333, 0.44444444, 0.66666667])
        """
        seen = sum(n for n, _ in self.counts.values())
        mean = sum(one for one, _ in self.sums.values()) / seen if seen else 0.0
        return np.array([self._mean(cell, 0, mean) for cell in cells])

    def length(self, cells: Sequence[str]) -> FloatArray:
        """Return how many tokens an episode of each cell takes, [n]; 1 where none was noted.

        >>> Successes().after(["a", "b"], np.zeros(2), [30, 10]).length(["a", "b", "c"]).round(1)
        array([23.3, 16.7, 20. ])
        """
        seen = sum(n for n, _ in self.counts.values())
        mean = sum(one for _, one in self.sums.values()) / seen if seen else 0.0
        return np.array([self._mean(cell, 1, mean) if mean else 1.0 for cell in cells])

    def _mean(self, cell: str, which: int, mean: float) -> float:
        n = self.counts.get(cell, (0.0, 0.0))[0]
        return (self.sums.get(cell, (0.0, 0.0))[which] + 2.0 * mean) / (n + 2.0)


def _faded(kept: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    return {cell: (KEPT * one, KEPT * other) for cell, (one, other) in kept.items()}


@dataclass(frozen=True)
class PromptBatch:
    """The P prompts of an update, before any episode of theirs."""

    questions: Sequence[Question]
    chance: FloatArray
    """[P] how likely an episode of each earns something, by its cell so far; within 0 and 1."""
    length: FloatArray = field(default_factory=lambda: np.zeros(0))
    """[P] tokens that an episode of each takes, by its cell so far; above 0. All alike where
    nothing is said."""

    def __post_init__(self) -> None:
        if not self.length.size:
            object.__setattr__(self, "length", np.ones(len(self.chance)))

    def __len__(self) -> int:
        return len(self.questions)


RolloutAllocation = Callable[[PromptBatch, int], IntArray]
"""What is registered under `farthing.allocations`; a plain function will do.

From prompts and a number of episodes to how many each prompt gets, [P]: that number together, none
below 0. One with a true `in_tokens` keeps to that number times the mean length instead.
"""


def even(prompts: PromptBatch, episodes: int, /) -> IntArray:
    """Give each prompt as many episodes as any other, the first ones what is left.

    >>> even(PromptBatch([Question("q", "?")] * 3, np.full(3, 0.5)), 7)
    array([3, 2, 2])
    """
    return in_proportion(np.ones(len(prompts)), episodes)


def uncertain(prompts: PromptBatch, episodes: int, /) -> IntArray:
    """Give more episodes to prompts whose outcome is open: in proportion to sqrt(p (1 - p)).

    That is Neyman's allocation: of all allocations it has the least variance of the sum of the
    prompts' mean rewards. Where an outcome is certain, more episodes say nothing new.

    Source: Neyman 1934, "On the Two Different Aspects of the Representative Method".

    >>> uncertain(PromptBatch([Question("q", "?")] * 3, np.array([0.5, 0.9, 0.99])), 17)
    array([9, 6, 2])
    """
    return in_proportion(np.sqrt(prompts.chance * (1.0 - prompts.chance)), episodes)


def in_proportion(weights: FloatArray, episodes: int) -> IntArray:
    """Return whole numbers in proportion to weights, [P], which add up exactly.

    Each gets its share rounded down; those that lose most by that get one more (the method of the
    largest remainder), the first of equal ones. Without any weight all are alike.

    >>> in_proportion(np.array([1.0, 1.0, 2.0]), 7)
    array([2, 2, 3])
    """
    any_weight = weights if weights.sum() > 0 else np.ones(len(weights))
    return whole_shares(episodes * any_weight / any_weight.sum(), episodes)


def allocated(allocation: RolloutAllocation, prompts: PromptBatch, episodes: int) -> IntArray:
    """Return what an allocation gives, held to its promise."""
    each = np.asarray(allocation(prompts, episodes))
    if each.shape == (len(prompts),) and getattr(allocation, "in_tokens", False):
        tokens, most = float(each @ prompts.length), episodes * float(prompts.length.mean())
        if (each < 0).any() or tokens > most * (1.0 + 1e-9):
            raise InputError(
                f"the allocation gave episodes of {tokens:.0f} tokens; it has to keep to {most:.0f}"
            )
        return each
    if each.shape != (len(prompts),) or (each < 0).any() or each.sum() != episodes:
        raise InputError(
            f"the allocation gave {each.sum()} episodes to {len(each)} prompts; it has to share "
            f"{episodes} among {len(prompts)}, none below 0"
        )
    return each


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


def knapsack(prompts: PromptBatch, episodes: int, /) -> IntArray:
    """Share episodes so that the sum of their values is largest, exactly.

    It takes P N^2 steps for P prompts and N episodes: 60 ms for 64 and 512.

    >>> from farthing.tasks.base import Question
    >>> knapsack(PromptBatch([Question("q", "?")] * 4, np.array([0.3, 0.5, 0.9, 0.99])), 16)
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


def shares(
    spread: FloatArray, length: FloatArray, tokens: float, least: float = 0.0, most: float = np.inf
) -> FloatArray:
    """Return how many episodes each prompt gets, [P], not rounded, whose tokens are the budget.

    Where the bounds allow no such sum they give way: `least` falls, or `most` rises, to the number
    that all alike would get.

    Args:
        spread: [P] standard deviation of each prompt's reward; where all are 0 all count alike.
        length: [P] tokens of an episode of each, above 0.
        tokens: the budget B, above 0.
        least: of each prompt.
        most: of each prompt.

    >>> shares(np.array([0.5, 0.5, 0.0]), np.array([10.0, 40.0, 10.0]), 600.0).round(6)
    array([20., 10.,  0.])
    """
    alike = tokens / float(length.sum())
    least, most = min(least, alike), max(most, alike)
    unit = spread / spread.max() if spread.max() > 0 else np.ones(len(spread))
    weight = np.maximum(unit, 1e-9) / np.sqrt(length)
    low, high = -700.0, 700.0  # log(1 / sqrt(lambda)); the tokens rise with it
    for _ in range(200):
        middle = (low + high) / 2.0
        each = np.clip(weight * np.exp(middle), least, most)
        low, high = (middle, high) if float(each @ length) < tokens else (low, middle)
    found: FloatArray = np.clip(weight * np.exp(high), least, most)
    return found


@dataclass(frozen=True)
class Duet:
    """The allocation `duet`: it shares the tokens that so many episodes take on average.

    >>> from farthing.tasks.base import Question
    >>> length = np.array([10.0, 40, 10])
    >>> DUET(PromptBatch([Question("q", "?")] * 3, np.array([0.5, 0.5, 0.9]), length), 30)
    array([17,  8, 11])
    """

    in_tokens: ClassVar[bool] = True
    least: float = 2.0
    """Episodes of a prompt, so that they can be compared."""
    most: float = 8.0
    """Times what all alike would get."""

    def __call__(self, prompts: PromptBatch, episodes: int, /) -> IntArray:
        """Return how many episodes each prompt gets, [P]; their tokens are B or just below."""
        if not episodes:
            return np.zeros(len(prompts), dtype=np.int64)
        tokens = episodes * float(prompts.length.mean())
        spread = np.sqrt(prompts.chance * (1.0 - prompts.chance))
        most = self.most * tokens / float(prompts.length.sum())
        return rounded(
            shares(spread, prompts.length, tokens, self.least, most), prompts.length, tokens
        )


def rounded(share: FloatArray, length: FloatArray, tokens: float) -> IntArray:
    """Return whole numbers, [P], within the budget: less than one episode of the longest is left.

    All are rounded down; then those that lost most get one more, in turn, as long as it fits.
    """
    each: IntArray = np.floor(share + 1e-9).astype(np.int64)
    order = np.argsort(each - share, kind="stable").tolist()
    left = tokens * (1.0 + 1e-12) - float(each @ length)
    while fitting := [at for at in order if length[at] <= left]:
        for at in fitting:
            if length[at] <= left:
                each[at] += 1
                left -= float(length[at])
    return each


DUET = Duet()
"""The allocation `duet`."""
