"""The reference, asked again on a few questions: how often it agrees with itself.

No other model can be expected to agree with it more often. Second answers are in the journal, so
that none is paid twice, and in no trace.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from farthing.budgets.ledger import Balance
from farthing.errors import ModelError
from farthing.runtime.collect import Show, collect, show_nothing
from farthing.runtime.dry_run import JobEstimate, estimate
from farthing.runtime.journal import Entry, RecordedReply, StoreJournal, exclusive_lock
from farthing.runtime.meter import Meter
from farthing.runtime.replay import Again
from farthing.traces.base import Trace
from farthing.traces.store import Store


@dataclass(frozen=True)
class _NotedJournal:
    """A journal whose traces are noted, and not stored."""

    journal: StoreJournal
    again: Again

    async def find(self, entry: Entry) -> RecordedReply:
        """Return what is known of a call."""
        return await self.journal.find(entry)

    async def start(self, entry: Entry, largest_nano: int) -> int:
        """Write down that a try is about to be made."""
        return await self.journal.start(entry, largest_nano)

    async def complete(self, number: int, reply: str, cost_nano: int | None) -> None:
        """Write down a try's reply."""
        await self.journal.complete(number, reply, cost_nano)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        """Write down a try's failure."""
        await self.journal.fail(number, error, cost_nano)

    async def keep(self, trace: Trace) -> None:
        """Note the second answer."""
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
