"""Networks that write lines for many searches at once: what they ask for goes into one batch."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, TypeVar

import torch

from farthing.methods.simulators.reasoning import LINE_ENDS, LINE_TOKENS
from farthing.models.generation import Row, generate

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Asked:
    prompt: Sequence[int]
    written: Sequence[int]
    temperature: float
    seed: int


@dataclass(eq=False)
class Together:
    """A `Writer` that waits until every search waits, and then writes for all of them.

    Each row draws with a seed of its own, so that what a search gets does not depend on the others
    but for rounding.
    """

    network: Any
    """Writes."""
    critic: Any = None
    """Judges; None: the network's own log-probabilities."""
    searching: int = 0
    waiting: "dict[int, _Asked]" = field(default_factory=dict)
    results: "dict[int, tuple[tuple[int, ...], float]]" = field(default_factory=dict)
    broken: Exception | None = None
    """Why the network could not write; every search then ends with it, as none can go on."""
    asked: int = 0
    changed: Condition = field(default_factory=Condition)

    def map(self, search: Callable[[int], Result], count: int) -> list[Result]:
        """Run so many searches side by side, by their number, and return what each found."""
        self.searching = count
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(lambda number: self._run(search, number), range(count)))

    def _run(self, search: Callable[[int], Result], number: int) -> Result:
        try:
            return search(number)
        finally:
            with self.changed:
                self.searching -= 1
                self._write_if_all_wait()

    def line(
        self, prompt: Sequence[int], written: Sequence[int], temperature: float, seed: int
    ) -> tuple[tuple[int, ...], float]:
        """Return the next line and how likely the critic finds it."""
        with self.changed:
            number, self.asked = self.asked, self.asked + 1
            self.waiting[number] = _Asked(prompt, written, temperature, seed)
            self._write_if_all_wait()
            while number not in self.results:
                if self.broken is not None:
                    raise self.broken
                self.changed.wait()
            return self.results.pop(number)

    def _write_if_all_wait(self) -> None:
        if not self.waiting or len(self.waiting) < self.searching:
            return
        numbers, asked = list(self.waiting), list(self.waiting.values())
        self.waiting.clear()
        try:
            self.results.update(zip(numbers, self._lines(asked), strict=True))
        except Exception as error:  # noqa: BLE001 - raised again by every search that waits
            self.broken = error
        self.changed.notify_all()

    def _lines(self, asked: Sequence[_Asked]) -> list[tuple[tuple[int, ...], float]]:
        rows = [
            Row(
                [*one.prompt, *one.written],
                LINE_TOKENS,
                temperature=one.temperature,
                seed=one.seed,
                ends=LINE_ENDS,
            )
            for one in asked
        ]
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
