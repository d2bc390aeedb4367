"""The journal: every try of every paid call, written down before it is made and after it.

A call is known by its content, so that a run that was killed finds again what it had paid for.
The log of tries and the job's ledger are in the store's own file, and change in the same
transaction.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import msgspec

from farthing.budgets.ledger import Balance, Reservation, SqliteLedger, atomic
from farthing.errors import ModelError, StoreError
from farthing.models.base import Completion, Prompt, Usage
from farthing.models.prices import largest_usage
from farthing.tasks.tools import ToolReply
from farthing.traces.base import Trace
from farthing.traces.store import Store

GATHER_S = 0.005
"""Seconds in which writes are gathered into one commit; hardly anything beside a model's reply."""


@dataclass(frozen=True)
class Attempt:
    """Whose call it is: what sets apart calls of equal content that are to be made each."""

    question: str
    round: int
    role: str
    parameters: str = ""
    """Settings of the model that no prompt shows, such as `reasoning_effort`."""


@dataclass(frozen=True)
class Entry:
    """A call that is about to be made, or to be found."""

    attempt: Attempt
    asked: str
    """Name of the model or tool."""
    key: str
    """SHA-256 of attempt, name, parameters and messages, in hexadecimal."""
    tokens: int = 0
    """The most tokens that a try of it can take, read and written."""


def entry(
    attempt: Attempt, asked: str, content: Any, occurrence: int, longest: Prompt | None = None
) -> Entry:
    """Return the entry of a call to a model or tool, `asked`, which sends `content`.

    `occurrence` is how often this attempt has sent the same before; `longest` is the prompt with
    the most output tokens that the call can have, where those are more than it says.
    """
    text = msgspec.json.encode([attempt, asked, content, occurrence])
    prompt = longest or content
    largest = largest_usage(prompt) if isinstance(prompt, Prompt) else Usage(0, 0)
    tokens = largest.input_tokens + largest.output_tokens
    return Entry(attempt, asked, sha256(text).hexdigest(), tokens)


class Entries:
    """The entries of one attempt's calls; what it sends again is a call of its own."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self._sent: Counter[tuple[str, Any]] = Counter()

    def next_entry(self, asked: str, content: Any, longest: Prompt | None = None) -> Entry:
        """Return the entry of the call that is made next; see `entry`."""
        occurrence = self._sent[asked, content]
        self._sent[asked, content] += 1
        return entry(self.attempt, asked, content, occurrence, longest)


@dataclass(frozen=True)
class RecordedReply:
    """What the journal knows of a call."""

    reply: str | None = None
    """JSON of the reply; None where none was ever recorded."""
    spent_nano: int = 0
    """What the tries with a known outcome cost."""
    tries: int = 0


class Journal(Protocol):
    """Log, ledger and store of a job, as the meter sees them; they may be in another process."""

    async def find(self, entry: Entry) -> RecordedReply:
        """Return what is known of a call."""
        ...

    async def start(self, entry: Entry, largest_nano: int) -> int:
        """Write down that a try is about to be made, its money set aside; return its number."""
        ...

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        """Write down a try's reply and its cost; an unknown cost counts as the largest."""
        ...

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        """Write down a try's failure and what it cost, unknown likewise."""
        ...

    async def keep(self, trace: Trace) -> None:
        """Store a finished trace, at once and whole."""
        ...


@dataclass(frozen=True)
class UnknownOutcome:
    """A try whose outcome nobody knows: its process died before a reply was recorded."""

    question: str
    round: int
    role: str
    asked: str
    reserved_nano: int
    """What it counts as."""


@dataclass(frozen=True)
class FailedTries:
    """Tries of one role that failed in one way."""

    role: str
    kind: str
    tries: int
    cost_nano: int
    """What they count as: a try whose outcome is unknown counts at the most it can cost."""
    example: str
    """What one of them said."""


class StoreJournal:
    """The journal in the file of a trace store; one run at a time may write it.

    What many calls write within a few milliseconds is one commit, and each goes on once it is
    durable. `flush` ends the last one.
    """

    def __init__(self, store: Store, cap_nano: int, source: str) -> None:
        """Take over the journal; tries that a dead run left are charged in full.

        The cap is on everything that was ever spent in this store. `source` is what it calls the
        origin of the traces.
        """
        self._store = store
        self._connection = store.connection
        self._ledger = SqliteLedger(store.connection, cap_nano)
        self._source = source
        self._open: dict[int, Reservation] = {}
        self._waiting: list[asyncio.Future[None]] | None = None
        # What is committed survives the process. Waiting for the disk as well, against a power
        # cut, would take milliseconds three times a call, in which no other call moves.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with atomic(self._connection):
            self._connection.execute(
                "UPDATE call_log SET state = 'unknown', cost_nano = reserved_nano"
                " WHERE state = 'started'"
            )
            self._ledger.charge_abandoned()

    def balance(self) -> Balance:
        """Return where the money stands."""
        return self._ledger.balance()

    def unknown(self) -> list[UnknownOutcome]:
        """Return every try of unknown outcome that the store has ever seen."""
        rows = self._connection.execute(
            "SELECT question, round, role, asked, reserved_nano FROM call_log"
            " WHERE state = 'unknown' ORDER BY number"
        )
        return [UnknownOutcome(*row) for row in rows]

    def failures(self) -> list[FailedTries]:
        """Return the tries that failed, by role and kind of failure; the most expensive first."""
        rows = self._connection.execute(
            "SELECT role, error_type, count(*), sum(cost_nano), min(error_message) FROM call_log"
            " WHERE state = 'failed' GROUP BY role, error_type ORDER BY 4 DESC, 3 DESC"
        )
        return [FailedTries(*row) for row in rows]

    def mean_cost_nano(self) -> dict[str, float]:
        """Return what one call of each role cost on average, where the journal has any."""
        rows = self._connection.execute(
            "SELECT role, avg(cost) FROM (SELECT role, sum(cost_nano) AS cost FROM call_log"
            " WHERE state IN ('completed', 'failed') GROUP BY question, round, role"
            " HAVING max(state = 'completed')) GROUP BY role"
        )
        return dict(rows.fetchall())

    def texts(self, role: str) -> Iterator[str]:
        """Yield what a role's models replied."""
        rows = self._connection.execute(
            "SELECT reply FROM call_log WHERE role = ? AND state = 'completed'", (role,)
        )
        for (reply,) in rows:
            yield msgspec.json.decode(reply, type=Completion).text

    async def find(self, entry: Entry) -> RecordedReply:
        """Return what is known of a call."""
        reply, spent, tries = self._connection.execute(
            "SELECT max(reply), coalesce(sum(cost_nano), 0), count(*) FROM call_log"
            " WHERE key = ? AND state IN ('completed', 'failed')",
            (entry.key,),
        ).fetchone()
        return RecordedReply(reply, spent, tries)

    async def start(self, entry: Entry, largest_nano: int) -> int:
        """Write down that a try is about to be made; see `Journal`."""
        attempt = entry.attempt
        row = (entry.key, attempt.question, attempt.round, attempt.role, entry.asked, largest_nano)
        waiting = self._write()
        # If the second step ever failed, the money would stay set aside, and be charged in full.
        reservation = self._ledger.reserve(largest_nano)
        [(number,)] = self._connection.execute(
            "INSERT INTO call_log (key, question, round, role, asked, state, reserved_nano)"
            " VALUES (?, ?, ?, ?, ?, 'started', ?) RETURNING number",
            row,
        ).fetchall()
        self._open[number] = reservation
        await _end(waiting)
        return int(number)

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        """Write down a try's reply and its cost; see `Journal`."""
        said = msgspec.json.encode(reply).decode()
        await self._finish(number, cost_nano, "completed", said, None, None)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        """Write down a try's failure and what it cost; see `Journal`."""
        await self._finish(number, cost_nano, "failed", None, error.kind, str(error))

    async def keep(self, trace: Trace) -> None:
        """Store a finished trace, at once and whole, in the place of an earlier one of its id."""
        waiting = self._write()
        self._store.replace(trace, self._source)
        await _end(waiting)

    def flush(self) -> None:
        """Commit what was written; whoever waits for it goes on."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        problem = self._commit()
        for future in waiting:
            if future.done():  # its task was cancelled; what it wrote stays
                continue
            if problem:
                future.set_exception(problem)
            else:
                future.set_result(None)

    def _write(self) -> list[asyncio.Future[None]]:
        """Begin what the next milliseconds write, or join it; return who waits for its end."""
        if self._waiting is None:
            self._connection.execute("BEGIN IMMEDIATE")
            self._waiting = []
            asyncio.get_running_loop().call_later(GATHER_S, self.flush)
        return self._waiting

    def _commit(self) -> sqlite3.Error | None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as problem:
            return problem
        return None

    async def _finish(self, number: int, cost_nano: int | None, *outcome: str | None) -> None:
        waiting, held = self._write(), self._open.pop(number)
        cost = held.nano if cost_nano is None else cost_nano
        self._connection.execute(
            "UPDATE call_log SET cost_nano = ?, state = ?, reply = ?, error_type = ?,"
            " error_message = ?, finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
            " WHERE number = ?",
            (cost, *outcome, number),
        )
        self._ledger.settle(held, cost)
        await _end(waiting)


async def _end(waiting: list[asyncio.Future[None]]) -> None:
    """Wait until a transaction is durable; raises what kept it from being so."""
    committed = asyncio.get_running_loop().create_future()
    waiting.append(committed)
    await committed


@contextmanager
def exclusive_lock(path: str | Path) -> Iterator[None]:
    """Be the only collection that writes into a store while the block runs.

    A second SQLite file beside the store is held locked; the lock ends with the process, however
    it ends.
    """
    if not Path(path).absolute().parent.is_dir():
        raise StoreError(f"{path}: its folder does not exist; make it first")
    with closing(sqlite3.connect(f"{path}.lock", isolation_level=None, timeout=0)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as problem:
            raise StoreError(
                f"{path}: cannot be collected into ({problem}); see that no other collection is "
                "writing it and that its folder can be written"
            ) from problem
        yield
