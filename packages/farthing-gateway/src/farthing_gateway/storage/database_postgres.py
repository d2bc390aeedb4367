"""PostgreSQL as the database of a gateway, through asyncpg."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from farthing.errors import StoreError
from farthing_gateway.storage.database import PATIENCE_S, Row, Step
from farthing_gateway.storage.ledger.postgres import TRIES, WAIT_S, explained, shown

if TYPE_CHECKING:
    Connection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

T = TypeVar("T")
MOST_CONNECTIONS = 4
"""Connections that one process holds at most."""
_SERVER = """
SELECT system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
FROM pg_control_system()"""
"""Says which server this is, and how often another one has taken its place: its timeline. A number
of a transaction is one there alone."""
_UNNAMED = "SELECT ''"
"""Of a server that does not say."""
CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""What becomes of one of several writers that wait for each other: nothing of it was written."""
LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)
"""What a connection that broke raises; a commit that was on its way may have arrived."""


class PostgresDatabase:
    """A few connections to a server."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", url: str) -> None:
        self._pool = pool
        self._url = url
        self._server = _UNNAMED
        """Query that says which server it is."""

    @classmethod
    async def open(cls, url: str) -> "PostgresDatabase":
        async with _explaining(url):
            pool = await asyncpg.create_pool(
                url, min_size=1, max_size=MOST_CONNECTIONS, timeout=PATIENCE_S
            )
        opened = cls(pool, url)
        try:
            with suppress(asyncpg.PostgresError):
                await pool.fetchval(_SERVER)
                opened._server = _SERVER
        except BaseException:
            await opened.aclose()
            raise
        return opened

    async def write(self, *steps: Step) -> int:
        return await self._in_transaction(partial(_run, steps))

    async def read(self, sql: str, *values: Any) -> list[Row]:

        async def rows(connection: "Connection") -> list[Row]:
            return [tuple(row) for row in await connection.fetch(sql, *values)]

        return await self._again(rows)

    async def aclose(self) -> None:
        await self._pool.close()

    async def _in_transaction(self, work: "Callable[[Connection], Awaitable[T]]") -> T:
        """Do something in a transaction, once, however often a try breaks.

        A connection may break while its commit is on the way: the next one asks for the fate of the
        transaction's number before it does the work again.

        Raises:
            StoreError: also where that connection is to another server, whose transaction of this
                number is somebody else's.
        """
        begun: tuple[_Transaction, T] | None = None

        async def transact(connection: "Connection") -> T:
            nonlocal begun
            if begun is not None and await self._committed(connection, begun[0]):
                return begun[1]
            begun = None
            async with connection.transaction():
                done = await work(connection)
                server = await connection.fetchval(self._server)
                number = await connection.fetchval("SELECT txid_current()")
                begun = _Transaction(number, server), done
            return done

        return await self._again(transact)

    async def _committed(self, connection: "Connection", begun: "_Transaction") -> bool:
        if await connection.fetchval(self._server) != begun.server:
            raise StoreError(
                f"PostgreSQL at {shown(self._url)}: another server took its place amid a write, "
                "and whether that was kept is not known; look before you do it again"
            )
        status = await connection.fetchval("SELECT txid_status($1)", begun.number)
        if status == "in progress":  # the server has not seen yet that its connection broke
            raise asyncpg.ConnectionDoesNotExistError("a commit is neither done nor undone")
        return bool(status == "committed")

    async def _again(self, work: "Callable[[Connection], Awaitable[T]]") -> T:
        """Do something on a connection, again where a conflict or a lost connection ended it."""
        attempt = 0
        async with _explaining(self._url):
            while True:
                attempt += 1
                try:
                    async with self._pool.acquire(timeout=PATIENCE_S) as connection:
                        return await work(connection)
                except (*CONFLICTS, *LOST) as problem:
                    if attempt == TRIES or isinstance(problem, TimeoutError):
                        raise
                await asyncio.sleep(WAIT_S * 2**attempt)


@dataclass(frozen=True)
class _Transaction:
    """One whose commit may be on its way."""

    number: int
    server: str
    """That gave the number, as `_SERVER` has it."""


@asynccontextmanager
async def _explaining(url: str) -> AsyncIterator[None]:
    """Turn what asyncpg or the network says into a StoreError with a remedy."""
    try:
        yield
    except (ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as problem:
        raise explained(url, problem) from None  # what it came from may quote the password


async def _run(steps: Sequence[Step], connection: "Connection") -> int:
    changed = 0
    for step in steps:
        if len(step.rows) == 1:
            changed = _changed(await connection.execute(step.sql, *step.rows[0]))
        else:
            await connection.executemany(step.sql, step.rows)
            changed = len(step.rows)
    return changed


def _changed(status: str) -> int:
    """Return the number at the end of what PostgreSQL says of a statement, such as `DELETE 5`."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0
