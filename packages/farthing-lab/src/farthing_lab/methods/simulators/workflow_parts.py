"""The parts of a workflow, who can be asked for each, and what one start of a part comes to.

    length of a sample   uniform on its range of tokens
    time of a sample     latency + length / speed
    a part ends          with its first right sample; where none is right with the last one
    cost                 of all samples, whenever they end

Source: the setting is that of MCPP (arXiv 2605.06110), as its abstract says it; independent
samples, the uniform lengths and ending with the first right sample are ours.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, FloatArray

REDRAWS = 64
"""Draws of a part under way until one is later than it has run; then it takes its longest."""


@dataclass(frozen=True)
class PartChoice:
    """One model with a number of samples, for one part."""

    model: str
    success: float
    """Chance that a sample is right."""
    tokens: tuple[int, int]
    """Least and most tokens that a sample writes."""
    samples: int = 1
    """Drawn side by side."""
    input_nano: int = 0
    """What a sample costs before it writes, in nano-dollars."""
    token_nano: int = 0
    """What a token costs that is written, in nano-dollars."""
    latency_s: float = 0.0
    """Until the first token."""
    tokens_per_s: float = 100.0

    def __post_init__(self) -> None:
        low, high = self.tokens
        if not 0.0 <= self.success <= 1.0:
            raise InputError(f"'{self.model}' has a chance of {self.success}; it has to be 0 to 1")
        if not 0 < low <= high:
            raise InputError(
                f"'{self.model}' writes {low} to {high} tokens; give 1 or more, in order"
            )
        if self.samples < 1 or self.tokens_per_s <= 0.0 or self.latency_s < 0.0:
            raise InputError(f"'{self.model}' needs a sample or more, and a speed above 0")
        if self.input_nano < 0 or self.token_nano < 0:
            raise InputError(f"'{self.model}' costs less than $0; a price has to be $0 or more")

    @property
    def name(self) -> str:
        """What tables call it.

        >>> PartChoice("small", 0.5, (10, 20), 3).name
        'small x 3'
        """
        return self.model if self.samples == 1 else f"{self.model} x {self.samples}"

    @cached_property
    def any_right(self) -> float:
        """Chance that one of the samples is right."""
        return 1.0 - (1.0 - self.success) ** self.samples

    @cached_property
    def largest_nano(self) -> int:
        """The most that all samples can cost together."""
        return self.samples * (self.input_nano + self.tokens[1] * self.token_nano)

    @cached_property
    def expected_nano(self) -> int:
        """What they cost on average."""
        written = (self.tokens[0] + self.tokens[1]) * self.token_nano
        return self.samples * self.input_nano + ceil(self.samples * written / 2)

    @cached_property
    def shortest_s(self) -> float:
        """The fewest seconds that it can take."""
        return self.latency_s + self.tokens[0] / self.tokens_per_s

    @cached_property
    def longest_s(self) -> float:
        """The most seconds that it can take."""
        return self.latency_s + self.tokens[1] / self.tokens_per_s

    @cached_property
    def mean_s(self) -> float:
        """Seconds of one sample on average: what is hoped for where the first is right."""
        return self.latency_s + (self.tokens[0] + self.tokens[1]) / 2 / self.tokens_per_s


@dataclass(frozen=True)
class WorkflowPart:
    """One part of a workflow."""

    name: str
    choices: tuple[PartChoice, ...]
    after: tuple[int, ...] = ()
    """Parts that have to be done before, by their place."""


@lru_cache(maxsize=256)
def ahead_of(parts: tuple[WorkflowPart, ...]) -> tuple[int, ...]:
    """Return for each part how many are on the longest way from it to the end, with itself."""
    ahead = [1] * len(parts)
    for place in reversed(range(len(parts))):
        for before in parts[place].after:
            ahead[before] = max(ahead[before], ahead[place] + 1)
    return tuple(ahead)


@dataclass(frozen=True)
class RunningPart:
    """A part under way."""

    part: int
    choice: int
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class WorkflowState:
    """How far a workflow is; its clock is the deadline that is left."""

    done: tuple[bool, ...]
    under_way: tuple[RunningPart, ...] = ()


@dataclass(frozen=True)
class PartOutcomes:
    """What became of a choice that was drawn n times."""

    seconds: FloatArray
    """[n] until it ended."""
    right: FloatArray
    """[n] 1 where a sample was right, else 0."""
    cost_nano: FloatArray
    """[n] whole nano-dollars."""


def drawn(choice: PartChoice, uniform: FloatArray) -> PartOutcomes:
    """Turn uniform numbers into what became of a choice.

    Args:
        choice: what was started.
        uniform: [n, K, 2] on [0, 1), K at least the number of samples: length, and right or not.
    """
    low, high = choice.tokens
    length = low + np.floor(uniform[:, : choice.samples, 0] * (high - low + 1))
    right = uniform[:, : choice.samples, 1] < choice.success
    seconds = choice.latency_s + length / choice.tokens_per_s
    any_right: BoolArray = np.asarray(right.any(axis=1))
    first = np.where(right, seconds, np.inf).min(axis=1)
    took: FloatArray = np.where(any_right, first, seconds.max(axis=1))
    cost: FloatArray = choice.samples * choice.input_nano + length.sum(axis=1) * choice.token_nano
    return PartOutcomes(took, any_right.astype(np.float64), cost)


def still_running(
    choice: PartChoice, elapsed_s: float, n: int, rng: np.random.Generator
) -> PartOutcomes:
    """Draw n times what becomes of a choice that has run so long and has not ended."""
    found = drawn(choice, rng.random((n, choice.samples, 2)))
    seconds, right, cost = found.seconds.copy(), found.right.copy(), found.cost_nano.copy()
    if elapsed_s > 0.0:
        for _ in range(REDRAWS):
            early = np.flatnonzero(seconds <= elapsed_s)
            if not early.size:
                break
            again = drawn(choice, rng.random((early.size, choice.samples, 2)))
            seconds[early], right[early] = again.seconds, again.right
            cost[early] = again.cost_nano
        seconds[:] = np.where(seconds <= elapsed_s, max(choice.longest_s, elapsed_s), seconds)
    return PartOutcomes(seconds, right, cost)
