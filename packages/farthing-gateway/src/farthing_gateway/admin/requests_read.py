"""Recorded requests, the newest first: a page of a list, and one with all its steps.

Pages are found by the place of the last request on the one before, never by counting. What is asked
for is merged out of the kinds of requests that there are (`Kind`), each read from an index in its
order: so a page costs the same at a thousand requests and at a million, whatever the filter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from farthing.traces.base import Call, CallError
from farthing_gateway.admin import audits_read
from farthing_gateway.admin.audits_read import Came, Outcome, outcomes
from farthing_gateway.admin.figures import Kind
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic_rows import FIND, live_and_later, passed_from
from farthing_gateway.storage.database import Database, Row, moment

PAGE = 50
_NEWEST = 2**62
LINE = """id, at_us, key_id, policy, model, promise, cost_nano, later_nano, saved_nano, latency_s,
    audited, trace"""


@dataclass(frozen=True, order=True)
class PageCursor:
    """Where a page ends: it goes on with what came before; an earlier place is less."""

    at_us: int = _NEWEST
    id: str = ""

    def __str__(self) -> str:
        return f"{self.at_us}-{self.id}"

    @classmethod
    def read(cls, text: str) -> "PageCursor":
        """Return the place that was written; the newest where none can be read.

        >>> PageCursor.read(str(PageCursor(5, "a-b"))) == PageCursor(5, "a-b")
        True
        >>> PageCursor.read("x").at_us == _NEWEST
        True
        """
        at, _, name = text.partition("-")
        return cls(int(at), name) if at.isascii() and at.isdecimal() and len(at) < 19 else cls()


class Called(msgspec.Struct, frozen=True):
    """What a list says of a call."""

    role: str
    error: CallError | None = None


class _Calls(msgspec.Struct, frozen=True):
    """What is read of a trace for a list: no text."""

    calls: list[Called]


@dataclass(frozen=True)
class RequestLine:
    """One request in a list; money in nano-dollars."""

    id: str
    at: datetime
    at_us: int
    key: str | None
    """The public id of the key that asked."""
    policy: str | None
    model: str | None
    """None: no model that there is."""
    promise: str
    cost_nano: int
    later_nano: int
    saved_nano: int | None
    latency_s: float
    audited: bool
    calls: tuple[Called, ...]
    """Those before the reply."""
    came: Came | None = None
    """What became of its audit; None: it was not drawn."""
    status: int = 200
    code: str = ""
    """Why it was refused, or failed; empty: it was answered."""

    @property
    def place(self) -> PageCursor:
        """Where it stands in the list."""
        return PageCursor(self.at_us, self.id)


@dataclass(frozen=True)
class Whole:
    """One request with all that is known of it."""

    passed: RequestRecord
    """Its calls are those before the reply."""
    later: tuple[Call, ...]
    """What was asked in the background afterwards."""


async def lines(
    database: Database, kinds: Sequence[Kind] | None, after: PageCursor
) -> list[RequestLine]:
    """Return a page of requests, the newest first, and one more where there are more.

    Args:
        database: with recorded traffic.
        kinds: those that are asked for; None: all that there is.
        after: where the page before ended.
    """
    sql, values = query(kinds, after)
    return await read_lines(database, await database.read(sql, *values) if sql else [])


async def audited_lines(
    database: Database, outcome: Outcome, also: Mapping[str, Any], after: PageCursor
) -> list[RequestLine]:
    """Return a page of requests whose audits came to something; see `lines`.

    Args:
        database: with recorded traffic.
        outcome: what the audits came to.
        also: what else has to hold of the requests, see `audits_read.query`.
        after: where the page before ended.
    """
    place = (after.at_us, after.id)
    sql, values = audits_read.query(LINE, outcome, also, place, PAGE + 1)
    return await read_lines(database, await database.read(sql, *values))


def query(kinds: Sequence[Kind] | None, after: PageCursor) -> tuple[str, Row]:
    """Return the statement of a page and its values; an empty one where nothing is asked for."""
    page = f"(at_us, id) < ($1, $2) ORDER BY at_us DESC, id DESC LIMIT {PAGE + 1}"
    select = f"SELECT {LINE} FROM traffic_requests WHERE"  # noqa: S608 - values are parameters
    if kinds is None:
        return f"{select} {page}", (after.at_us, after.id)
    values: list[Any] = [after.at_us, after.id]
    parts: list[str] = []
    for kind in kinds:
        at = len(values) + 1
        values += [kind.model, kind.promise, *([kind.policy] if kind.policy else [])]
        policy = f"policy = ${at + 2}" if kind.policy else "policy IS NULL"
        alike = f"{policy} AND model = ${at} AND promise = ${at + 1}"
        parts.append(f"SELECT * FROM ({select} {alike} AND {page}) AS kind_{at}")  # noqa: S608
    merged = " UNION ALL ".join(parts)
    order = f"ORDER BY at_us DESC, id DESC LIMIT {PAGE + 1}"
    return (f"{merged} {order}" if parts else ""), tuple(values)


async def whole(database: Database, name: str) -> Whole | None:
    """Return one request; None where it was never there, or is deleted."""
    rows = await database.read(FIND, name)
    if not rows:
        return None
    live, later = live_and_later(rows[0])
    return Whole(replace(passed_from(rows[0]), trace=live), tuple(later))


async def read_lines(database: Database, rows: Sequence[Row]) -> list[RequestLine]:
    """Return requests of rows of `LINE`, each with what became of its audit."""
    found = [_line(row) for row in rows]
    came = await outcomes(database, [one.id for one in found if one.audited])
    return [replace(one, came=came.get(one.id)) for one in found]


def _line(row: Row) -> RequestLine:
    name, at, key, policy, model, promise, cost, later, saved, latency, audited, trace = row
    calls = msgspec.json.decode(trace, type=_Calls).calls
    return RequestLine(
        id=name,
        at=moment(at),
        at_us=at,
        key=key,
        policy=policy,
        model=model,
        promise=promise,
        cost_nano=cost,
        later_nano=later,
        saved_nano=saved,
        latency_s=latency,
        audited=bool(audited),
        calls=tuple(calls),
    )
