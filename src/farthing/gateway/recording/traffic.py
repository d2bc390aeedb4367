"""What passed through the gateway, kept beside its ledger: to learn from, and to account for.

Writing never holds a request up. What waits is bounded; beyond that, requests are answered all the
same and their traces dropped, which is counted.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from farthing.gateway.monitoring import tables
from farthing.gateway.recording import traffic_rows, traffic_sums
from farthing.gateway.recording.record import RequestRecord
from farthing.gateway.recording.redaction import Redact, load_redaction
from farthing.gateway.recording.text_retention import TextRetention
from farthing.gateway.recording.traffic_store import StoredTraffic
from farthing.storage.database import Step, open_database
from farthing.traces.base import Call

__all__ = ["Redact", "RequestRecord", "Traffic", "load_redaction", "open_traffic"]


class Traffic(Protocol):
    """Keeps what passed; other processes may do so at the same time."""

    @property
    def dropped(self) -> int:
        """Records that were lost since it was opened: the queue was full, or nobody could write."""
        ...

    @property
    def unredacted(self) -> int:
        """Records whose texts were left out since then because the redaction failed."""
        ...

    @property
    def worker(self) -> str:
        """Who writes: what it draws for an audit is its own to ask first."""
        ...

    def put(self, passed: RequestRecord) -> None:
        """Keep what passed, without waiting; from the event loop's thread."""
        ...

    def outside(self, policy: str, reason: str) -> None:
        """Count a request that is outside a policy's task; written with what passes next."""
        ...

    def left_out(self) -> None:
        """Count a trial that was left out under load; written with what passes next."""
        ...

    async def flush(self) -> None:
        """Return once all that was put before is written, or given up and counted."""
        ...

    def read(
        self, policy: str | None = None, since: datetime | None = None
    ) -> AsyncIterator[RequestRecord]:
        """Yield what passed, in the order of its time.

        Args:
            policy: only what this policy decided.
            since: only conversations that began then or later, whole. So what is read of one
                period and of the next has no conversation in common.
        """
        ...

    async def attach(self, id: str, calls: Sequence[Call], *also: Step) -> None:  # noqa: A002
        """Add calls to the same question that were made later, in the background.

        A role that answered already stays as it is. Where the trace was dropped or deleted, so are
        these.

        Args:
            id: of the trace.
            calls: to be added.
            also: what else is written in the same transaction.
        """
        ...

    async def find(self, id: str) -> RequestRecord | None:  # noqa: A002
        """Return what passed under an id, of what is written; None: nothing."""
        ...

    async def delete_before(self, at: datetime) -> int:
        """Delete what passed before a moment; return how many requests that was."""
        ...

    async def aclose(self) -> None:
        """Write all that waits, and close."""
        ...


async def open_traffic(
    where: str,
    redact: Redact | None,
    keep_prompts: bool,  # noqa: FBT001
    *,
    create: bool = True,
) -> Traffic:
    """Open the traffic of a database.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.
        redact: goes over every text before it is written; None: texts are kept as they are, less
            what looks like a key.
        keep_prompts: whether texts are kept at all. Without, neither messages nor questions nor
            replies are: what was asked, what it cost and how long it took remain.
        create: whether an SQLite file that does not exist is made, and tables that lack.

    Raises:
        StoreError: it cannot be opened.
    """
    schema = (*traffic_rows.SCHEMA, *traffic_sums.SCHEMA, *tables.SCHEMA)
    return StoredTraffic(
        await open_database(where, schema, create=create), TextRetention(redact, keep_prompts)
    )
