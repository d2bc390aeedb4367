"""Audits in the database: who asks for one, until when, and what came of it.

An audit waits there from the transaction that recorded its request. Whoever asks for it has it on
lease; a worker that dies lets its leases run out, and another one takes them up. A statement takes
one up only if nobody else did, in either database.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from farthing_gateway.monitoring.event_writer import LEASE
from farthing_gateway.monitoring.events import AuditAsked, AuditGraded, Under, event_row, inserted
from farthing_gateway.recording.record import GradedBy
from farthing_gateway.storage.database import Database, Row, Step, microseconds, moment

MOST_TRIES = 5
"""How often models are asked for an audit before it is given up."""
FIRST_PAUSE = timedelta(seconds=15)
"""How long after the first failure they are asked again; twice as long after each further one."""

_RENEW = """
UPDATE audits SET until_us = $2 WHERE owner = $1 AND state = 'waiting' AND until_us < $3"""
_TAKE_UP = """
UPDATE audits SET owner = $1, until_us = $2 WHERE state = 'waiting' AND until_us < $3 AND id IN (
    SELECT id FROM audits WHERE state = 'waiting' AND until_us < $3 ORDER BY until_us LIMIT 20
)"""
_DUE = """
SELECT id, at_us, policy, mode, certificate, purpose, probability, graded_by, whole, tries
FROM audits WHERE owner = $1 AND state = 'waiting' AND due_us <= $2 ORDER BY due_us, at_us, id
LIMIT $3"""
_LATER = """
UPDATE audits SET due_us = $3, tries = $4, writer = $5
WHERE id = $1 AND owner = $2 AND state = 'waiting'"""
_FINISH = """
UPDATE audits SET state = $3, writer = $4 WHERE id = $1 AND owner = $2 AND state = 'waiting'"""
_GRADE = """
UPDATE audits SET value = $2, writer = $3
WHERE id = $1 AND purpose = 'audit' AND value IS NULL"""
_MINE = "WHERE EXISTS (SELECT 1 FROM audits WHERE id = $1 AND writer = $8)"
_FIND = """
SELECT id, at_us, policy, mode, certificate, purpose, probability, graded_by, whole, tries,
    state, value
FROM audits WHERE id = $1"""


@dataclass(frozen=True)
class Audit:
    """A request that chance drew, to be audited or explored."""

    id: str
    at: datetime
    under: Under
    purpose: str
    """`audit` or `explore`."""
    probability: float
    graded_by: GradedBy
    whole: bool
    """Whether what is recorded is what was asked: nothing was taken out."""
    tries: int
    state: str = "waiting"
    """`waiting` until its models were asked; then `done` or `failed`."""
    value: float | None = None
    """Its grade; None: there is none yet."""


async def take_up(database: Database, worker: str, at_once: int) -> list[Audit]:
    """Return audits that a worker is to ask for now, the longest due first.

    Its own leases are renewed, and those that others let run out are taken up.

    Args:
        database: of a gateway.
        worker: who asks.
        at_once: how many are wanted.
    """
    now = datetime.now(UTC)
    until, soon = microseconds(now + LEASE), microseconds(now + LEASE / 2)
    await database.write(
        Step(_RENEW, [(worker, until, soon)]),
        Step(_TAKE_UP, [(worker, until, microseconds(now))]),
    )
    rows = await database.read(_DUE, worker, microseconds(now), at_once)
    return [_audit(row) for row in rows]


async def find_audit(database: Database, id: str) -> Audit | None:  # noqa: A002
    """Return the audit of a request; None where it was not drawn."""
    rows = await database.read(_FIND, id)
    if not rows:
        return None
    *row, state, value = rows[0]
    return replace(_audit(tuple(row)), state=state, value=value)


def put_off(audit: Audit, worker: str, due: datetime, tries: int, writer: str) -> Step:
    """Return the step that has an audit wait until a moment."""
    return Step(_LATER, [(audit.id, worker, microseconds(due), tries, writer)])


def finish(audit: Audit, worker: str, writer: str, *, failed: bool) -> Step:
    """Return the step that ends the asking for an audit."""
    return Step(_FINISH, [(audit.id, worker, "failed" if failed else "done", writer)])


def grade(audit: Audit, value: float, group: str | None, writer: str) -> list[Step]:
    """Return the steps that give an audit its grade, unless it has one: the first one counts.

    Args:
        audit: that was drawn to be graded.
        value: in [0, 1].
        group: of its request.
        writer: marks this write, as no other.
    """
    own = f"{writer} grade"
    event = AuditGraded(group=group, value=value, probability=audit.probability)
    return [Step(_GRADE, [(audit.id, value, own)]), happened(audit, event, own)]


def happened(audit: Audit, event: AuditAsked | AuditGraded, writer: str) -> Step:
    """Return the step that notes what happened to an audit, if the same writer changed it."""
    which = writer if isinstance(event, AuditAsked) else ""  # a grade happens once, asking again
    row = event_row(audit.id, audit.under, event, datetime.now(UTC), which)
    return inserted(row, _MINE, writer)


def next_try(tries: int, now: datetime) -> datetime:
    """Return when models are asked again that failed so many times."""
    pause: timedelta = FIRST_PAUSE * 2 ** max(0, tries - 1)
    return now + pause


def _audit(row: Row) -> Audit:
    name, at, policy, mode, certificate, purpose, probability, by, whole, tries = row
    under = Under(policy, mode, certificate)
    return Audit(name, moment(at), under, purpose, probability, by, bool(whole), tries)
