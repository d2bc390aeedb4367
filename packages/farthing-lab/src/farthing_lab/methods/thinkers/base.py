"""What a thinker's training is: it says what thoughts were worth, as advantages of their tokens.

A *thought* is what a model writes before it answers. The trainer draws several for each question,
asks each for its answer at some cuts and at its end, and hands over a batch of what came of them.
A `Thinker` returns the advantages. It is a pure function of arrays; who draws, and how the network
learns from advantages, is the same for all (`training.py`). A `Taught` one has the network
fine-tuned before that, on what it selects of the network's own thoughts.

n thoughts, S cuts. A thought that ends before a cut is asked at its
end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray, IntArray

UNTOLD = ""
"""Where a prompt says nothing of how long to think."""


@dataclass(frozen=True)
class Thoughts:
    """What came of a batch of thoughts."""

    length: IntArray
    """[n] tokens of each, without what ends it; at most `cap`."""
    cap: int
    """L: the most tokens that a thought may have."""
    right: FloatArray
    """[n, S] 1 where the answer is right that is given at a cut, else 0."""
    group: IntArray
    """[n] the question's number; thoughts on one question are compared with each other."""
    told: IntArray
    """[n] which of the thinker's `modes` the prompt had."""
    begins: IntArray
    """[n] the token that each begins with; where it is empty, what ends it."""
    surprisal: Callable[[], FloatArray]
    """Returns -log Q of each whole thought under a frozen prior Q, [n], in nats. It takes a pass of
    the prior, so only those ask that read it."""
    progress: float = 0.0
    """Share of the updates that are done."""

    def __post_init__(self) -> None:
        n = len(self.length)
        if {len(one) for one in (self.right, self.group, self.told, self.begins)} - {n}:
            raise InputError("length, right, group, told and begins have a row for each thought")
        if n and not 0 <= self.length.min() <= self.length.max() <= self.cap:
            raise InputError(f"a thought has 0 to {self.cap} tokens, which is the cap")
        if self.right.ndim != 2 or not np.isin(self.right, (0, 1)).all():
            raise InputError("right is 0 or 1, of each thought at each cut")

    @property
    def final(self) -> FloatArray:
        """Whether each is right at its end, [n]."""
        return self.right[:, -1]


class Thinker(Protocol):
    """How thoughts are judged. What is registered under `farthing.thinkers` makes one."""

    @property
    def cuts(self) -> tuple[float, ...]:
        """Shares of the cap at which a thought is asked for its answer; the last closes it."""
        ...

    @property
    def modes(self) -> tuple[str, ...]:
        """What prompts are told, in turn over a question's thoughts; `UNTOLD` for nothing."""
        ...

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        """Return the advantage of tokens up to each cut, [n, S], from the cut before on."""
        ...


@runtime_checkable
class Rewarded(Thinker, Protocol):
    """A thinker whose advantages compare rewards of thoughts after the same prompt, as GRPO does.

    So a trainer of others can have the rewards, and compare them itself.
    """

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        """Return what each thought is worth, [n]."""
        ...


@dataclass(frozen=True)
class Lesson:
    """One of a network's own thoughts, in the form in which it is to have it."""

    thought: int
    """Which of them."""
    part: int = -1
    """It ends where this one of the `parts` does, and the right answer follows."""
    told: str = UNTOLD
    """What the prompt is told."""
    begins: tuple[int, ...] = ()
    """Tokens that are put before it."""


@runtime_checkable
class Taught(Thinker, Protocol):
    """A thinker whose network is fine-tuned before it is trained."""

    @property
    def parts(self) -> tuple[float, ...]:
        """Shares of its own length at which a thought of the network is asked for its answer."""
        ...

    def lessons(self, own: Thoughts, /) -> Iterable[Lesson]:
        """Return what it is fine-tuned on; `own.right` has a column for each of the `parts`."""
        ...


AT_END = (1.0,)
"""The cuts, or parts, of those that ask for an answer at the end alone."""
UNTOLD_ALONE = (UNTOLD,)
"""The modes of those that tell nothing."""
thinker_card = partial(SystemCard, kind="thinker", page="docs/research/thinkers.md", extras=("lm",))
"""The card of a thinker; it says for itself what differs."""


@dataclass(frozen=True, kw_only=True)
class ComparedThinker(ABC):
    """Compares rewards of whole thoughts on one question; tells the network nothing by default."""

    within_modes: ClassVar[bool] = False
    """Whether only thoughts in the same mode are compared."""
    cuts: tuple[float, ...] = AT_END
    modes: tuple[str, ...] = UNTOLD_ALONE

    @abstractmethod
    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        """Return what each thought is worth, [n]."""

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        mode = thoughts.told if self.within_modes else 0
        return compared(self.reward(thoughts), thoughts.group * len(self.modes) + mode)


def compared(reward: FloatArray, group: IntArray) -> FloatArray:
    """Return GRPO's advantage of rewards, [n] to [n, 1]: see `group_advantage`.

    >>> compared(np.array([1.0, 0.0, 0.5]), np.array([0, 0, 1])).round(3).T
    array([[ 0.707, -0.707,  0.   ]])
    """
    import torch  # noqa: PLC0415 - an extra, and cards are read without it

    from farthing_lab.rl.group_advantage import group_advantage  # noqa: PLC0415

    rewards, groups = torch.from_numpy(reward), torch.from_numpy(group)
    found: FloatArray = group_advantage(rewards, groups).numpy()
    return found[:, None]


def part_of(cuts: Sequence[float], cap: int) -> IntArray:
    """Return the first cut that a token stands before, of each place in a thought, [cap + 1].

    What ends a thought is decided where it stands; after the last cut it is forced, and the last
    cut's.

    >>> part_of((0.5, 1.0), 4)
    array([0, 0, 1, 1, 1])
    """
    places = (np.array(cuts) * cap).astype(np.int64)
    found: IntArray = np.searchsorted(places, np.arange(cap + 1), side="right")
    return found.clip(max=len(cuts) - 1)


def mean_of(values: FloatArray, group: IntArray) -> FloatArray:
    """Return the mean over each one's group, [n, ...] to the same shape.

    >>> mean_of(np.array([1.0, 0.0, 5.0]), np.array([7, 7, 2]))
    array([0.5, 0.5, 5. ])
    """
    _, place, size = np.unique(group, return_inverse=True, return_counts=True)
    total = np.zeros((len(size), *values.shape[1:]))
    np.add.at(total, place, values)
    shape = (len(values), *[1] * (values.ndim - 1))
    found: FloatArray = total[place] / size[place].reshape(shape)
    return found
