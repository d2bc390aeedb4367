"""The ledger in an SQLite file: for one machine, and as many processes as it runs.

The file is in WAL mode and may hold other tables as well. A thread of its own writes it, so that
the event loop never waits for the disk. What is committed survives the process; a power cut may
take the last moments with it. Operations are statements in a transaction that the caller has begun.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from farthing.errors import StoreError
from farthing_gateway.storage.ledger.operations import Operation, Outcome
from farthing_gateway.storage.ledger.sqlite_operations import carry_out_all

BUSY_S = 30.0
"""Seconds to wait for other processes that write the file."""


class SqliteLedgerDatabase:
    """One connection and the one thread that uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._connection: sqlite3.Connection | None = None

    @classmethod
    async def open(cls, path: str) -> Self:
        database, loop = cls(path), asyncio.get_running_loop()
        try:
            database._connection = await loop.run_in_executor(database._thread, _connected, path)
        except sqlite3.Error as problem:
            database._thread.shutdown(wait=False)
            raise database._explained(problem) from problem
        return database

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._apply, operations)
        except sqlite3.Error as problem:
            raise self._explained(problem) from problem

    async def aclose(self) -> None:
        if self._connection is not None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()

    def _apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        connection = self._connection
        assert connection is not None, "open it first"  # noqa: S101
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = carry_out_all(connection, operations)
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
