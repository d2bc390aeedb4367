"""A model whose replies are written down beforehand: for tests, examples and dry runs."""

import asyncio
import time
from collections.abc import Callable, Mapping
from copy import copy

import msgspec

from farthing.errors import BadRequestError, ModelError
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.models.prices import FREE, Price, PriceTable, largest_cost_nano

Reply = str | Completion | ModelError
"""A text, a whole completion, or a failure to raise."""


class ScriptedModel:
    """Replies from a table, by the text of the last message, or from a function of the prompt.

    A text counts a token for each word. `calls` holds every prompt in the order it came.

    >>> from farthing.models.base import Message
    >>> model = ScriptedModel({"2 + 2?": "4"})
    >>> asyncio.run(model.complete(Prompt((Message("user", "2 + 2?"),)))).text
    '4'
    """

    def __init__(
        self,
        replies: Mapping[str, Reply] | Callable[[Prompt], Reply],
        *,
        name: str = "scripted",
        price: Price | None = FREE,
        latency_s: float = 0.0,
    ) -> None:
        self._reply = replies if callable(replies) else _table(replies)
        self._name = name
        self._price = price
        self._latency_s = latency_s
        self.calls: list[Prompt] = []

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._name

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply that is written down for a prompt, after the latency."""
        self.calls.append(prompt)
        started = time.perf_counter()
        await asyncio.sleep(self._latency_s)
        reply = self._reply(prompt)
        if isinstance(reply, ModelError):
            raise copy(reply)
        if isinstance(reply, Completion):
            return reply
        usage = Usage(sum(_words(m.content) for m in prompt.messages), _words(reply))
        latency_s = time.perf_counter() - started
        cost = self._price.cost_nano(usage, latency_s) if self._price else None
        return Completion(reply, self._name, "stop", usage, cost, latency_s)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars."""
        return largest_cost_nano(self._price, self._name, prompt, self._latency_s + 1.0)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class ScriptedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a scripted model, as a configuration file gives them."""

    model: str = "scripted"
    replies: dict[str, str] = {}
    """Reply to each last message."""
    otherwise: str | None = None
    """Reply to every other one; none: a failure."""
    latency_s: float = 0.0

    def price(self, prices: PriceTable) -> Price:
        """Return what the model costs; it is free unless the table says otherwise."""
        return prices.find(self.model) or FREE

    def open(self, prices: PriceTable) -> Model:
        """Return the model."""
        table = _table(self.replies)

        def reply(prompt: Prompt) -> Reply:
            known = prompt.messages[-1].content in self.replies
            return table(prompt) if known or self.otherwise is None else self.otherwise

        price = self.price(prices)
        return ScriptedModel(reply, name=self.model, price=price, latency_s=self.latency_s)


def _table(replies: Mapping[str, Reply]) -> Callable[[Prompt], Reply]:
    def reply(prompt: Prompt) -> Reply:
        question = prompt.messages[-1].content
        if question in replies:
            return replies[question]
        return BadRequestError(f"nothing is written down as a reply to {question!r}")

    return reply


def _words(text: str) -> int:
    return len(text.split())
