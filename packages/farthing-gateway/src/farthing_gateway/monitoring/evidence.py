"""The audits of a period: complete questions that chance drew from a policy's live traffic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from farthing.traces.splits import chance
from farthing.traces.system import System, changes
from farthing_gateway.monitoring.bundle_path import Place
from farthing_gateway.recording.export import Pool, as_pool
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic_rows import COLUMNS, passed_from
from farthing_gateway.storage.database import Database, microseconds

_DRAWN = (
    COLUMNS
    + """
WHERE policy = $1 AND mode = $2 AND audited = 1 AND (at_us, id) > ($3, $4)
ORDER BY at_us, id LIMIT 200"""
)
_ALL = """
SELECT count(*), min(at_us), max(at_us),
    sum(CASE WHEN certificate IS NOT NULL AND audit IS NULL THEN 1 ELSE 0 END)
FROM traffic_requests WHERE policy = $1 AND mode = $2 AND at_us >= $3"""
_GOLD = """
SELECT feedback.id, feedback.gold FROM feedback JOIN traffic_requests AS request
    ON request.id = feedback.id
WHERE request.policy = $1 AND request.mode = $2 AND request.at_us >= $3 AND audited = 1
    AND feedback.gold IS NOT NULL"""
_DAY_US = 86_400_000_000
THINNED = "thinned"


@dataclass(frozen=True)
class Audits:
    """What a period's audits come to."""

    pool: Pool
    """Those that every model answered, and nothing else."""
    system: System | None
    """What the models were, by the last of them; None where nobody knows."""
    drawn: int
    """Requests that an audit drew."""
    notes: tuple[str, ...]
    """What was left out, and why."""
    requests: int
    """Requests that the mode decided in the period, drawn or not."""
    days: float
    """From the first of them to the last."""

    @property
    def requests_a_day(self) -> float | None:
        """None where the period is too short to say: less than a minute."""
        return None if self.days < 1 / 1_440 else self.requests / self.days


async def audited_traces(
    database: Database, place: Place, since: datetime, *, gold: bool, seed: int = 0
) -> Audits:
    """Return the complete audits of a policy's mode since a moment.

    Chance alone drew them, each request with a probability that was recorded with it. Where that
    changed within the period, audits of the times with more of them are thinned, by a draw of their
    own, to the smallest one: each request is then as likely to be among them as any other.

    Args:
        database: of the gateway; it is only read.
        place: the policy's mode; the models of its pool have to answer.
        since: the period begins then.
        gold: whether it takes an accepted answer, which feedback gives, to grade them. Then those
            without one are left out.
        seed: of the thinning.
    """
    drawn = await _read(database, place, since)
    ((requests, first, last, never),) = await database.read(_ALL, *place.names, microseconds(since))
    even, thinned = thin(drawn, seed)
    ungraded = 0
    if gold:
        known: dict[str, str] = dict(await database.read(_GOLD, *place.names, microseconds(since)))
        ungraded = sum(one.id not in known for one in even)
        even = [
            replace(one, trace=msgspec.structs.replace(one.trace, gold=[known[one.id]]))
            for one in even
            if one.id in known
        ]
    pool = as_pool(even, place.section.pool)
    system = next((one for one in reversed(pool.systems) if one is not None), None)
    kept, pending, older = [], 0, 0
    for trace, made in zip(pool.traces, pool.systems, strict=True):
        pending += trace.truncated
        other = system is not None and made is not None and bool(changes(made, system))
        older += other and not trace.truncated
        if not trace.truncated and not other:
            kept.append((trace, made))
    notes = (
        f"{never:,} requests were up for no audit: nothing is proved of such" if never else "",
        _note(thinned, "left out by chance, so that all of the period are equally likely"),
        _note(ungraded, "left out, whose accepted answer nobody sent: of those nothing is proved"),
        _note(pending, "not complete yet"),
        _note(older, "left out, since a model, a prompt or a price was another then"),
        _note(pool.left_out, "left out, which no pool answered"),
    )
    return Audits(
        pool=Pool([one for one, _ in kept], [one for _, one in kept], pool.models, pool.left_out),
        system=system,
        drawn=len(drawn),
        notes=tuple(filter(None, notes)),
        requests=requests,
        days=((last or 0) - (first or 0)) / _DAY_US,
    )


def thin(drawn: Sequence[RequestRecord], seed: int) -> tuple[list[RequestRecord], int]:
    """Return audits that are equally likely, and how many were left out for that.

    One of probability p stays with probability p_min / p, by its id and the seed alone.
    """
    probabilities = [one.audit or 0.0 for one in drawn]
    least = min(probabilities, default=0.0)
    kept = [
        one
        for one, likely in zip(drawn, probabilities, strict=True)
        if likely <= least or chance(THINNED, one.id, seed) < least / likely
    ]
    return kept, len(drawn) - len(kept)


async def _read(database: Database, place: Place, since: datetime) -> list[RequestRecord]:
    found: list[RequestRecord] = []
    at = microseconds(since), ""  # no id is empty, so this is before the first of that moment
    while rows := await database.read(_DRAWN, *place.names, *at):
        found += map(passed_from, rows)
        at = rows[-1][1], rows[-1][0]
    return found


def _note(number: int, why: str) -> str:
    return f"{number:,} audit{'' if number == 1 else 's'} {why}" if number else ""
