"""Step-by-step arithmetic of an embedded network as a decision process, with real generations.

A state is a question with what the network wrote so far. A step draws its next line, up to `;` or
the end of its answer; what it costs is what was written, and where a price says so what was read.
From every state one can also end: the tag of the answer is set, and the network says a digit.

How good a line is, a critic says: the probability that it gives to the line, be it the network
itself or another one. A state's score is the probability of its least likely line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from farthing.lm.symbols import END, NUMBERS, encode, said
from farthing.methods.planners.base import Action, Step
from farthing.tasks.arithmetic import normalise

LINE_TOKENS = 24
"""Most tokens of a line."""
MOST_LINES = 12
"""After so many a network that has not answered can only end."""
FORCED = tuple(encode("<answer>"))
LINE_ENDS = frozenset({NUMBERS[END], NUMBERS[";"], NUMBERS["</answer>"]})
"""After these tokens a line ends."""
_LAST = frozenset({NUMBERS[END], NUMBERS["</answer>"]})
_GO = 0.05
"""Weight of progress: see `progress`."""


@dataclass(frozen=True)
class Written:
    """What a network wrote so far."""

    ids: tuple[int, ...] = ()
    lines: int = 0
    ended: bool = False
    latest: float = 1.0
    """Probability of the latest line, says the critic."""
    least: float = 1.0
    """Probability of the least likely line, says the critic."""

    @property
    def answer(self) -> str:
        """The digit that it ends with, or something that is right nowhere."""
        return normalise(said(self.ids)) if self.ended else ""


class Writer(Protocol):
    """Draws lines and judges them; many searches may share one, which batches what they ask."""

    def line(
        self, prompt: Sequence[int], written: Sequence[int], temperature: float, seed: int
    ) -> tuple[tuple[int, ...], float]:
        """Return the next line and how likely the critic finds it, 0 to 1."""
        ...


@dataclass(frozen=True)
class Tariff:
    """What a token costs, in nano-dollars."""

    read_nano: int = 0
    written_nano: int = 1


@dataclass(frozen=True, eq=False)
class Reasoning:
    """The process of one question."""

    prompt: tuple[int, ...]
    writer: Writer
    tariff: Tariff = Tariff()
    temperature: float = 1.0

    @property
    def begin(self) -> Written:
        """The state in which nothing is written."""
        return Written()

    def actions(self, state: Written) -> Sequence[Action]:
        """Return drawing one more line, and ending."""
        if state.ended:
            return []
        read = (len(self.prompt) + len(state.ids)) * self.tariff.read_nano
        line = read + LINE_TOKENS * self.tariff.written_nano
        last = self._ending_nano
        if state.lines >= MOST_LINES:
            return [Action("end", last, last)]
        return [Action("write a line", line // 2, line), Action("end", last, last)]

    @property
    def _ending_nano(self) -> int:
        longest = len(self.prompt) + (MOST_LINES + 1) * LINE_TOKENS
        return longest * self.tariff.read_nano + 3 * self.tariff.written_nano

    def ending(self, state: Written) -> int:
        """Return the action that makes it answer at once."""
        return len(self.actions(state)) - 1

    def step(self, state: Written, action: int, rng: np.random.Generator) -> Step[Written]:
        """Draw the next line, or the digit of the answer."""
        seed = int(rng.integers(2**62))
        if action == self.ending(state):
            return self._ended(state, seed)
        new, chance = self.writer.line(self.prompt, state.ids, self.temperature, seed)
        ended = new[-1] in _LAST
        least = min(state.least, chance)
        made = Written((*state.ids, *new), state.lines + 1, ended, chance, least)
        return Step(made, self._cost(len(state.ids), len(new)))

    def _ended(self, state: Written, seed: int) -> Step[Written]:
        forced = (*state.ids, *FORCED)
        new, chance = self.writer.line(self.prompt, forced, 0.0, seed)
        ids = (*forced, *new[:2])
        least = min(state.least, chance)
        made = Written(ids, state.lines + 1, ended=True, latest=chance, least=least)
        return Step(made, min(self._cost(len(forced), 1 + len(new[:2])), self._ending_nano))

    def _cost(self, before: int, new: int) -> int:
        read = (len(self.prompt) + before) * self.tariff.read_nano
        return read + new * self.tariff.written_nano

    def score(self, state: Written) -> float:
        """Return the probability of the least likely line."""
        return state.least

    def value(self, state: Written) -> float:
        """Return the score of what has ended; nobody knows more before it is graded."""
        return state.least if state.ended else 0.0


def progress(parent: Written, child: Written) -> float:
    """Return how much a line adds, -0.05 to 0.05: positive where it is likelier than not.

    The critic of `bavt`: a likely line of a text brings it a line nearer to its end.

    >>> progress(Written(), Written(latest=1.0)), progress(Written(), Written(latest=0.0))
    (0.05, -0.05)
    """
    del parent  # a line is judged by itself
    return _GO * (2.0 * child.latest - 1.0)


def network_of(name: str) -> Any:
    """Return an embedded network, ready to write.

    Raises:
        MissingExtraError: torch or transformers is absent.
    """
    from farthing.models.embedded import WEIGHTS, find  # noqa: PLC0415
    from farthing.models.weights import load  # noqa: PLC0415

    network, _ = load(str(WEIGHTS / find(name).name), "auto")
    return network.eval()
