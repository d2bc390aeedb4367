"""What replies under one certificate cost and keep: both figures are of the same replies.

They are those that carried its promise, of a bounded number: a reply after an alarm, or of another
certificate, is none of them. Their share is estimated by those that an audit drew, each by one over
its probability, as the interval weighs them (`promises/statistics/confidence_sequence.py`).
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.confidence_sequence import MeanState, interval, observe
from farthing_gateway.completions import NONE
from farthing_gateway.monitoring.promises import is_difference
from farthing_gateway.storage.database import Database, microseconds

MOST, MOST_AUDITS = 100_000, 2_000
"""Of how many replies, and of how many graded audits of them, the newest are read."""
DELTA = 0.05
REPLIES = f"""
SELECT count(*), CAST(coalesce(sum(cost_nano), 0) AS BIGINT), min(at_us) FROM (
    SELECT cost_nano, at_us FROM traffic_requests
    WHERE policy = $1 AND certificate = $2 AND at_us >= $3 AND promise <> '{NONE}'
    ORDER BY at_us DESC LIMIT {MOST}
) AS newest"""  # noqa: S608 - of constants
AUDITS = f"""
SELECT value, probability FROM audits
WHERE policy = $1 AND certificate = $2 AND at_us >= $3
    AND value IS NOT NULL AND purpose = 'audit'
    AND EXISTS (
        SELECT 1 FROM traffic_requests AS request
        WHERE request.id = audits.id AND request.promise <> '{NONE}'
    )
ORDER BY at_us DESC LIMIT {MOST_AUDITS}"""  # noqa: S608 - of constants


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
    interval: tuple[float, float] | None = None
    """Of that share among all such replies, at a confidence of `1 - delta`; None without it."""


async def promised(
    database: Database,
    policy: str,
    certificate: str,
    kind: str,
    since: datetime,
    delta: float = DELTA,
) -> Promised | None:
    """Return what replies under a certificate came to; None where there are none.

    Args:
        database: of a gateway.
        policy: its name.
        certificate: the mark of the certificate.
        kind: of its promise; of parity there is no share: it is about a difference.
        since: from when on.
        delta: the probability with which the interval may miss.
    """
    under = (policy, certificate)
    ((replies, cost, first),) = await database.read(REPLIES, *under, microseconds(since))
    if not replies:
        return None
    rows = await database.read(AUDITS, *under, first)
    audits: FloatArray = np.array(rows[::-1], dtype=float).reshape(-1, 2)
    if not len(audits) or is_difference(kind):
        return Promised(replies, cost, len(audits), None)
    values, likely = audits.T
    weights = likely.min() / likely
    state = observe(MeanState.begin(delta), values, weights)
    share = float(np.average(values, weights=weights))
    return Promised(replies, cost, len(audits), share, interval(state))
