"""The ledger in an SQLite file: for one machine, and as many processes as it runs.

The file is in WAL mode and may hold other tables as well. A thread of its own writes it, so that
the event loop never waits for the disk. What is committed survives the process; a power cut may
take the last moments with it. Operations are statements in a transaction that the caller has begun.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import msgspec

from farthing.errors import StoreError
from farthing.storage.ledger.operations import (
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

BUSY_S = 30.0
"""Seconds to wait for other processes that write the file."""


class SqliteLedgerDatabase:
    """One connection and the one thread that uses it."""

    def __init__(self, path: str) -> None:
        """Prepare for a file; `open` opens it."""
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    @classmethod
    async def open(cls, path: str) -> Self:
        """Open a file."""
        database, loop = cls(path), asyncio.get_running_loop()
        try:
            database._connection = await loop.run_in_executor(database._thread, _connected, path)
        except sqlite3.Error as problem:
            database._thread.shutdown(wait=False)
            raise database._explained(problem) from problem
        return database

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out operations in one transaction; see `LedgerDatabase`."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._apply, operations)
        except sqlite3.Error as problem:
            raise self._explained(problem) from problem

    async def aclose(self) -> None:
        """Close the file."""
        if self._connection is not None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()

    def _apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        connection = self._connection
        assert connection is not None, "open it first"  # noqa: S101
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [carry_out(connection, operation) for operation in operations]
        except BaseException:
            if connection.in_transaction:  # a full disk makes SQLite roll back by itself
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return outcomes

    def _explained(self, problem: sqlite3.Error) -> StoreError:
        return StoreError(
            f"{self._path}: {problem}; check that it is an SQLite file, that its folder can be "
            "written, and that the disk has room"
        )


def _connected(path: str) -> sqlite3.Connection:
    """Open a file; processes may do so at once."""
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_S, check_same_thread=False
    )
    try:
        write_ahead(connection, BUSY_S)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def write_ahead(connection: sqlite3.Connection, patience_s: float) -> None:
    """Set WAL mode; while another process sets it, SQLite says so at once and does not wait."""
    give_up = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


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
    """Return a hold's row, lists as JSON."""
    lists = {"accounts": json.dumps(hold.accounts), "windows": json.dumps(hold.windows)}
    return msgspec.structs.asdict(hold) | lists


def _holds(connection: sqlite3.Connection, where: str, *values: str | bool) -> list[HoldRow]:
    rows = connection.execute(f"SELECT {HOLD} FROM ledger_holds WHERE {where}", values)  # noqa: S608
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
