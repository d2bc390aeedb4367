"""What replies under one certificate cost and keep: both figures are of the same replies.

They are those that carried its promise, of a bounded number: a reply after an alarm, or of another
certificate, is none of them. Their share is estimated by those that an audit drew, each by one over
its probability, as the interval weighs them (`calibration/anytime.py`).
"""

from dataclasses import dataclass
from datetime import datetime

from farthing.gateway.completions import NONE
from farthing.gateway.database import Database, microseconds
from farthing.gateway.watching.promises import PARITY

MOST, MOST_AUDITS = 100_000, 2_000
"""Of how many replies, and of how many graded audits of them, the newest are read."""
SCHEMA = (
    """
CREATE INDEX IF NOT EXISTS traffic_under
ON traffic_requests (policy, certificate, at_us, promise, cost_nano)
WHERE certificate IS NOT NULL""",
    """
CREATE INDEX IF NOT EXISTS audits_graded ON audits (policy, certificate, at_us)
WHERE value IS NOT NULL AND purpose = 'audit'""",
)
REPLIES = f"""
SELECT count(*), CAST(coalesce(sum(cost_nano), 0) AS BIGINT), min(at_us) FROM (
    SELECT cost_nano, at_us FROM traffic_requests
    WHERE policy = $1 AND certificate = $2 AND at_us >= $3 AND promise <> '{NONE}'
    ORDER BY at_us DESC LIMIT {MOST}
) AS newest"""  # noqa: S608 - of constants
AUDITS = f"""
SELECT count(*), sum(value / probability), sum(1 / probability) FROM (
    SELECT value, probability FROM audits
    WHERE policy = $1 AND certificate = $2 AND at_us >= $3
        AND value IS NOT NULL AND purpose = 'audit'
        AND EXISTS (
            SELECT 1 FROM traffic_requests AS request
            WHERE request.id = audits.id AND request.promise <> '{NONE}'
        )
    ORDER BY at_us DESC LIMIT {MOST_AUDITS}
) AS newest"""  # noqa: S608 - of constants


@dataclass(frozen=True)
class Promised:
    """Replies that carried a certificate's promise."""

    replies: int
    cost_nano: int
    """What all of them cost."""
    graded: int
    """Audits of them that have a grade."""
    share: float | None
    """The share that kept the promise; None: no grade says so."""


async def promised(
    database: Database, policy: str, certificate: str, kind: str, since: datetime
) -> Promised | None:
    """Return what replies under a certificate came to; None where there are none.

    Args:
        database: with recorded traffic and the tables of `watching.tables.SCHEMA`.
        policy: its name.
        certificate: the mark of the certificate.
        kind: of its promise; of parity there is no share: it is about a difference.
        since: from when on.
    """
    under = (policy, certificate)
    ((replies, cost, first),) = await database.read(REPLIES, *under, microseconds(since))
    if not replies:
        return None
    ((graded, kept, weight),) = await database.read(AUDITS, *under, first)
    share = kept / weight if graded and kind != PARITY else None
    return Promised(replies, cost, graded, share)
