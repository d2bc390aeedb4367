"""Accounts in an SQLite file: for one machine, and as many processes as it runs.

The file is in WAL mode and may hold other tables as well. A thread of its own writes it, so that
the event loop never waits for the disk. What is committed survives the process; a power cut may
take the last moments with it.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

from farthing.errors import StoreError
from farthing.storage.ledger.base import Accounts
from farthing.storage.ledger.operations import Operation, Outcome
from farthing.storage.ledger.periods import Now, utc_now
from farthing.storage.ledger.sqlite_steps import carry_out
from farthing.storage.ledger.stored import StoredAccounts

VERSION = 1
BUSY_S = 30.0
"""Seconds to wait for other processes that write the file."""


async def open_sqlite(path: str | Path, now: Now = utc_now) -> Accounts:
    """Open accounts in an SQLite file, which is made where there is none.

    Args:
        path: the file, or `:memory:` for accounts that end with the process.
        now: the clock.

    Raises:
        StoreError: it cannot be opened, is no SQLite file, or a newer version wrote it.
    """
    database = SqliteDatabase(str(path))
    await database.open()
    return StoredAccounts(database, now)


class SqliteDatabase:
    """One connection and the one thread that uses it."""

    def __init__(self, path: str) -> None:
        """Prepare for a file, or `:memory:`; `open` opens it."""
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the file; see `open_sqlite`."""
        loop = asyncio.get_running_loop()
        try:
            self._connection = await loop.run_in_executor(self._thread, _connected, self._path)
        except sqlite3.Error as problem:
            self._thread.shutdown(wait=False)
            raise self._explained(problem) from problem
        except StoreError:
            self._thread.shutdown(wait=False)
            raise

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out operations in one transaction; see `Database`."""
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
    """Open a file and make its tables; processes may do so at once.

    Raises:
        StoreError: a newer version wrote the file.
    """
    if sqlite3.sqlite_version_info < (3, 38):
        raise StoreError(
            f"the ledger needs SQLite 3.38 or newer; this Python has {sqlite3.sqlite_version}: "
            "use a newer build of Python"
        )
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_S, check_same_thread=False
    )
    try:
        write_ahead(connection, BUSY_S)
        connection.execute("PRAGMA synchronous = NORMAL")
        schema = resources.files("farthing.storage.ledger") / "schema" / "sqlite_1.sql"
        connection.executescript(schema.read_text(encoding="utf-8"))
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    [(version,)] = connection.execute("SELECT max(version) FROM ledger_schema").fetchall()
    if version > VERSION:
        raise StoreError(
            f"{path}: its ledger was written by a newer Farthing (version {version}; this one "
            f"knows {VERSION}); upgrade Farthing"
        )


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
