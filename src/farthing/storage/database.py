"""The database of a gateway: an SQLite file, or PostgreSQL where several machines share it.

One text of SQL serves both: parameters are `$1`, `$2`, ..., moments are integers of microseconds,
and lists are JSON in columns of text.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from farthing.errors import MissingExtraError, StoreError
from farthing.storage.ledger.sqlite import write_ahead

T = TypeVar("T")
Row = tuple[Any, ...]
"""Text, whole numbers, floats and None."""
SCHEMES = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL database begins."""
PATIENCE_S = 30.0
"""How long another process may hold the write lock of an SQLite file."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Step:
    """One statement of a transaction, once for each of its rows."""

    sql: str
    rows: Sequence[Row] = ((),)


class Database(Protocol):
    """Runs statements off the event loop; several processes may have it open.

    Everything raises `StoreError` where the database cannot be reached or refuses.
    """

    async def write(self, *steps: Step) -> int:
        """Run the steps in one transaction; return how many rows the last one changed."""
        ...

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...

    async def aclose(self) -> None:
        """Close it; what was written stays."""
        ...


async def open_database(where: str, schema: Sequence[str], *, create: bool = True) -> Database:
    """Open a database, and make the tables that it lacks.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.
        schema: statements that do nothing where they were run before.
        create: whether an SQLite file that does not exist is made, and tables that lack.
    """
    if not where.startswith(SCHEMES):
        return await SqliteDatabase.open(where, schema, create=create)
    try:
        from farthing.storage.database_postgres import PostgresDatabase  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingExtraError("a PostgreSQL database", "postgres") from None
    return await PostgresDatabase.open(where, schema if create else ())


class SqliteDatabase:
    """One connection to a file, in a thread of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection

    @classmethod
    async def open(cls, path: str, schema: Sequence[str], *, create: bool) -> "SqliteDatabase":
        """Open a file; see `open_database`."""
        opened = cls(path)
        try:
            await opened._run(opened._connect, schema, create)
        except BaseException:
            opened._thread.shutdown()
            raise
        return opened

    async def write(self, *steps: Step) -> int:
        """Run the steps in one transaction; see `Database`."""
        return await self._run(self._write, steps)

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query; see `Database`."""
        return await self._run(self._read, sql, values)

    async def aclose(self) -> None:
        """Close the file and end the thread."""
        await self._run(self._connection.close)
        self._thread.shutdown()

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(function, *arguments))

    def _connect(self, schema: Sequence[str], create: bool) -> None:  # noqa: FBT001
        if self._path != ":memory:" and not Path(self._path).is_file():
            if not create:
                raise StoreError(f"{self._path}: there is no such database; name another")
            _make_private(self._path)
        with self._explained():
            self._connection = sqlite3.connect(self._path, timeout=PATIENCE_S, isolation_level=None)
            try:
                # What retention deletes is overwritten, not only forgotten.
                self._connection.execute("PRAGMA secure_delete = ON")
                if create:
                    write_ahead(self._connection, PATIENCE_S)
                    self._write([Step(sql) for sql in schema])
            except BaseException:
                self._connection.close()
                raise

    def _write(self, steps: Sequence[Step]) -> int:
        changed = 0
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for step in steps:
                    changed = self._connection.executemany(
                        step.sql, [_named(row) for row in step.rows]
                    ).rowcount
            except BaseException:
                if self._connection.in_transaction:  # a full disk makes SQLite roll back by itself
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        return changed

    def _read(self, sql: str, values: Row) -> list[Row]:
        with self._explained():
            return self._connection.execute(sql, _named(values)).fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as problem:
            raise StoreError(
                f"{self._path}: {problem}; check that it is the database of a gateway, that its "
                "folder can be written, and that no other program keeps it locked"
            ) from problem


def _named(values: Row) -> dict[str, Any]:
    """Return parameters as SQLite takes them for `$1`, `$2`, ..."""
    return {str(number): value for number, value in enumerate(values, start=1)}


def _make_private(path: str) -> None:
    """Make a file that nobody else may read: it will hold what users wrote."""
    try:
        Path(path).touch(mode=0o600)
    except OSError as problem:
        raise StoreError(
            f"{path}: cannot be made ({(problem.strerror or '').lower()}); check its folder"
        ) from problem


def microseconds(moment: datetime) -> int:
    """Return a moment as databases hold it: microseconds since 1970, exactly.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    """Return the moment again, in UTC.

    >>> moment(1_000_005).isoformat()
    '1970-01-01T00:00:01.000005+00:00'
    """
    return _EPOCH + microseconds * _MICROSECOND
