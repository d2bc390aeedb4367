"""The desk of a collection: known calls come from the log, new ones are logged and paid for."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

import msgspec

from farthing.errors import BudgetError, ModelError
from farthing.models.base import Completion, Model, Prompt
from farthing.runtime.journal import Attempt, Books, Entries, Entry
from farthing.tasks.tools import Tool, ToolReply

T = TypeVar("T", Completion, ToolReply)

_calling: ContextVar[Entry] = ContextVar("_calling")
"""The call that a try belongs to: between the two, inside a model, are its retries."""


class Till:
    """Where every single try is paid: log and reservation first, then the call, then the bill.

    Where the cap leaves no room while other tries are under way, a try waits for what they do not
    use, in the order of arrival. When there is no room and nothing to wait for, the till closes:
    tries under way are brought to an end, and none is begun.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._line = asyncio.Lock()
        self._change = asyncio.Event()
        self._under_way = 0
        self.closed: BudgetError | None = None
        """Why no more tries are begun."""

    def close(self, why: BudgetError) -> None:
        """Begin no more tries; the first reason counts."""
        if self.closed is None:
            self.closed = why
        self._change.set()

    async def pay(self, entry: Entry, largest_nano: int, make: Callable[[], Awaitable[T]]) -> T:
        """Make one try of a call.

        A try that is cancelled stays in the log as started: nobody knows what it cost.

        Args:
            entry: the call.
            largest_nano: the most that the try can cost, in nano-dollars.
            make: makes it.

        Raises:
            BudgetError: the till is closed; nothing was sent.
            ModelError: the try failed.
        """
        number = await self._start(entry, largest_nano)
        try:
            reply = await make()
        except ModelError as error:
            await self._books.fail(number, error.kind, str(error), error.cost_nano)
            raise
        else:
            cost = _cost_nano(reply, largest_nano)
            await self._books.complete(number, msgspec.json.encode(reply).decode(), cost)
            return reply
        finally:
            self._under_way -= 1
            self._change.set()

    async def _start(self, entry: Entry, largest_nano: int) -> int:
        if not self._line.locked():
            number = await self._try_to_start(entry, largest_nano)
            if number is not None:
                return number
            self._change.set()  # the first in line may have counted on it
        async with self._line:
            while not self.closed:
                self._change.clear()
                number = await self._try_to_start(entry, largest_nano)
                if number is not None:
                    return number
                await self._change.wait()
        raise BudgetError(str(self.closed))

    async def _try_to_start(self, entry: Entry, largest_nano: int) -> int | None:
        """Return the number of a try that may be made; None where there is no room for it now."""
        if self.closed:
            return None
        self._under_way += 1
        try:
            return await self._books.start(entry, largest_nano)
        except BaseException as error:
            self._under_way -= 1
            if not isinstance(error, BudgetError):
                self._change.set()
                raise
            if not self._under_way:
                self.close(error)
            return None


def _cost_nano(reply: Completion | ToolReply, largest_nano: int) -> int:
    return largest_nano if reply.cost_nano is None else reply.cost_nano


class Paid:
    """A model each of whose tries goes across the till; belongs inside the retries."""

    def __init__(self, model: Model, till: Till) -> None:
        self._model = model
        self._till = till

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._model.name

    async def complete(self, prompt: Prompt) -> Completion:
        """Make one try, for the desk that is asking; raises like the till."""
        largest = self._model.largest_cost_nano(prompt)
        return await self._till.pay(_calling.get(), largest, lambda: self._model.complete(prompt))

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one try of this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return self._model.largest_cost_nano(prompt)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


class LoggedDesk:
    """The desk of one attempt. The models that are asked across it must be `Paid` inside."""

    def __init__(self, attempt: Attempt, books: Books, till: Till) -> None:
        self._entries = Entries(attempt)
        self._books = books
        self._till = till

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Return the recorded reply, or have the model answer; see `Desk`."""
        call = self._entries.following(model.name, prompt)
        known = await self._books.find(call)
        if known.reply is not None:
            completion = msgspec.json.decode(known.reply, type=Completion)
            return replace(completion, cost_nano=known.spent_nano, tries=known.tries)
        _calling.set(call)
        completion = await model.complete(prompt)
        if not known.tries:
            return completion
        cost = None if completion.cost_nano is None else completion.cost_nano + known.spent_nano
        return replace(completion, cost_nano=cost, tries=completion.tries + known.tries)

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Return the recorded reply, or have the tool answer; see `Desk`."""
        call = self._entries.following(tool.name, query)
        known = await self._books.find(call)
        if known.reply is not None:
            reply = msgspec.json.decode(known.reply, type=ToolReply)
            return replace(reply, cost_nano=known.spent_nano)
        reply = await self._till.pay(call, tool.cost_nano, lambda: tool.run(query))
        return replace(reply, cost_nano=reply.cost_nano + known.spent_nano)
