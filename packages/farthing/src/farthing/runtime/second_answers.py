"""The reference, asked again on a few questions: how often it agrees with itself.

No other model can be expected to agree with it more often. Second answers are in the journal, so
that none is paid twice, and in no trace.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import msgspec

from farthing.budgets.ledger import Balance
from farthing.errors import ModelConnectionError, ModelError
from farthing.models.base import Completion, Model, Prompt
from farthing.runtime.base import Agent, Client
from farthing.runtime.collect import Show, collect, show_nothing
from farthing.runtime.dry_run import JobEstimate, estimate
from farthing.runtime.journal import (
    Attempt,
    Entries,
    Entry,
    RecordedReply,
    StoreJournal,
    exclusive_lock,
)
from farthing.runtime.meter import Meter
from farthing.runtime.replay import Again
from farthing.tasks.base import Question
from farthing.tasks.tools import Tool, ToolReply
from farthing.traces.base import Trace
from farthing.traces.store import Store


@dataclass(frozen=True)
class _NotedJournal:
    """A journal whose traces are noted, and not stored."""

    journal: StoreJournal
    again: Again

    async def find(self, entry: Entry) -> RecordedReply:
        return await self.journal.find(entry)

    async def start(self, entry: Entry, largest_nano: int) -> int:
        return await self.journal.start(entry, largest_nano)

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        await self.journal.complete(number, reply, cost_nano)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        await self.journal.fail(number, error, cost_nano)

    async def keep(self, trace: Trace) -> None:
        self.again.note(trace.id, trace.calls[0])


def ask_again(again: Again, path: Path, cap_nano: int, show: Show = show_nothing) -> Balance:
    """Ask the reference again, within what may be spent in a store; return where the money is."""

    async def ask(journal: StoreJournal) -> None:
        recording, closing = again.open()
        noted, meter = _NotedJournal(journal, again), Meter(journal, recording.parameters)
        try:
            await collect(
                again.questions(),
                recording,
                noted,
                meter,
                watch=lambda progress: show(progress, journal.balance()),
            )
        finally:
            journal.flush()
            for closable in closing:
                await closable.aclose()

    with exclusive_lock(path), Store.open(path) as store:
        journal = StoreJournal(store, cap_nano, f"try {again.replay.file}")
        asyncio.run(ask(journal))
        return journal.balance()


@dataclass(frozen=True)
class _KnownReplies:
    """A client that takes replies from the journal alone; a call of which it has none fails."""

    journal: StoreJournal
    entries: Entries

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        known = await self.journal.find(self.entries.next_entry(model.name, prompt))
        if known.reply is None:
            raise ModelConnectionError("it was not asked yet")
        return msgspec.json.decode(known.reply, type=Completion)

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Refuse: requests are sent again without tools."""
        raise NotImplementedError


def recall_again(again: Again, path: Path) -> None:
    """Note the second answers that a store's journal has; nobody is asked."""

    async def play(store: Store) -> None:
        journal = StoreJournal(store, 0, f"try {again.replay.file}")
        recording, closing = again.open()

        def client(question: Question, number: int, agent: Agent) -> Client:
            mark = recording.parameters.get(agent.role, "")
            return _KnownReplies(journal, Entries(Attempt(question.id, number, agent.role, mark)))

        try:
            for question in again.questions():
                for call in await recording.protocol.calls(question, client):
                    again.note(question.id, call)
        finally:
            for closable in closing:
                await closable.aclose()

    if path.is_file():
        with exclusive_lock(path), Store.open(path) as store:
            asyncio.run(play(store))


def price_again(again: Again, path: Path, cap_nano: int) -> JobEstimate:
    """Say what asking the reference again would still cost; nothing is asked."""

    async def play(store: Store) -> JobEstimate:
        journal = StoreJournal(store, cap_nano, f"try {again.replay.file}")
        recording, closing = again.open()
        try:
            likely = again.replay.likely_nano()
            return await estimate(again.questions(), recording, journal, likely)
        finally:
            for closable in closing:
                await closable.aclose()

    if not path.is_file():
        with Store.open(":memory:") as store:
            return asyncio.run(play(store))
    with exclusive_lock(path), Store.open(path) as store:
        return asyncio.run(play(store))
