"""Several workers on one PostgreSQL server: none waits for another in a circle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest
from soaking import TIMES

from farthing.errors import StoreError
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.storage.database import Database, Step, connect, open_database
from farthing_gateway.storage.database_postgres import PostgresDatabase
from farthing_gateway.storage.ledger.postgres import TRIES
from farthing_gateway.storage.migrations import migrate

NUMBERS = Step("CREATE TABLE numbers (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
ADD = "UPDATE numbers SET n = n + 1 WHERE id = $1"
PAUSE = Step("SELECT pg_sleep(0.2)")


@asynccontextmanager
async def holding(
    schema: str, *statements: str
) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Have somebody hold the locks of statements while the block runs."""
    connection = await asyncpg.connect(schema)
    try:
        writing = connection.transaction()
        await writing.start()
        for statement in statements:
            await connection.execute(statement)
        yield connection
    finally:
        connection.terminate()


async def two_numbers(schema: str) -> Database:
    """Return a database of two rows."""
    database = await connect(schema)
    await database.write(NUMBERS, Step("INSERT INTO numbers (id, n) VALUES ($1, 0)", [(1,), (2,)]))
    return database


def test_of_writers_that_wait_for_each_other_all_are_heard_in_the_end(schema: str) -> None:
    async def run() -> None:
        database = await two_numbers(schema)
        try:
            ways = [(1, 2), (2, 1), (1, 2), (2, 1)]
            await asyncio.gather(
                *(
                    database.write(Step(ADD, [(first,)]), PAUSE, Step(ADD, [(then,)]))
                    for first, then in ways
                )
            )
            assert await database.read("SELECT n FROM numbers") == [(4,), (4,)]
        finally:
            await database.aclose()

    asyncio.run(run())


def test_a_write_whose_connection_is_lost_is_done_once(schema: str) -> None:
    async def run() -> None:
        database = await two_numbers(schema)
        try:
            writing = asyncio.ensure_future(database.write(Step(ADD, [(1,)]), PAUSE, PAUSE))
            await asyncio.sleep(0.1)
            async with holding(schema) as other:
                ended = await other.fetch(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()"
                )
            assert len(ended) == 1
            await writing
            assert await database.read("SELECT n FROM numbers WHERE id = 1") == [(1,)]
        finally:
            await database.aclose()

    asyncio.run(run())


class Cutting:
    """Stands before a connection: the commits of its transactions arrive, and are not heard of."""

    def __init__(self, connection: Any, left: list[Exception]) -> None:
        self._connection, self._left = connection, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        async with self._connection.transaction():
            yield
        if self._left:
            raise self._left.pop()


@pytest.mark.parametrize(
    "problem",
    [asyncpg.ConnectionDoesNotExistError("c"), asyncpg.AdminShutdownError("a"), OSError("r")],
    ids=lambda one: type(one).__name__,
)
def test_a_commit_that_was_not_heard_of_is_not_done_again(schema: str, problem: Exception) -> None:
    async def run() -> None:
        database = await two_numbers(schema)
        assert isinstance(database, PostgresDatabase)
        pool, left = database._pool, [problem]

        @asynccontextmanager
        async def acquire(timeout: float) -> AsyncIterator[Cutting]:
            async with pool.acquire(timeout=timeout) as connection:
                yield Cutting(connection, left)

        try:
            database._pool = cast("Any", SimpleNamespace(acquire=acquire))
            assert await database.write(Step(ADD, [(1,)])) == 1
            assert not left
            assert await database.read("SELECT n FROM numbers WHERE id = 1") == [(1,)]
        finally:
            await pool.close()

    asyncio.run(run())


def test_the_number_of_a_transaction_is_asked_for_where_it_was_given(schema: str) -> None:
    """After a failover the number may be that of somebody else's, or of one that was lost."""

    class Elsewhere(Cutting):
        async def fetchval(self, sql: str, *values: Any) -> Any:
            return "another" if "pg_control_system" in sql else "committed"

    async def run() -> None:
        database = await two_numbers(schema)
        assert isinstance(database, PostgresDatabase)
        pool, left = database._pool, list[Exception]([OSError("r")])
        doors = [Cutting, Elsewhere]

        @asynccontextmanager
        async def acquire(timeout: float) -> AsyncIterator[Cutting]:
            async with pool.acquire(timeout=timeout) as connection:
                yield doors.pop(0)(connection, left)

        try:
            database._pool = cast("Any", SimpleNamespace(acquire=acquire))
            with pytest.raises(StoreError, match="another server took its place amid a write"):
                await database.write(Step(ADD, [(1,)]))
            assert not doors
        finally:
            await pool.close()

    asyncio.run(run())


def test_a_conflict_that_comes_again_and_again_is_said(schema: str) -> None:
    conflict = Step("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$")

    async def run() -> None:
        database = await two_numbers(schema)
        try:
            with pytest.raises(StoreError, match="conflict"):
                await database.write(Step("SELECT nextval('tries')"), conflict)
            [(tries,)] = await database.read("SELECT last_value FROM tries")
            assert tries == TRIES
            assert await database.read("SELECT n FROM numbers") == [(0,), (0,)]
        finally:
            await database.aclose()

    async def made() -> None:
        connection = await asyncpg.connect(schema)
        await connection.execute("CREATE SEQUENCE tries")
        await connection.close()

    asyncio.run(made())
    asyncio.run(run())


def test_what_is_too_old_is_deleted_from_one_table_at_a_time(schema: str) -> None:
    async def run() -> None:
        await migrate(schema)
        watch = await open_watch(schema)
        try:
            async with holding(schema, "LOCK TABLE audits IN SHARE MODE") as other:
                forgetting = asyncio.ensure_future(watch.forget_before(datetime.now(UTC)))
                await asyncio.sleep(0.3)
                assert not forgetting.done()
                await other.execute("LOCK TABLE feedback IN SHARE MODE NOWAIT")
            await forgetting
        finally:
            await watch.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("times", [3, pytest.param(3 * TIMES, marks=pytest.mark.soak)])
def test_workers_that_start_at_once_clean_and_wait_for_nobody(schema: str, times: int) -> None:
    async def worker() -> None:
        watch = await open_watch(schema)
        forgetting = asyncio.ensure_future(watch.forget_before(datetime.now(UTC)))
        pages = await open_database(schema)
        await forgetting
        await pages.aclose()
        await watch.aclose()

    async def run() -> None:
        await migrate(schema)
        for _ in range(times):
            await asyncio.gather(*(worker() for _ in range(8)))

    asyncio.run(run())
