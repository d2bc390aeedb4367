"""Requests that got no answer: what was refused, what failed, and what it cost all the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic_rows import plain
from farthing_gateway.storage.database import Database, Row, microseconds, moment, open_database

INSERT = """
INSERT INTO traffic_failures (
    id, at_us, key_id, model, status, code, said, tries, cost_nano, latency_s
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"""
DELETE = """
DELETE FROM traffic_failures WHERE id IN (
    SELECT id FROM traffic_failures WHERE at_us < $1 ORDER BY at_us LIMIT 500
)"""
_SELECT = """
SELECT id, at_us, key_id, model, status, code, said, tries, cost_nano, latency_s
FROM traffic_failures
WHERE (CAST($1 AS TEXT) IS NULL OR id = $1)
    AND (CAST($2 AS BIGINT) IS NULL OR status = $2)
    AND (CAST($3 AS TEXT) IS NULL OR key_id = $3)
    AND (CAST($4 AS TEXT) IS NULL OR model = $4)
    AND (CAST($5 AS BIGINT) IS NULL OR at_us >= $5)
    AND (CAST($6 AS TEXT) IS NULL OR LOWER(said || code || tries) LIKE $6 ESCAPE '!')
ORDER BY at_us DESC, id DESC LIMIT $7"""


@dataclass(frozen=True)
class FailedRequest:
    """One request that was refused, or that nobody answered."""

    id: str
    """What its reply says in `X-Farthing-Trace`."""
    at: datetime
    """When it came, with a time zone."""
    key: str | None
    """The public id of the key that asked; None where no keys are needed."""
    model: str | None
    """What the client asked for; None where that is no model, or was not read so far."""
    status: int
    code: str
    """The error's `code`, or where it has none its `type`."""
    said: str
    """The error's message."""
    tries: tuple[Mapping[str, Any], ...]
    """Every try: the model, its cost, its time, and how it failed."""
    cost_nano: int
    """What the tries cost, in nano-dollars, or can have cost."""
    latency_s: float
    """From the request to the refusal, in seconds."""


@dataclass(frozen=True)
class FailureFilter:
    """Which failures are looked for; of what is None, all."""

    id: str | None = None
    status: int | None = None
    key: str | None = None
    model: str | None = None
    since: datetime | None = None
    text: str | None = None
    """What the message, the code or a try contains, in any case of letters."""
    most: int = 50
    """The newest of them."""


def kept(failed: FailedRequest, keeping: TextRetention) -> FailedRequest:
    """Return what is written of a failure: no message where no texts are kept."""
    try:
        said = keeping.text(failed.said) if keeping.prompts else ""
    except Exception:  # noqa: BLE001 - a redaction that fails lets nothing through
        said = ""
    return replace(failed, said=said)


def row(failed: FailedRequest) -> Row:
    """Return what `INSERT` takes."""
    return (
        failed.id,
        microseconds(failed.at),
        plain(failed.key),
        plain(failed.model),
        failed.status,
        plain(failed.code),
        plain(failed.said),
        plain(msgspec.json.encode(failed.tries).decode()),
        failed.cost_nano,
        float(failed.latency_s),
    )


async def find(database: Database, of: FailureFilter) -> list[FailedRequest]:
    """Return failures, the newest first."""
    since = None if of.since is None else microseconds(of.since)
    text = None if of.text is None else f"%{escaped(of.text.lower())}%"
    rows = await database.read(_SELECT, of.id, of.status, of.key, of.model, since, text, of.most)
    return [_failed(values) for values in rows]


async def find_in(where: str, of: FailureFilter) -> list[FailedRequest]:
    """Return the failures of a gateway's database, the newest first.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.
        of: which.
    """
    database = await open_database(where)
    try:
        return await find(database, of)
    finally:
        await database.aclose()


def _failed(values: Sequence[Any]) -> FailedRequest:
    name, at, key, model, status, code, said, tries, cost, latency = values
    every = msgspec.json.decode(tries, type=tuple[dict[str, Any], ...])
    return FailedRequest(name, moment(at), key, model, status, code, said, every, cost, latency)


def escaped(text: str) -> str:
    """Return a text as LIKE looks for it.

    >>> escaped("100% of_it!")
    '100!% of!_it!!'
    """
    return "".join(f"!{one}" if one in "!%_" else one for one in text)
