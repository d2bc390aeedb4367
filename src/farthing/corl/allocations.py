"""Who gets the roll-outs of an update: the same number of episodes in all, shared among prompts.

An allocation is a callable from `Prompts` and that number to how many episodes each prompt gets,
registered under `farthing.allocations`. It is pure: what the trainer remembers of earlier episodes
comes in with the prompts. One that has a true `in_tokens` shares their tokens instead: so many as
that number of episodes takes on average.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray, IntArray

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
class Prompts:
    """The P prompts of an update, before any episode of theirs."""

    questions: Sequence[Question]
    chance: FloatArray
    """[P] how likely an episode of each earns something, by its cell so far; within 0 and 1."""
    length: FloatArray = field(default_factory=lambda: np.zeros(0))
    """[P] tokens that an episode of each takes, by its cell so far; above 0. All alike where
    nothing is said."""

    def __post_init__(self) -> None:
        """Take all lengths as alike where nothing is said."""
        if not self.length.size:
            object.__setattr__(self, "length", np.ones(len(self.chance)))

    def __len__(self) -> int:
        return len(self.questions)


class Allocation(Protocol):
    """What is registered under `farthing.allocations`; a plain function will do."""

    def __call__(self, prompts: Prompts, episodes: int, /) -> IntArray:
        """Return how many episodes each prompt gets, [P]: `episodes` together, none below 0.

        One with a true `in_tokens` keeps to `episodes` times the mean length instead.
        """
        ...


def even(prompts: Prompts, episodes: int, /) -> IntArray:
    """Give each prompt as many episodes as any other, the first ones what is left.

    >>> even(Prompts([Question("q", "?")] * 3, np.full(3, 0.5)), 7)
    array([3, 2, 2])
    """
    return in_proportion(np.ones(len(prompts)), episodes)


def uncertain(prompts: Prompts, episodes: int, /) -> IntArray:
    """Give more episodes to prompts whose outcome is open: in proportion to sqrt(p (1 - p)).

    That is Neyman's allocation: of all allocations it has the least variance of the sum of the
    prompts' mean rewards. Where an outcome is certain, more episodes say nothing new.

    Source: Neyman 1934, "On the Two Different Aspects of the Representative Method".

    >>> uncertain(Prompts([Question("q", "?")] * 3, np.array([0.5, 0.9, 0.99])), 17)
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
    whole = weights if weights.sum() > 0 else np.ones(len(weights))
    share = episodes * whole / whole.sum()
    each: IntArray = np.floor(share).astype(np.int64)
    most = np.argsort(each - share, kind="stable")
    each[most[: episodes - each.sum()]] += 1
    return each


def allocated(allocation: Allocation, prompts: Prompts, episodes: int) -> IntArray:
    """Return what an allocation gives, held to its promise.

    Raises:
        InputError: it gives another number of episodes in all, or more tokens where it shares
            tokens, or fewer than none.
    """
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
