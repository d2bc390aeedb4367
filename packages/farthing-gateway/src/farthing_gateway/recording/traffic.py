"""What passed through the gateway, kept beside its ledger: to learn from, and to account for.

Writing never holds a request up: a bounded queue, and one task that writes what waits in it. What
comes while a batch is written waits for the next one, so that under load a commit is shared by
hundreds of requests. Beyond the bound requests are answered all the same and their traces dropped,
which is counted.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from farthing.errors import StoreError
from farthing.traces.base import Call
from farthing_gateway.monitoring import event_writer
from farthing_gateway.recording import failures, traffic_sums
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.redaction import Redact, load_redaction
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic_rows import (
    ATTACH,
    DELETE,
    FIND,
    INSERT,
    LOSE,
    OUTSIDE,
    SELECT,
    later_row,
    passed_from,
    row,
)
from farthing_gateway.storage.database import Database, Row, Step, microseconds, open_database

WAITING = 2_000
"""Records that may wait to be written."""
BATCH = 500
"""Records that are written in one transaction at most."""
LINGER_S = 0.05
"""How long the first record of a batch waits for others."""
TRIES = 3
"""Times that a batch is tried before it is given up."""
PAUSE_S = 0.5
"""How long to wait before a batch is tried again."""
DROPPED, UNREDACTED, TRIAL = "dropped", "unredacted", "trial"
_EVER = -(2**62)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Later:
    """Calls that belong to a question that passed before."""

    trace: str
    calls: Sequence[Call]
    also: Sequence[Step] = ()
    """Statements of the same transaction."""


_Record = RequestRecord | FailedRequest | _Later


class Traffic:
    """Keeps what passed; other processes may do so at the same time."""

    def __init__(self, database: Database, keeping: TextRetention, waiting: int = WAITING) -> None:
        """Begin to write; a loop has to run.

        Args:
            database: of a gateway.
            keeping: which texts are written.
            waiting: records that may wait to be written.
        """
        self._database = database
        self._keeping = keeping
        self.worker = uuid4().hex
        """Who writes: what it draws for an audit is its own to ask first."""
        self._most = waiting
        self._waiting: deque[_Record] = deque()
        self._lost: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._outside: Counter[tuple[str, str]] = Counter()
        self._accepted = self._finished = 0
        self._closed = False
        self._changed = asyncio.Condition()
        self._filled = asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    @property
    def dropped(self) -> int:
        """Records that were lost since it was opened: the queue was full, or nobody could write."""
        return self._lost[DROPPED]

    @property
    def unredacted(self) -> int:
        """Records whose texts were left out since then because the redaction failed."""
        return self._lost[UNREDACTED]

    def put(self, passed: RequestRecord) -> None:
        """Keep what passed, without waiting; from the event loop's thread."""
        self._offer(passed)

    def failed(self, request: FailedRequest) -> None:
        """Keep that a request was refused or failed, without waiting."""
        self._offer(request)

    def outside(self, policy: str, reason: str) -> None:
        """Count a request that is outside a policy's task; written with what passes next."""
        self._outside[policy, reason] += 1

    def left_out(self) -> None:
        """Count a trial that was left out under load; written with what passes next."""
        self._lost[TRIAL] += 1

    async def attach(self, id: str, calls: Sequence[Call], *also: Step) -> None:  # noqa: A002
        """Add calls to the same question that were made later, in the background.

        A role that answered already stays as it is. Where the trace was dropped or deleted, so are
        these.

        Args:
            id: of the trace.
            calls: to be added.
            also: what else is written in the same transaction.
        """
        self._offer(_Later(id, tuple(calls), also))
        await self.flush()

    async def find(self, id: str) -> RequestRecord | None:  # noqa: A002
        """Return what passed under an id, of what is written; None: nothing."""
        rows = await self._database.read(FIND, id)
        return passed_from(rows[0]) if rows else None

    async def flush(self) -> None:
        """Return once all that was put before is written, or given up and counted."""
        upto = self._accepted
        async with self._changed:
            await self._changed.wait_for(lambda: self._finished >= upto)

    async def read(
        self, policy: str | None = None, since: datetime | None = None
    ) -> AsyncIterator[RequestRecord]:
        """Yield what passed, in the order of its time.

        Args:
            policy: only what this policy decided.
            since: only conversations that began then or later, whole. So what is read of one
                period and of the next has no conversation in common.
        """
        begun = _EVER if since is None else microseconds(since)
        place: tuple[int, str] = (_EVER, "")
        while rows := await self._database.read(SELECT, policy, begun, *place):
            for values in rows:
                yield passed_from(values)
            place = rows[-1][1], rows[-1][0]

    async def delete_before(self, at: datetime) -> int:
        """Delete what passed or failed before a moment; return how many requests were answered."""
        while await self._database.write(Step(failures.DELETE, [(microseconds(at),)])):
            pass
        deleted = 0
        while some := await self._database.write(Step(DELETE, [(microseconds(at),)])):
            deleted += some
        return deleted

    async def aclose(self) -> None:
        """Write all that waits, and close."""
        self._closed = True
        await self.flush()
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)
        try:
            await self._try([], {})
        except StoreError as problem:
            _log.warning("what traffic was lost could not be noted: %s", problem)
        finally:
            await self._database.aclose()

    def _offer(self, record: _Record) -> None:
        if self._closed or len(self._waiting) >= self._most:
            self._lost[DROPPED] += 1
            return
        self._accepted += 1
        self._waiting.append(record)
        self._filled.set()

    async def _write_all(self) -> None:
        while True:
            await self._filled.wait()
            await asyncio.sleep(LINGER_S)
            self._filled.clear()
            while self._waiting:
                taken = min(len(self._waiting), BATCH)
                batch = [self._waiting.popleft() for _ in range(taken)]
                await self._write(batch)
                async with self._changed:
                    self._finished += len(batch)
                    self._changed.notify_all()

    async def _write(self, batch: Sequence[_Record]) -> None:
        """Write a batch, or count it as lost; never raise, or nothing more would be written."""
        try:
            await self._try(*await asyncio.to_thread(self._steps, batch))
        except Exception as problem:  # noqa: BLE001 - the traffic goes on
            self._lost[DROPPED] += len(batch)
            _log.warning("%d records of traffic were lost: %s", len(batch), problem)

    async def _try(self, steps: Sequence[Step], newly_lost: Mapping[str, int]) -> None:
        """Write, and tell the database what was lost, in one transaction."""
        lost = self._lost - self._told + Counter(newly_lost)
        told = [Step(LOSE, sorted(lost.items()))] if lost else []
        outside = Counter(self._outside)
        if outside:
            told.append(Step(OUTSIDE, [(*of, n) for of, n in sorted(outside.items())]))
        for pause in (*[PAUSE_S] * (TRIES - 1), None):
            try:
                if steps or told:
                    await self._database.write(*steps, *told)
                break
            except StoreError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        self._lost.update(newly_lost)
        self._told.update(lost)
        self._outside -= outside

    def _steps(self, batch: Sequence[_Record]) -> tuple[list[Step], Counter[str]]:
        inserts: list[Row] = []
        updates: list[Row] = []
        counted: list[RequestRecord] = []
        proxy: list[tuple[RequestRecord, RequestRecord]] = []
        also: list[Step] = []
        added: list[tuple[str, Sequence[Call]]] = []
        refused: dict[str, FailedRequest] = {}
        refused_rows: list[Row] = []
        lost: Counter[str] = Counter()
        for record in batch:
            try:
                if isinstance(record, FailedRequest):
                    refused_rows.append(failures.row(failures.kept(record, self._keeping)))
                    refused.setdefault(record.id, record)
                    continue
                if isinstance(record, RequestRecord):
                    passed, failed = self._keeping.passed(record)
                    inserts.append(row(passed))
                    counted.append(passed)
                    proxy.append((record, passed))
                else:
                    calls, failed = self._keeping.calls(record.calls)
                    updates.append(later_row(record.trace, calls))
                    added.append((record.trace, calls))
                    also += record.also
                lost[UNREDACTED] += failed
            except Exception as problem:  # noqa: BLE001 - one bad record takes no other with it
                lost[DROPPED] += 1
                _log.warning("a record of traffic was lost: %s", type(problem).__name__)
        kinds = ((INSERT, inserts), (ATTACH, updates), (failures.INSERT, refused_rows))
        written = [Step(sql, rows) for sql, rows in kinds if rows]
        sums_before = traffic_sums.before(counted, refused.values())
        sums_after = traffic_sums.after(added)
        noted = event_writer.before(proxy, self.worker)
        return [*sums_before, *noted, *written, *sums_after, *also], +lost


__all__ = ["Redact", "RequestRecord", "Traffic", "load_redaction", "open_traffic"]


async def open_traffic(where: str, redact: Redact | None, *, keep_prompts: bool) -> Traffic:
    """Open the traffic of a database.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.
        redact: goes over every text before it is written; None: texts are kept as they are, less
            what looks like a key.
        keep_prompts: whether texts are kept at all. Without, neither messages nor questions nor
            replies are: what was asked, what it cost and how long it took remain.
    """
    return Traffic(await open_database(where), TextRetention(redact, keep_prompts))
