"""The experts that a controller calls while it is trained: frozen models, asked many at once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from farthing.errors import ModelError
from farthing.models.base import Message, Model, Prompt, Usage


@dataclass(frozen=True)
class Reply:
    """What came of a call."""

    text: str
    cost_nano: int
    usage: Usage | None = None
    error: str = ""


class Experts(Protocol):
    """Whoever replies to calls."""

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[Reply]:
        """Return the reply to each (expert, question)."""
        ...

    def largest_nano(self, expert: str, question: str) -> int:
        """Return the most that a call can cost, in nano-dollars."""
        ...


@dataclass
class FrozenExperts:
    """Models that always reply the same, as they take the likeliest tokens: each is asked once.

    A call costs what it costs whenever it is made, whether the reply was known or not. They are
    asked in an event loop of their own; `with` closes it, and them.
    """

    models: Mapping[str, Model]
    max_tokens: int = 256
    shown: Callable[[str], str] = str
    """What of a reply the controller is shown."""
    together: int = 256
    """Most calls that are under way at once."""
    _known: dict[tuple[str, str], Reply] = field(default_factory=dict)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the models' connections and the loop; nobody can be asked any more."""
        self._runner.run(self._close())
        self._runner.close()

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[Reply]:
        """Return the reply to each (expert, question); a failed call is a reply with an error."""
        unknown = [call for call in dict.fromkeys(calls) if call not in self._known]
        if unknown:
            self._known |= zip(unknown, self._runner.run(self._all(unknown)), strict=True)
        return [self._known[call] for call in calls]

    def largest_nano(self, expert: str, question: str) -> int:
        """Return the most that a call can cost, in nano-dollars."""
        return self.models[expert].largest_cost_nano(self._prompt(question))

    async def _close(self) -> None:
        await asyncio.gather(*(model.aclose() for model in self.models.values()))

    async def _all(self, calls: Sequence[tuple[str, str]]) -> list[Reply]:
        places = asyncio.Semaphore(self.together)

        async def one(expert: str, question: str) -> Reply:
            async with places:
                return await self._one(expert, question)

        return await asyncio.gather(*(one(*call) for call in calls))

    async def _one(self, expert: str, question: str) -> Reply:
        prompt = self._prompt(question)
        try:
            done = await self.models[expert].complete(prompt)
        except ModelError as error:
            cost = self.models[expert].largest_cost_nano(prompt)
            return Reply("", cost, error=str(error))
        return Reply(self.shown(done.text), done.cost_nano or 0, done.usage)

    def _prompt(self, question: str) -> Prompt:
        return Prompt((Message("user", question),), max_tokens=self.max_tokens)
