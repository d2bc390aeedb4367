"""Requests that fit what is asked for, answered or not, the newest first, a page at a time.

What an index has in the order of the list is read as it comes. What no index knows, such as a
text, is looked for among the next `LOOKED` requests alone: then a page says how far it has looked,
and the next one goes on there. So a page costs the same at ten thousand requests and at a million.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from farthing.errors import InputError
from farthing.traces.base import CallError
from farthing_gateway.admin.audits_read import Outcome
from farthing_gateway.admin.figures import Kind
from farthing_gateway.admin.requests_read import (
    LINE,
    PAGE,
    Called,
    PageCursor,
    RequestLine,
    audited_lines,
    lines,
    read_lines,
)
from farthing_gateway.completions import NONE
from farthing_gateway.recording.failures import escaped
from farthing_gateway.storage.database import Database, Row, microseconds, moment

LOOKED = 10_000
"""Requests that a page looks at where no index has what is asked for."""
READ = 1_000
"""Requests in which a page reads whether a text is there, and not in the names of JSON's fields."""
NOBODY = "-"
"""Stands for requests that are no policy's."""
ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"
"""What became of a request; each status of 400 or more is a word of its own beside them."""
_RANGES = {REFUSED: (0, 500), FAILED: (500, 1_000)}
_STATUS = re.compile(r"[0-9]{3}")
_TEXT = "coalesce(messages, '') || trace"
_FAILED_TEXT = "said || ' ' || code"
_FAILED_LINE = "id, at_us, key_id, model, status, code, tries, cost_nano, latency_s"


@dataclass(frozen=True)
class RequestFilter:
    """Which requests are looked for; of what is None, all."""

    policy: str | None = None
    """`NOBODY`: of none."""
    model: str | None = None
    promise: str | None = None
    audits: Outcome | None = None
    key: str | None = None
    """The public id of the key that asked."""
    status: str | None = None
    """`ANSWERED`, `REFUSED` (below 500), `FAILED`, or the status that was said."""
    since: datetime | None = None
    until: datetime | None = None
    """Of those that came before it."""
    text: str | None = None
    """What the messages, a reply or the reason of a failure contains, in any case of letters."""

    @property
    def answered(self) -> bool:
        """Whether requests that were answered are among them."""
        return self.status in {None, ANSWERED}

    @property
    def unanswered(self) -> bool:
        """Whether others are: those are no policy's, and nothing was promised of them."""
        of_policy = self.policy or self.promise or self.audits
        return self.status != ANSWERED and not of_policy

    def fits(self, kind: Kind) -> bool:
        """Return whether requests of a kind are among them, as far as that says."""
        return (
            self.policy in {None, kind.policy or NOBODY}
            and self.model in {None, kind.model}
            and self.promise in {None, kind.promise}
        )


@dataclass(frozen=True)
class Found:
    """A page of what was looked for."""

    lines: tuple[RequestLine, ...]
    older: PageCursor | None
    """Where the next page begins; None: there is no other."""
    looked_to: datetime | None = None
    """Up to where this page has looked; None: there was no need to stop."""


class _Said(msgspec.Struct):
    answer: str | None = None
    text: str | None = None


class _Texts(msgspec.Struct):
    """What is read of a trace to look for a text."""

    question: str | None = None
    calls: list[_Said] = []


class _Values(list[Any]):
    """The values of a statement."""

    def put(self, value: Any) -> str:
        """Add one; return what stands for it."""
        self.append(value)
        return f"${len(self)}"


@dataclass(frozen=True)
class _Stream:
    """Rows of a table in the order of one of its indexes."""

    table: str
    columns: str
    index: Mapping[str, Any]
    """What the index begins with."""
    also: Mapping[str, Any]
    """What else has to hold, by expressions in which `{}` stands for a value."""

    def query(self, after: PageCursor, floor: PageCursor | None) -> tuple[str, Row]:
        values = _Values()
        where = self._where(values, after)
        where += [one.replace("{}", values.put(value)) for one, value in self.also.items()]
        if floor is not None:  # SQLite ends an index at the first of the two alone
            at = values.put(floor.at_us)
            where += [f"at_us >= {at}", f"(at_us, id) >= ({at}, {values.put(floor.id)})"]
        return self._select(self.columns, where, f"LIMIT {PAGE + 1}"), tuple(values)

    def floor_query(self, after: PageCursor) -> tuple[str, Row]:
        values = _Values()
        where = self._where(values, after)
        return self._select("at_us, id", where, f"LIMIT 1 OFFSET {LOOKED - 1}"), tuple(values)

    async def read(
        self, database: Database, after: PageCursor
    ) -> tuple[list[Row], PageCursor | None]:
        """Return a page of rows, and down to where it looked; None: to the end."""
        floor = None
        if self.also:
            sql, values = self.floor_query(after)
            floor = next((PageCursor(*row) for row in await database.read(sql, *values)), None)
        sql, values = self.query(after, floor)
        return await database.read(sql, *values), floor

    def _where(self, values: _Values, after: PageCursor) -> list[str]:
        equal = [f"{column} = {values.put(value)}" for column, value in self.index.items()]
        return [*equal, f"(at_us, id) < ({values.put(after.at_us)}, {values.put(after.id)})"]

    def _select(self, columns: str, where: Sequence[str], limit: str) -> str:
        conditions = " AND ".join(where)
        return (
            f"SELECT {columns} FROM {self.table} WHERE {conditions} "  # noqa: S608 - of constants
            f"ORDER BY at_us DESC, id DESC {limit}"
        )


async def search(
    database: Database,
    of: RequestFilter,
    kinds: Sequence[Kind],
    statuses: Sequence[int],
    after: PageCursor,
) -> Found:
    """Return a page of requests.

    Args:
        database: with recorded traffic.
        of: which.
        kinds: of requests that there are.
        statuses: of failures that there are.
        after: where the page before ended.
    """
    if of.until is not None:
        after = min(after, PageCursor(microseconds(of.until)))
    found: list[RequestLine] = []
    floors: list[PageCursor] = []
    if of.answered:
        some, floor = await _answered(database, of, kinds, after)
        found += some
        floors += [] if floor is None else [floor]
    for stream in failure_streams(of, statuses) if of.unanswered else ():
        rows, floor = await stream.read(database, after)
        found += [_failed_line(row) for row in rows]
        floors += [] if floor is None else [floor]
    since = PageCursor(microseconds(of.since)) if of.since else PageCursor(0)
    lowest = max([since, *floors])
    found = [one for one in found if one.place >= lowest]
    found.sort(key=lambda one: one.place, reverse=True)
    if len(found) > PAGE:
        return Found(tuple(found[:PAGE]), found[PAGE - 1].place)
    stopped = lowest if lowest > since else None
    return Found(tuple(found), stopped, moment(stopped.at_us) if stopped else None)


def request_stream(of: RequestFilter) -> _Stream:
    """Return requests that were answered, by their key or time."""
    also: dict[str, Any] = {}
    if of.policy is not None:
        also["coalesce(policy, '-') = {}"] = of.policy
    for name in ("model", "promise"):
        if (value := getattr(of, name)) is not None:
            also[f"{name} = {{}}"] = value
    if of.text is not None:
        also[_like(_TEXT)] = _pattern(msgspec.json.encode(of.text).decode()[1:-1])
    columns = LINE if of.text is None else f"{LINE}, messages"
    return _Stream("traffic_requests", columns, {} if of.key is None else {"key_id": of.key}, also)


def failure_streams(of: RequestFilter, statuses: Sequence[int]) -> list[_Stream]:
    """Return requests that were not answered, by their key, each status that fits, or time."""
    also: dict[str, Any] = {} if of.model is None else {"model = {}": of.model}
    if of.text is not None:
        also[_like(_FAILED_TEXT)] = _pattern(of.text)
    low, high = _range(of.status)
    if of.key is not None:
        if of.status is not None:
            also |= {"status >= {}": low, "status < {}": high}
        indexes: list[dict[str, Any]] = [{"key_id": of.key}]
    elif of.status is not None:
        indexes = [{"status": status} for status in statuses if low <= status < high]
    else:
        indexes = [{}]
    return [_Stream("traffic_failures", _FAILED_LINE, index, also) for index in indexes]


async def _answered(
    database: Database, of: RequestFilter, kinds: Sequence[Kind], after: PageCursor
) -> tuple[list[RequestLine], PageCursor | None]:
    if of.audits is not None:
        if of.text is not None:
            raise InputError("look for a text or for what audits came to, not for both")
        stream = request_stream(of)
        index = {f"{column} = {{}}": value for column, value in stream.index.items()}
        also = {**stream.also, **index}
        return await audited_lines(database, of.audits, also, after), None
    if of.key is None and of.text is None:
        of_kind = of.policy or of.model or of.promise
        some = [kind for kind in kinds if of.fits(kind)] if of_kind else None
        return await lines(database, some, after), None
    rows, floor = await request_stream(of).read(database, after)
    if of.text is None:
        return await read_lines(database, rows), floor
    found, read = list[Row](), 0
    while rows and len(found) <= PAGE:
        found += await asyncio.to_thread(_containing, rows, of.text)
        read += len(rows)
        after = PageCursor(rows[-1][1], rows[-1][0])
        if len(rows) <= PAGE:
            break
        if read >= READ:
            floor = after
            break
        sql, values = request_stream(of).query(after, floor)
        rows = await database.read(sql, *values)
    return await read_lines(database, found[: PAGE + 1]), floor


def _range(status: str | None) -> tuple[int, int]:
    if status is None or status in _RANGES:
        return _RANGES.get(status or "", (0, 1_000))
    return (int(status), int(status) + 1) if _STATUS.fullmatch(status) else (0, 0)


def _like(text: str) -> str:
    return f"LOWER({text}) LIKE LOWER({{}}) ESCAPE '!'"


def _pattern(text: str) -> str:
    return f"%{escaped(text)}%"


def _containing(rows: Sequence[Row], text: str) -> list[Row]:
    """Return those of `LINE` and messages, less these, in which somebody says a text."""
    return [row[:-1] for row in rows if any(text.lower() in one.lower() for one in _texts(row))]


def _texts(row: Row) -> Iterator[str]:
    *_, trace, messages = row
    said = msgspec.json.decode(trace, type=_Texts)
    yield from (one for call in said.calls for one in (call.answer, call.text) if one)
    yield said.question or ""
    yield from _strings(None if messages is None else msgspec.json.decode(messages))


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def _failed_line(row: Row) -> RequestLine:
    name, at, key, model, status, code, tries, cost, latency = row
    every = msgspec.json.decode(tries, type=list[dict[str, Any]])
    errors = [
        (one["model"], CallError(one["error"], "") if one.get("error") else None) for one in every
    ]
    return RequestLine(
        id=name,
        at=moment(at),
        at_us=at,
        key=key,
        policy=None,
        model=model,
        promise=NONE,
        cost_nano=cost,
        later_nano=0,
        saved_nano=None,
        latency_s=latency,
        audited=False,
        calls=tuple(Called(role, error) for role, error in errors),
        status=status,
        code=code,
    )
