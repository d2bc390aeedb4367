"""The ledger's operations as statements of SQLite, in a transaction that the caller has begun."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from farthing_gateway.storage.ledger.operations import (
    Abandon,
    Balances,
    Broken,
    Claim,
    Count,
    Extend,
    Finish,
    Forget,
    Gone,
    HoldRow,
    Holds,
    KeyRow,
    Mark,
    MarkSent,
    Ok,
    Operation,
    Outcome,
    Reserve,
    Settle,
    SweepEnded,
    SweepResult,
    Unknowns,
    WindowRow,
    Windows,
)

HOLD = ", ".join(HoldRow.__struct_fields__)

BROKEN = """
SELECT number, used FROM (
    SELECT c.key AS number, json_extract(c.value, '$.most') AS most,
        json_extract(c.value, '$.needed') AS needed,
        coalesce(CASE json_extract(c.value, '$.unit')
            WHEN 'usd' THEN settled_nano + held_nano
            WHEN 'tokens' THEN settled_tokens + held_tokens
            ELSE settled_calls + held_calls END, 0) AS used
    FROM json_each(:checks) AS c LEFT JOIN ledger_windows AS w
        ON w.account = json_extract(c.value, '$.account')
        AND w."window" = json_extract(c.value, '$.window')
) WHERE used + needed > most
"""
RESERVE = f"""
INSERT INTO ledger_windows (account, "window", held_nano, held_tokens, held_calls)
    SELECT a.value, s.value, :nano, :tokens, :calls
    FROM json_each(:accounts) AS a, json_each(:windows) AS s
    WHERE NOT EXISTS ({BROKEN})
    ON CONFLICT (account, "window") DO UPDATE SET
        held_nano = held_nano + excluded.held_nano,
        held_tokens = held_tokens + excluded.held_tokens,
        held_calls = held_calls + excluded.held_calls
"""  # noqa: S608 - of constants
CHARGE = """
UPDATE ledger_windows SET
    held_nano = held_nano - :held * :nano,
    held_tokens = held_tokens - :held * :tokens,
    held_calls = held_calls - :held * :calls,
    settled_nano = settled_nano + :cost_nano - (1 - :held) * :nano,
    settled_tokens = settled_tokens + :cost_tokens - (1 - :held) * :tokens,
    settled_calls = settled_calls + :cost_calls - (1 - :held) * :calls,
    overcharged_nano = overcharged_nano + max(0, :cost_nano - :nano)
WHERE account IN (SELECT value FROM json_each(:accounts))
    AND "window" IN (SELECT value FROM json_each(:windows))
"""
CLAIM = """
INSERT INTO ledger_keys (key, fingerprint, token, claimed_at, lease_ends)
    VALUES (:key, :fingerprint, :token, :now, :lease_ends)
    ON CONFLICT (key) DO UPDATE SET token = excluded.token, claimed_at = excluded.claimed_at,
        lease_ends = excluded.lease_ends
    WHERE status IS NULL AND lease_ends <= :now AND fingerprint = excluded.fingerprint
"""
FORGET = """
DELETE FROM ledger_windows WHERE held_nano = 0 AND held_tokens = 0 AND held_calls = 0 AND (
    (length("window") = 16 AND "window" < substr(:before, 1, 16))
    OR (length("window") = 13 AND "window" < substr(:before, 1, 13)))
"""


RESERVE_ALL = f"""
INSERT INTO ledger_windows (account, "window", held_nano, held_tokens, held_calls)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(:changes) WHERE NOT EXISTS ({BROKEN})
    ON CONFLICT (account, "window") DO UPDATE SET
        held_nano = held_nano + excluded.held_nano,
        held_tokens = held_tokens + excluded.held_tokens,
        held_calls = held_calls + excluded.held_calls
"""  # noqa: S608 - of constants
_EACH = ", ".join(f"value ->> {at}" for at in range(len(HoldRow.__struct_fields__)))
HOLD_ALL = f"INSERT INTO ledger_holds ({HOLD}) SELECT {_EACH} FROM json_each(:holds)"  # noqa: S608
CLOSE_ALL = f"""
DELETE FROM ledger_holds WHERE id IN (SELECT value FROM json_each(?)) RETURNING {HOLD}
"""  # noqa: S608 - of constants
CHARGE_ALL = """
UPDATE ledger_windows AS w SET
    held_nano = w.held_nano - (c.value ->> 2),
    held_tokens = w.held_tokens - (c.value ->> 3),
    held_calls = w.held_calls - (c.value ->> 4),
    settled_nano = w.settled_nano + (c.value ->> 5),
    settled_tokens = w.settled_tokens + (c.value ->> 6),
    settled_calls = w.settled_calls + (c.value ->> 7),
    overcharged_nano = w.overcharged_nano + (c.value ->> 8)
FROM json_each(?) AS c WHERE w.account = c.value ->> 0 AND w."window" = c.value ->> 1
"""
EXACT = 2**62
"""Sums from here on are not made: JSON's larger numbers are not exact in SQLite."""


def carry_out_all(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Outcome]:
    """Carry out a batch: settlements first, whose money others may want, the others in their order.

    What follows each other and is alike is written at once: a statement costs more than its rows,
    since after each one the thread waits its turn with the event loop's. A settlement of a hold
    that something else in the batch is about keeps its place.
    """
    first, rest, touched = list[int](), list[int](), set[str]()
    for at, operation in enumerate(operations):
        hold = _hold_of(operation)
        if isinstance(operation, Settle) and hold not in touched:
            first.append(at)
        else:
            rest.append(at)
            touched.add(hold)
    outcomes: dict[int, Outcome] = {}
    for kind, run in groupby([*first, *rest], lambda at: type(operations[at])):
        places = list(run)
        some = [operations[at] for at in places]
        at_once = _AT_ONCE.get(kind) if len(some) > 1 else None
        found = None if at_once is None else at_once(connection, some)
        if found is None:
            found = [carry_out(connection, one) for one in some]
        outcomes.update(zip(places, found, strict=True))
    return [outcomes[at] for at in range(len(operations))]


def _hold_of(operation: Operation) -> str:
    if isinstance(operation, Reserve):
        return operation.hold.id
    return operation.id if isinstance(operation, Settle | Mark | MarkSent | Extend) else ""


def _reserve_all(connection: sqlite3.Connection, some: Sequence[Reserve]) -> list[Outcome] | None:
    """Reserve what fits together; None: it does not, and nothing was written."""
    changes: dict[tuple[str, str], list[int]] = {}
    for asked in some:
        hold = asked.hold
        _add(changes, hold, (hold.nano, hold.tokens, hold.calls))
    if any(number >= EXACT for sums in changes.values() for number in sums):
        return None
    needed = ("usd", "tokens", "calls")
    checks = json.dumps(
        [
            {**msgspec.to_builtins(check), "needed": sums[needed.index(check.unit)]}
            for asked in some
            for check in asked.checks
            if (sums := changes[check.account, check.window])
        ]
    )
    written = [[*key, *sums] for key, sums in changes.items()]
    values = {"changes": json.dumps(written), "checks": checks}
    if connection.execute(RESERVE_ALL, values).rowcount == 0:
        return None
    rows = [list(_columns(asked.hold).values()) for asked in some]
    connection.execute(HOLD_ALL, {"holds": json.dumps(rows)})
    return [Ok()] * len(some)


def _settle_all(connection: sqlite3.Connection, some: Sequence[Settle]) -> list[Outcome] | None:
    """Settle holds, each once; None: one is there twice or only if marked, nothing was written."""
    claims = {asked.id: asked for asked in some}
    largest = max(max(asked.nano, asked.tokens, asked.calls) for asked in some)
    odd = any(asked.marked for asked in some) or len(claims) < len(some)
    if odd or largest * len(some) >= EXACT:
        return None
    rows = connection.execute(CLOSE_ALL, (json.dumps(list(claims)),)).fetchall()
    changes: dict[tuple[str, str], list[int]] = {}
    closed = set()
    for hold in _read_holds(rows):
        asked = claims[hold.id]
        held = int(hold.state != "unknown")
        charged = (asked.nano, asked.tokens, asked.calls)
        were = (hold.nano, hold.tokens, hold.calls)
        settled = [now - (1 - held) * was for now, was in zip(charged, were, strict=True)]
        over = max(0, asked.nano - hold.nano)
        _add(changes, hold, (*(held * was for was in were), *settled, over))
        closed.add(hold.id)
    written = [[*key, *sums] for key, sums in changes.items()]
    connection.execute(CHARGE_ALL, (json.dumps(written),))
    return [Ok() if asked.id in closed else Gone() for asked in some]


def _add(changes: dict[tuple[str, str], list[int]], hold: HoldRow, more: Sequence[int]) -> None:
    for account in hold.accounts:
        for span in hold.windows:
            sums = changes.setdefault((account, span), [0] * len(more))
            for at, number in enumerate(more):
                sums[at] += number


_AT_ONCE: dict[type[Operation], Callable[[sqlite3.Connection, Any], list[Outcome] | None]] = {
    Reserve: _reserve_all,
    Settle: _settle_all,
}


def carry_out(connection: sqlite3.Connection, operation: Operation) -> Outcome:
    """Carry out one operation; one that is refused writes nothing."""
    return _STEPS[type(operation)](connection, operation)


def _reserve(connection: sqlite3.Connection, asked: Reserve) -> Outcome:
    row = _columns(asked.hold)
    checks = json.dumps([msgspec.to_builtins(check) for check in asked.checks])
    if connection.execute(RESERVE, {**row, "checks": checks}).rowcount == 0:
        return Broken(connection.execute(BROKEN, {"checks": checks}).fetchall())
    values = ", ".join(f":{name}" for name in HoldRow.__struct_fields__)
    connection.execute(f"INSERT INTO ledger_holds ({HOLD}) VALUES ({values})", row)  # noqa: S608
    return Ok()


def _sent(connection: sqlite3.Connection, asked: MarkSent) -> Outcome:
    return _changed(
        connection,
        "UPDATE ledger_holds SET state = 'sent' WHERE id = ? AND state <> 'unknown'",
        (asked.id,),
    )


def _extend(connection: sqlite3.Connection, asked: Extend) -> Outcome:
    return _changed(
        connection,
        "UPDATE ledger_holds SET lease_ends = ? WHERE id = ? AND state <> 'unknown'",
        (asked.lease_ends, asked.id),
    )


def _settle(connection: sqlite3.Connection, asked: Settle) -> Outcome:
    found = _holds(connection, "id = ? AND (state = 'unknown' OR NOT ?)", asked.id, asked.marked)
    for hold in found:
        connection.execute("DELETE FROM ledger_holds WHERE id = ?", (hold.id,))
        _charge(connection, hold, asked.nano, asked.tokens, asked.calls)
    return Ok() if found else Gone()


def _mark(connection: sqlite3.Connection, asked: Mark) -> Outcome:
    found = _holds(connection, "id = ?", asked.id)
    for hold in found:
        if hold.state != "unknown":
            _charge(connection, hold, hold.nano, hold.tokens, hold.calls)
            connection.execute(
                "UPDATE ledger_holds SET state = 'unknown', marked_at = ? WHERE id = ?",
                (asked.now, hold.id),
            )
    return Ok() if found else Gone()


def _sweep(connection: sqlite3.Connection, asked: SweepEnded) -> Outcome:
    ended = _holds(connection, "state <> 'unknown' AND lease_ends <= ?", asked.now)
    sent = [hold for hold in ended if hold.state == "sent"]
    for hold in ended:
        if hold.state == "sent":
            _mark(connection, Mark(hold.id, asked.now))
        else:
            _settle(connection, Settle(hold.id, 0, 0, 0))
    return SweepResult(len(ended) - len(sent), len(sent))


def _unknowns(connection: sqlite3.Connection, _: Unknowns) -> Outcome:
    return Holds(_holds(connection, "state = 'unknown' ORDER BY made_at, id"))


def _balances(connection: sqlite3.Connection, asked: Balances) -> Outcome:
    rows = connection.execute(
        "SELECT * FROM ledger_windows WHERE account IN (SELECT value FROM json_each(?))"
        ' AND "window" IN (SELECT value FROM json_each(?))',
        (json.dumps(asked.accounts), json.dumps(asked.windows)),
    )
    return Windows([WindowRow(*row) for row in rows])


def _claim(connection: sqlite3.Connection, asked: Claim) -> Outcome:
    if connection.execute(CLAIM, msgspec.structs.asdict(asked)).rowcount:
        return Ok()
    [row] = connection.execute(
        "SELECT fingerprint, lease_ends, status, body FROM ledger_keys WHERE key = ?", (asked.key,)
    )
    return KeyRow(*row)


def _finish(connection: sqlite3.Connection, asked: Finish) -> Outcome:
    connection.execute(
        "UPDATE ledger_keys SET status = ?, body = ? WHERE key = ? AND status IS NULL",
        (asked.status, asked.body, asked.key),
    )
    return Ok()


def _abandon(connection: sqlite3.Connection, asked: Abandon) -> Outcome:
    connection.execute("DELETE FROM ledger_keys WHERE key = ? AND status IS NULL", (asked.key,))
    return Ok()


def _forget(connection: sqlite3.Connection, asked: Forget) -> Outcome:
    number = connection.execute(
        "DELETE FROM ledger_keys WHERE claimed_at < ? AND (status IS NOT NULL OR lease_ends <= ?)",
        (asked.before, asked.now),
    ).rowcount
    connection.execute(FORGET, {"before": asked.before})
    return Count(number)


_STEPS: dict[type[Operation], Callable[[sqlite3.Connection, Any], Outcome]] = {
    Reserve: _reserve,
    MarkSent: _sent,
    Extend: _extend,
    Settle: _settle,
    Mark: _mark,
    SweepEnded: _sweep,
    Unknowns: _unknowns,
    Balances: _balances,
    Claim: _claim,
    Finish: _finish,
    Abandon: _abandon,
    Forget: _forget,
}


def _columns(hold: HoldRow) -> dict[str, Any]:
    lists = {"accounts": json.dumps(hold.accounts), "windows": json.dumps(hold.windows)}
    return msgspec.structs.asdict(hold) | lists


def _holds(connection: sqlite3.Connection, where: str, *values: str | bool) -> list[HoldRow]:
    rows = connection.execute(f"SELECT {HOLD} FROM ledger_holds WHERE {where}", values)  # noqa: S608
    return _read_holds(rows)


def _read_holds(rows: Iterable[Any]) -> list[HoldRow]:
    return [HoldRow(id_, json.loads(a), json.loads(w), *rest) for id_, a, w, *rest in rows]


def _changed(connection: sqlite3.Connection, statement: str, values: tuple[str, ...]) -> Outcome:
    return Ok() if connection.execute(statement, values).rowcount else Gone()


def _charge(
    connection: sqlite3.Connection, hold: HoldRow, nano: int, tokens: int, calls: int
) -> None:
    """Charge a hold's windows; one of unknown outcome was charged in full before."""
    cost = {"cost_nano": nano, "cost_tokens": tokens, "cost_calls": calls}
    held = {"held": int(hold.state != "unknown")}
    connection.execute(CHARGE, _columns(hold) | cost | held)
