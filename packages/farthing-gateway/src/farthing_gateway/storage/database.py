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
from farthing_gateway.storage.ledger.postgres import shown

T = TypeVar("T")
Row = tuple[Any, ...]
"""Text, whole numbers, floats and None."""
SCHEMES = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL database begins."""
VERSION = "0002"
"""Of the tables: the newest in `migrations/versions`; versions sort as texts."""
VERSION_TABLE = "farthing_version"
"""Where Alembic notes it; others in the same database may have a table of the usual name."""
_THERE_IN_FILE = "SELECT 1 FROM sqlite_master WHERE name = $1"
_THERE_ON_SERVER = "SELECT 1 WHERE to_regclass($1) IS NOT NULL"
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


async def open_database(where: str) -> Database:
    """Open a database whose tables are those of this version; `migrations.migrate` makes them.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: it is not there, or its tables are those of another version.
    """
    database = await connect(where)
    try:
        check_version(named(where), await version_of(database, where))
    except BaseException:
        await database.aclose()
        raise
    return database


async def check_tables(where: str) -> None:
    """Raise StoreError as `open_database` would."""
    await (await open_database(where)).aclose()


async def connect(where: str) -> Database:
    """Open a database, whatever tables it has."""
    if not where.startswith(SCHEMES):
        return await SqliteDatabase.open(where)
    try:
        from farthing_gateway.storage.database_postgres import PostgresDatabase  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingExtraError("a PostgreSQL database", "postgres", "farthing-gateway") from None
    return await PostgresDatabase.open(where)


async def version_of(database: Database, where: str) -> str | None:
    """Return the version of a database's tables; None where it has none."""
    there = _THERE_ON_SERVER if where.startswith(SCHEMES) else _THERE_IN_FILE
    if not await database.read(there, VERSION_TABLE):
        return None
    [(found,)] = await database.read(f"SELECT max(version_num) FROM {VERSION_TABLE}")  # noqa: S608
    return None if found is None else str(found)


def named(where: str) -> str:
    """Return what messages call a database: no password is in it."""
    return f"PostgreSQL at {shown(where)}" if where.startswith(SCHEMES) else where


def check_version(name: str, found: str | None) -> None:
    """Refuse a database whose tables are not those of this version."""
    check_not_newer(name, found)
    if found != VERSION:
        raise StoreError(
            f"{name}: its tables are {'not made' if found is None else 'of an older Farthing'}; "
            "start the gateway, or run `farthing gateway migrate`"
        )


def check_not_newer(name: str, found: str | None) -> None:
    """Refuse a database that a newer Farthing wrote."""
    if found is not None and found > VERSION:
        raise StoreError(
            f"{name}: was written by a newer Farthing (its tables are of version {found}; this one "
            f"knows {VERSION}); upgrade Farthing"
        )


class SqliteDatabase:
    """One connection to a file, in a thread of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection

    @classmethod
    async def open(cls, path: str) -> "SqliteDatabase":
        opened = cls(path)
        try:
            await opened._run(opened._connect)
        except BaseException:
            opened._thread.shutdown()
            raise
        return opened

    async def write(self, *steps: Step) -> int:
        return await self._run(self._write, steps)

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return await self._run(self._read, sql, values)

    async def aclose(self) -> None:
        await self._run(self._connection.close)
        self._thread.shutdown()

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(function, *arguments))

    def _connect(self) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise StoreError(
                "a gateway's database needs SQLite 3.38 or newer; this Python has "
                f"{sqlite3.sqlite_version}: use a newer build of Python"
            )
        if not Path(self._path).is_file():
            raise StoreError(f"{self._path}: there is no such database; name another")
        with self._explained():
            self._connection = sqlite3.connect(self._path, timeout=PATIENCE_S, isolation_level=None)
            # What retention deletes is overwritten, not only forgotten.
            self._connection.execute("PRAGMA secure_delete = ON")

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
            raise unusable(self._path, problem) from problem


def unusable(path: str, problem: BaseException | None) -> StoreError:
    """Return what SQLite says of a file, with a remedy."""
    return StoreError(
        f"{path}: {problem}; check that it is the database of a gateway, that its folder can be "
        "written, and that no other program keeps it locked"
    )


def _named(values: Row) -> dict[str, Any]:
    """Return parameters as SQLite takes them for `$1`, `$2`, ..."""
    return {str(number): value for number, value in enumerate(values, start=1)}


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
