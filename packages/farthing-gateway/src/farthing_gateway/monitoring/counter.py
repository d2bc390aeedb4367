"""Counts events into the states of certificates: once each, by one worker at a time.

A batch's events are deleted in the transaction that writes the state they lead to, and both only if
nobody else has written that state since it was read. So it is the same whether one worker counts
or ten, and whether one is killed in between.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import msgspec

from farthing_gateway.monitoring.events import AnyEvent, Replied, Under, read_event
from farthing_gateway.monitoring.statistics import (
    CertificateStats,
    MonitorState,
    Raised,
    StreamStats,
    after,
    begin,
    group_of,
)
from farthing_gateway.storage.database import Database, Row, Step, microseconds

LOG = logging.getLogger("farthing_gateway")
BATCH = 500
"""Events that are counted in one transaction at most."""

_WAITING = "SELECT DISTINCT policy, mode, certificate FROM watch_events"
_EVENTS = """
SELECT id, what, body FROM watch_events WHERE policy = $1 AND mode = $2 AND certificate = $3
ORDER BY at_us, id, what LIMIT $4"""
_STATE = """
SELECT version, state FROM watch_states
WHERE policy = $1 AND mode = $2 AND certificate = $3 AND part = $4"""
_BEGIN = """
INSERT INTO watch_states (policy, mode, certificate, part, at_us, version, writer, state)
VALUES ($1, $2, $3, '', $4, 1, $5, $6) ON CONFLICT DO NOTHING"""
_GO_ON = """
UPDATE watch_states SET at_us = $4, version = version + 1, writer = $5, state = $6
WHERE policy = $1 AND mode = $2 AND certificate = $3 AND part = '' AND version = $7"""
_OURS = """EXISTS (
    SELECT 1 FROM watch_states AS ours
    WHERE ours.policy = $1 AND ours.mode = $2 AND ours.certificate = $3 AND ours.part = ''
        AND ours.writer = $4
)"""
_GROUP = f"""
INSERT INTO watch_states (policy, mode, certificate, part, at_us, version, writer, state)
SELECT $1, $2, $3, $5, CAST($6 AS BIGINT), 0, $4, $7 WHERE {_OURS}
ON CONFLICT (policy, mode, certificate, part) DO UPDATE SET
    at_us = excluded.at_us, state = excluded.state"""
_ALARM = f"""
INSERT INTO alarms (id, policy, mode, certificate, signal, at_us, says, evidence)
SELECT $5, $1, $2, $3, $6, CAST($7 AS BIGINT), $8, CAST($9 AS DOUBLE PRECISION) WHERE {_OURS}
ON CONFLICT DO NOTHING"""
_DELETE = f"""
DELETE FROM watch_events WHERE id = $5 AND what = $6 AND {_OURS}"""  # noqa: S608 - of constants
_DONE = """
UPDATE watch_states SET at_us = at_us
WHERE policy = $1 AND mode = $2 AND certificate = $3 AND part = '' AND writer = $4"""


async def count(database: Database, delta: float) -> int:
    """Count all events that wait; return how many that was.

    What another worker counts at the same moment is its own.

    Args:
        database: of a gateway.
        delta: of certificates that are new; see `statistics.begin`.
    """
    counted = 0
    for row in await database.read(_WAITING):
        under = Under(*row)
        while some := await _count(database, under, delta):
            counted += some
            if some < BATCH:
                break
    return counted


async def _count(database: Database, under: Under, delta: float) -> int:
    rows = await database.read(_EVENTS, *under.row, BATCH)
    events = [(row[0], read_event(row[2])) for row in rows]
    found = await database.read(_STATE, *under.row, "")
    whole = (
        msgspec.json.decode(found[0][1], type=CertificateStats) if found else _begun(events, delta)
    )
    if whole is None:
        return 0
    names = {group_of(whole, event) for _, event in events} - {None}
    groups = {}
    for name in sorted(str(one) for one in names):
        known = await database.read(_STATE, *under.row, name)
        if known:
            groups[name] = msgspec.json.decode(known[0][1], type=StreamStats)
    state, raised = await asyncio.to_thread(after, MonitorState(whole, groups), events)
    writer = uuid4().hex
    steps = _steps(under, state, raised, writer, found[0][0] if found else None)
    ours = (*under.row, writer)
    gone = Step(_DELETE, [(*ours, row[0], row[1]) for row in rows])
    if not await database.write(*steps, gone, Step(_DONE, [ours])):
        return 0
    for one in raised:
        LOG.warning("alarm: policy %s, mode %s: %s", under.policy, under.mode, one.says)
    return len(rows)


def _begun(events: Sequence[tuple[str, AnyEvent]], delta: float) -> CertificateStats | None:
    first = next((event for _, event in events if isinstance(event, Replied)), None)
    return None if first is None else begin(first, delta)


def _steps(
    under: Under, state: MonitorState, raised: Sequence[Raised], writer: str, version: int | None
) -> list[Step]:
    at, whole = microseconds(datetime.now(UTC)), _json(state.whole)
    ours: Row = (*under.row, writer)
    written = (*under.row, at, writer, whole)
    steps = [
        Step(_BEGIN, [written]) if version is None else Step(_GO_ON, [(*written, version)]),
    ]
    if state.groups:
        groups = [(*ours, name, at, _json(part)) for name, part in state.groups.items()]
        steps.append(Step(_GROUP, groups))
    if raised:
        alarms = [
            (*ours, alarm_id(under, one), one.signal, at, one.says, one.evidence) for one in raised
        ]
        steps.append(Step(_ALARM, alarms))
    return steps


def alarm_id(under: Under, raised: Raised) -> str:
    """Return the id of an alarm: twelve hexadecimal digits."""
    said = "\0".join([*under.row, raised.signal, str(raised.number)])
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def _json(state: CertificateStats | StreamStats) -> str:
    return msgspec.json.encode(state).decode()
