"""Requests that chance drew for an audit, by what became of it, the newest first.

An index has the audits of each outcome in the order of the list; each is joined with its request by
its id. So a page costs as many look-ups as there are audits of the outcome until it is full.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from farthing_gateway.storage.database import Database, Row

Outcome = Literal["failed", "kept", "waiting"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_ARE: dict[Outcome, str] = {
    "failed": "audits.value < 0.5",
    "kept": "audits.value >= 0.5",
    "waiting": "audits.value IS NULL AND audits.state <> 'failed'",
}
"""Of parity 0.5 says that the reply was as right as the reference's."""


@dataclass(frozen=True)
class Came:
    """What became of an audit."""

    state: str
    value: float | None
    """Its grade in [0, 1]; None: there is none yet."""


async def outcomes(database: Database, ids: Iterable[str]) -> dict[str, Came]:
    """Return what became of some requests' audits; of those that were drawn."""
    names = tuple(ids)
    if not names:
        return {}
    places = ", ".join(f"${at}" for at in range(1, len(names) + 1))
    sql = f"SELECT id, state, value FROM audits WHERE id IN ({places}) AND purpose = 'audit'"  # noqa: S608
    return {name: Came(state, value) for name, state, value in await database.read(sql, *names)}


def query(
    columns: str, outcome: Outcome, also: Mapping[str, Any], after: tuple[int, str], most: int
) -> tuple[str, Row]:
    """Return the statement of a page of requests whose audits came to something, and its values.

    Args:
        columns: of `traffic_requests`.
        outcome: what the audits came to.
        also: what else has to hold of the requests: expressions, in which `{}` stands for a value.
        after: the place where the page before ended.
        most: how many requests are read.
    """
    conditions = "".join(f" AND {one.replace('{}', f'${at}')}" for at, one in enumerate(also, 3))
    # A CROSS JOIN has SQLite begin with the audits, whose index has the order. Of its columns none
    # but these can be seen beside the request's: by the policy SQLite takes another index.
    sql = f"""
    SELECT {columns} FROM (
        SELECT id AS audit_id, at_us AS audit_at, value, state, purpose FROM audits
    ) AS audits CROSS JOIN traffic_requests
    WHERE id = audit_id AND purpose = 'audit' AND {_ARE[outcome]}
        AND (audit_at, audit_id) < ($1, $2){conditions}
    ORDER BY audit_at DESC, audit_id DESC LIMIT {most}"""  # noqa: S608 - values are parameters
    return sql, (*after, *also.values())
