"""Controllers with networks of no skill, and experts of perfect skill, for tests of training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import torch

from farthing.models.base import Usage
from farthing.models.prices import Rates, TokenPrice
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Rules
from farthing_lab.corl.rollouts import ExpertReply, Voice
from farthing_lab.lm.symbols import END, NUMBERS, SYMBOLS, decode, encode
from farthing_lab.tasks.arithmetic import solve

torch.set_num_threads(1)

RULES = Rules((Expert("small"), Expert("large")), "compact", most_turns=3)
LOW, HIGH = Mode("low", 2_000), Mode("high", 90_000)
PRICE = TokenPrice((Rates(Decimal("0.05"), Decimal("0.2")),))
"""Of the controller: 50 nano-dollars a token read, 200 a token written."""


@dataclass
class Script:
    """A network that writes what it is told to, whatever it reads; it notes what it was given."""

    says: Callable[[str], str | list[int]]
    """The text so far to the turn that follows it, or to its tokens."""
    seen: list[list[int]] = field(default_factory=list)
    """The ids of each row, when a turn began."""

    def __call__(
        self, input_ids: Any, attention_mask: Any, past_key_values: Any, **_: Any
    ) -> "_Read":
        cache = past_key_values or _Cache([], [])
        if past_key_values is None:
            for ids, mask in zip(input_ids.tolist(), attention_mask.tolist(), strict=True):
                given = ids[mask.index(1) :]
                self.seen.append(given)
                turn = self.says(decode(given))
                cache.left.append(encode(turn) if isinstance(turn, str) else list(turn))
        logits = torch.full((len(cache.left), 1, len(SYMBOLS)), -4.0)
        for row, left in enumerate(cache.left):
            logits[row, 0, left.pop(0)] = 4.0
        return _Read(logits, cache)

    def parameters(self) -> Any:
        """Return something that is on the processor."""
        return iter([torch.zeros(1)])

    def forward(self) -> None:
        """Stand for the signature that the generation asks for."""


@dataclass
class _Cache:
    left: list[list[int]]
    """What each row has still to write."""
    layers: list[Any]

    def __post_init__(self) -> None:
        self.layers = [self]

    def batch_select_indices(self, places: Any) -> None:
        self.left = [self.left[place] for place in places.tolist()]


@dataclass
class _Read:
    logits: Any
    past_key_values: _Cache


@dataclass
class Perfect:
    """Experts that are always right, each at its price a call."""

    price: dict[str, int]
    """Nano-dollars a call."""
    most: int | None = None
    """What it says that a call can cost at most; None: its price."""
    says: Callable[[str], str] = solve
    asked: list[list[tuple[str, str]]] = field(default_factory=list)

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        """Return the reply to each (expert, question)."""
        self.asked.append(list(calls))
        return [ExpertReply(self.says(text), self.price[name], Usage(3, 1)) for name, text in calls]

    def largest_nano(self, expert: str, question: str) -> int:
        """Return the most that a call can cost, in nano-dollars."""
        return self.price[expert] if self.most is None else self.most


def voice(network: Any, **changed: Any) -> Voice:
    """Return a network as a controller of the project's own symbols."""
    ends = frozenset({NUMBERS[END]})
    made = Voice(network, encode, decode, ends, price=PRICE, max_tokens=12)
    return replace(made, **changed)
