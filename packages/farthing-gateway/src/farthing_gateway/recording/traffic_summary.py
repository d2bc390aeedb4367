"""What a gateway's traffic comes to: requests, money, and what was lost."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from farthing.errors import StoreError
from farthing_gateway.config_sections import ALL
from farthing_gateway.recording.traffic import DROPPED, TRIAL, UNREDACTED
from farthing_gateway.storage.database import Database, microseconds, moment, open_database

_LINES = """
SELECT policy, model, count(*), CAST(sum(cost_nano) AS BIGINT), CAST(sum(later_nano) AS BIGINT),
    CAST(coalesce(sum(saved_nano), 0) AS BIGINT)
FROM traffic_requests GROUP BY policy, model ORDER BY count(*) DESC, policy, model"""
_ALL = "SELECT min(at_us), count(DISTINCT conversation) FROM traffic_requests"
_OUTSIDE = """
SELECT policy, reason, number FROM traffic_outside ORDER BY number DESC, policy, reason"""
_RECORDED = """
SELECT CAST(coalesce(sum(cost_nano + later_nano), 0) AS BIGINT) FROM traffic_requests
WHERE at_us >= $1"""
_CHARGED = """
SELECT "window", settled_nano FROM ledger_windows
WHERE account = $1 AND length("window") = 10"""
"""Of the days, whose windows are named as 2026-11-22."""


@dataclass(frozen=True)
class ModelTraffic:
    """The requests that asked for one model; money in nano-dollars."""

    policy: str | None
    model: str
    requests: int
    spent_nano: int
    later_nano: int
    """What the calls cost that were made later, in the background."""
    saved_nano: int
    """What was saved on the strongest model, of the requests of which it is known."""


@dataclass(frozen=True)
class LedgerComparison:
    """What was recorded of some days beside what the ledger was charged on them."""

    since: date
    """The first of the days, in UTC, all of which is recorded as far as is known."""
    recorded_nano: int
    charged_nano: int
    """Failed, timed-out and aborted calls among it, and those that nobody recorded."""


@dataclass(frozen=True)
class OutsideTask:
    """How many requests are outside a policy's task, and by what."""

    policy: str
    reason: str
    requests: int


@dataclass(frozen=True)
class TrafficSummary:
    """What all of it comes to."""

    lines: tuple[ModelTraffic, ...]
    """The most asked first."""
    conversations: int
    oldest: datetime | None
    dropped: int
    """Records that were lost under load, or because nobody could write."""
    unredacted: int
    """Records whose texts were left out because the redaction failed."""
    trials_left_out: int
    """Trials that there was no room for."""
    outside: tuple[OutsideTask, ...]
    """Requests that were asked of a policy, or nearly are its task, and are outside it."""
    compared: LedgerComparison | None
    """None: nothing says what the ledger was charged."""

    def share_outside(self, one: OutsideTask) -> float:
        """Return the share of some requests in all that a policy takes or nearly takes."""
        within = sum(line.requests for line in self.lines if line.policy == one.policy)
        without = sum(other.requests for other in self.outside if other.policy == one.policy)
        return one.requests / (within + without)


async def summarise(where: str) -> TrafficSummary:
    """Count what a database holds."""
    database = await open_database(where)
    try:
        lines = await database.read(_LINES)
        ((oldest, conversations),) = await database.read(_ALL)
        lost = {row[0]: row[1] for row in await database.read("SELECT * FROM traffic_losses")}
        outside = await outside_tasks(database)
        compared = None if oldest is None else await _compared(database, moment(oldest))
    finally:
        await database.aclose()
    return TrafficSummary(
        lines=tuple(ModelTraffic(*line) for line in lines),
        conversations=conversations,
        oldest=None if oldest is None else moment(oldest),
        dropped=lost.get(DROPPED, 0),
        unredacted=lost.get(UNREDACTED, 0),
        trials_left_out=lost.get(TRIAL, 0),
        outside=outside,
        compared=compared,
    )


async def outside_tasks(database: Database) -> tuple[OutsideTask, ...]:
    """Return which requests are outside a task, the most first; none where nobody counted."""
    try:
        rows = await database.read(_OUTSIDE)
    except StoreError:  # an older version wrote it
        return ()
    return tuple(OutsideTask(*row) for row in rows)


async def _compared(database: Database, oldest: datetime) -> LedgerComparison | None:
    """Compare what is recorded with what the ledger in the same database was charged.

    Of the oldest day some requests may have been deleted, where the ledger knows an earlier one: it
    then begins with the next.
    """
    try:
        days = {row[0]: row[1] for row in await database.read(_CHARGED, ALL)}
    except StoreError:  # there is no ledger
        return None
    first = oldest.date()
    if any(day < first.isoformat() for day in days):
        first += timedelta(days=1)
    since = [nano for day, nano in days.items() if day >= first.isoformat()]
    if not since:
        return None
    midnight = datetime.combine(first, time.min, UTC)
    ((recorded,),) = await database.read(_RECORDED, microseconds(midnight))
    return LedgerComparison(first, recorded, sum(since))
