"""What a gateway's traffic comes to: requests, money, and what was lost."""

from dataclasses import dataclass
from datetime import datetime

from farthing.gateway.database import moment, open_database
from farthing.gateway.traffic_stored import DROPPED, UNREDACTED

_LINES = """
SELECT policy, model, count(*), CAST(sum(cost_nano) AS BIGINT), CAST(sum(later_nano) AS BIGINT),
    CAST(coalesce(sum(saved_nano), 0) AS BIGINT)
FROM traffic_requests GROUP BY policy, model ORDER BY count(*) DESC, policy, model"""
_ALL = "SELECT min(at_us), count(DISTINCT conversation) FROM traffic_requests"


@dataclass(frozen=True)
class Line:
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
class Summary:
    """What all of it comes to."""

    lines: tuple[Line, ...]
    """The most asked first."""
    conversations: int
    oldest: datetime | None
    dropped: int
    """Records that were lost under load, or because nobody could write."""
    unredacted: int
    """Records whose texts were left out because the redaction failed."""


async def summarise(where: str) -> Summary:
    """Count what a database holds.

    Raises:
        StoreError: it cannot be opened, or has no traffic.
    """
    database = await open_database(where, (), create=False)
    try:
        lines = await database.read(_LINES)
        ((oldest, conversations),) = await database.read(_ALL)
        lost = {row[0]: row[1] for row in await database.read("SELECT * FROM traffic_losses")}
    finally:
        await database.aclose()
    return Summary(
        lines=tuple(Line(*line) for line in lines),
        conversations=conversations,
        oldest=None if oldest is None else moment(oldest),
        dropped=lost.get(DROPPED, 0),
        unredacted=lost.get(UNREDACTED, 0),
    )
