"""Step-by-step arithmetic of an embedded network as a decision process, with real generations.

A state is a question with what the network wrote so far. A step draws its next line, up to `;` or
the end of its answer; what it costs is what was written, and where a price says so what was read.
From every state one can also end: the tag of the answer is set, and the network says a digit.

How good a line is, a critic says: the probability that it gives to the line, be it the network
itself or another one. A state's score is the probability of its least likely line.

Many searches may share one network: `BatchedWriter` writes a line for all of them in one batch.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from farthing_lab.lm.symbols import END, NUMBERS, encode, said
from farthing_lab.methods.planners.base import PricedAction, Transition
from farthing_lab.models.generation import generate
from farthing_lab.models.generation_rows import GenerationRow
from farthing_lab.tasks.arithmetic import normalise

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
class DraftText:
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


class LineWriter(Protocol):
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
    writer: LineWriter
    tariff: Tariff = Tariff()
    temperature: float = 1.0

    @property
    def begin(self) -> DraftText:
        return DraftText()

    def actions(self, state: DraftText) -> Sequence[PricedAction]:
        if state.ended:
            return []
        read = (len(self.prompt) + len(state.ids)) * self.tariff.read_nano
        line = read + LINE_TOKENS * self.tariff.written_nano
        last = self._ending_nano
        if state.lines >= MOST_LINES:
            return [PricedAction("end", last, last)]
        return [PricedAction("write a line", line // 2, line), PricedAction("end", last, last)]

    @property
    def _ending_nano(self) -> int:
        longest = len(self.prompt) + (MOST_LINES + 1) * LINE_TOKENS
        return longest * self.tariff.read_nano + 3 * self.tariff.written_nano

    def ending(self, state: DraftText) -> int:
        return len(self.actions(state)) - 1

    def step(
        self, state: DraftText, action: int, rng: np.random.Generator
    ) -> Transition[DraftText]:
        seed = int(rng.integers(2**62))
        if action == self.ending(state):
            return self._ended(state, seed)
        new, chance = self.writer.line(self.prompt, state.ids, self.temperature, seed)
        ended = new[-1] in _LAST
        least = min(state.least, chance)
        made = DraftText((*state.ids, *new), state.lines + 1, ended, chance, least)
        return Transition(made, self._cost(len(state.ids), len(new)))

    def _ended(self, state: DraftText, seed: int) -> Transition[DraftText]:
        forced = (*state.ids, *FORCED)
        new, chance = self.writer.line(self.prompt, forced, 0.0, seed)
        ids = (*forced, *new[:2])
        least = min(state.least, chance)
        made = DraftText(ids, state.lines + 1, ended=True, latest=chance, least=least)
        return Transition(made, min(self._cost(len(forced), 1 + len(new[:2])), self._ending_nano))

    def _cost(self, before: int, new: int) -> int:
        read = (len(self.prompt) + before) * self.tariff.read_nano
        return read + new * self.tariff.written_nano

    def score(self, state: DraftText) -> float:
        return state.least

    def value(self, state: DraftText) -> float:
        return state.least if state.ended else 0.0


def progress(parent: DraftText, child: DraftText) -> float:
    """Return how much a line adds, -0.05 to 0.05: positive where it is likelier than not.

    The critic of `bavt`: a likely line of a text brings it a line nearer to its end.

    >>> progress(DraftText(), DraftText(latest=1.0)), progress(DraftText(), DraftText(latest=0.0))
    (0.05, -0.05)
    """
    del parent  # a line is judged by itself
    return _GO * (2.0 * child.latest - 1.0)


def network_of(name: str) -> Any:
    """Return an embedded network, ready to write."""
    from farthing_lab.models.embedded import WEIGHTS, find  # noqa: PLC0415
    from farthing_lab.models.weights import load  # noqa: PLC0415

    network, _ = load(str(WEIGHTS / find(name).name), "auto")
    return network.eval()


Result = TypeVar("Result")


@dataclass(eq=False)
class BatchedWriter:
    """A `LineWriter` that waits until every search waits, and then writes for all of them.

    Each row draws with a seed of its own, so that what a search gets does not depend on the others
    but for rounding.
    """

    network: Any
    """Writes."""
    critic: Any = None
    """Judges; None: the network's own log-probabilities."""
    searching: int = 0
    waiting: "dict[int, GenerationRow]" = field(default_factory=dict)
    results: "dict[int, tuple[tuple[int, ...], float]]" = field(default_factory=dict)
    broken: Exception | None = None
    """Why the network could not write; every search then ends with it, as none can go on."""
    asked: int = 0
    changed: Condition = field(default_factory=Condition)

    def map(self, search: Callable[[int], Result], count: int) -> list[Result]:
        """Run so many searches side by side, by their number, and return what each found."""

        def run(number: int) -> Result:
            try:
                return search(number)
            finally:
                with self.changed:
                    self.searching -= 1
                    self._write_if_all_wait()

        self.searching = count
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run, range(count)))

    def line(
        self, prompt: Sequence[int], written: Sequence[int], temperature: float, seed: int
    ) -> tuple[tuple[int, ...], float]:
        with self.changed:
            number, self.asked = self.asked, self.asked + 1
            self.waiting[number] = GenerationRow(
                [*prompt, *written], LINE_TOKENS, temperature, seed=seed, ends=LINE_ENDS
            )
            self._write_if_all_wait()
            while number not in self.results:
                if self.broken is not None:
                    raise self.broken
                self.changed.wait()
            return self.results.pop(number)

    def _write_if_all_wait(self) -> None:
        if not self.waiting or len(self.waiting) < self.searching:
            return
        numbers, rows = list(self.waiting), list(self.waiting.values())
        self.waiting.clear()
        try:
            self.results.update(zip(numbers, self._lines(rows), strict=True))
        except Exception as error:  # noqa: BLE001 - raised again by every search that waits
            self.broken = error
        self.changed.notify_all()

    def _lines(self, rows: Sequence[GenerationRow]) -> list[tuple[tuple[int, ...], float]]:
        done = generate(self.network, rows)
        if self.critic is None:
            return [(one.ids, float(torch.tensor(one.logprobs).sum().exp())) for one in done]
        chances = likely(self.critic, [row.ids for row in rows], [one.ids for one in done])
        return [(one.ids, chance) for one, chance in zip(done, chances, strict=True)]


@torch.no_grad()
def likely(
    network: Any, before: Sequence[Sequence[int]], lines: Sequence[Sequence[int]]
) -> list[float]:
    """Return the probability that a network gives to each line after what stands before it."""
    whole = [[*a, *b] for a, b in zip(before, lines, strict=True)]
    longest = max(map(len, whole))
    ids = torch.tensor([[0] * (longest - len(one)) + one for one in whole])
    mask = torch.tensor([[int(i >= longest - len(one)) for i in range(longest)] for one in whole])
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    logits = network(input_ids=ids, attention_mask=mask, position_ids=positions).logits
    logprobs = logits[:, :-1].log_softmax(dim=2).gather(2, ids[:, 1:, None])[..., 0]
    found = [row[len(row) - len(line) :].sum() for row, line in zip(logprobs, lines, strict=True)]
    return torch.stack(found).exp().tolist()
