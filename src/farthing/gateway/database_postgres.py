"""PostgreSQL as the database of a gateway, through asyncpg."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from farthing.budgets.accounts.postgres import explained
from farthing.gateway.database import PATIENCE_S, Row, Step

if TYPE_CHECKING:
    Connection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

MOST_CONNECTIONS = 4
"""Connections that one process holds at most."""
MAKING_TABLES = 0x46746867
"""Number of the lock under which tables are made: PostgreSQL lets two makers collide."""


class PostgresDatabase:
    """A few connections to a server."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", url: str) -> None:
        self._pool = pool
        self._url = url

    @classmethod
    async def open(cls, url: str, schema: Sequence[str]) -> "PostgresDatabase":
        """Connect to a server; see `open_database`."""
        async with _explaining(url):
            pool = await asyncpg.create_pool(
                url, min_size=1, max_size=MOST_CONNECTIONS, timeout=PATIENCE_S
            )
        opened = cls(pool, url)
        try:
            lock = Step("SELECT pg_advisory_xact_lock($1)", [(MAKING_TABLES,)])
            await opened.write(lock, *map(Step, schema))
        except BaseException:
            await opened.aclose()
            raise
        return opened

    async def write(self, *steps: Step) -> int:
        """Run the steps in one transaction; see `Database`."""
        changed = 0
        async with self._connection() as connection, connection.transaction():
            for step in steps:
                if len(step.rows) == 1:
                    changed = _changed(await connection.execute(step.sql, *step.rows[0]))
                else:
                    await connection.executemany(step.sql, step.rows)
                    changed = len(step.rows)
        return changed

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query; see `Database`."""
        async with self._connection() as connection:
            return [tuple(row) for row in await connection.fetch(sql, *values)]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> "AsyncIterator[Connection]":
        async with _explaining(self._url), self._pool.acquire(timeout=PATIENCE_S) as connection:
            yield connection


@asynccontextmanager
async def _explaining(url: str) -> AsyncIterator[None]:
    """Turn what asyncpg or the network says into a StoreError with a remedy."""
    try:
        yield
    except (ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as problem:
        raise explained(url, problem) from None  # what it came from may quote the password


def _changed(status: str) -> int:
    """Return the number at the end of what PostgreSQL says of a statement, such as `DELETE 5`."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0
