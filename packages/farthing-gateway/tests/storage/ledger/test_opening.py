"""A database that cannot be used is refused in one line, without its password."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from farthing.errors import MissingExtraError, StoreError
from farthing.traces.store import Store
from farthing_gateway.storage.ledger.base import Amount, LeaseError, New
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger
from farthing_gateway.storage.ledger.postgres import TRIES, PostgresLedgerDatabase
from farthing_gateway.storage.migrations import migrate

SECRETS = ["hunter2", "hun%74er2", "hunter%3F2", "hun/ter2", "h@nter2", "hun?ter2"]


def use(where: str) -> None:
    """Make tables, open accounts, reserve once, close them."""

    async def inside() -> None:
        await migrate(where)
        accounts: AccountLedger = await open_ledger(where)
        await accounts.reserve(["all"], Amount(1), [], lease_s=60)
        await accounts.aclose()

    asyncio.run(inside())


async def execute(where: str, statement: str) -> None:
    connection = await asyncpg.connect(where)
    await connection.execute(statement)
    await connection.close()


def test_what_was_written_is_there_again(where: str) -> None:
    use(where)
    use(where)

    async def inside() -> int:
        accounts = await open_ledger(where)
        [*_, total] = await accounts.balances(["all"])
        await accounts.aclose()
        return total.held.nano

    assert asyncio.run(inside()) == 2


def test_a_newer_database_is_refused(where: str) -> None:
    newer = "UPDATE farthing_version SET version_num = '0007'"
    if where.startswith("postgresql://"):
        asyncio.run(execute(where, newer))
    else:
        with closing(sqlite3.connect(where, isolation_level=None)) as connection:
            connection.execute(newer)
    said = r"written by a newer Farthing \(its tables are of version 0007; this one knows 0002\)"
    for opening in (migrate(where), open_ledger(where)):
        with pytest.raises(StoreError, match=said):
            asyncio.run(opening)


def test_a_trace_store_holds_a_ledger_too(tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    with Store.open(path):
        use(str(path))
    use(str(path))
    with Store.open(path) as store:
        assert store.count() == 0


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but longer than the header of one would be\n" * 20)
    with pytest.raises(StoreError, match=r"notes.txt: file is not a database; check that it is"):
        use(str(path))
    with pytest.raises(StoreError, match=r"cannot be made .*; check its folder"):
        use(str(tmp_path / "absent" / "ledger.db"))


def test_a_locked_file_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    use(str(path))
    monkeypatch.setattr("farthing_gateway.storage.ledger.sqlite.BUSY_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked"):
            use(str(path))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:{}@127.0.0.1:1/farthing",
        "postgresql://me@127.0.0.1:1/farthing?password={}",
        "postgresql://me:{}@127.0.0.1:port/farthing",
        "postgresql://me:{}@127.0.0.1:1/farthing?sslmode={}",
    ],
)
def test_a_password_is_in_no_message(
    address: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing_gateway.storage.ledger.postgres.CONNECT_S", 2)
    url = address.replace("{}", secret)
    with pytest.raises(StoreError, match=r"PostgreSQL at .*; check the address") as refused:
        use(url)
    said = f"{refused.value}{PostgresLedgerDatabase(url)!r}{refused.value.__cause__}"
    assert secret not in said
    assert "unter2" not in said
    assert "ter2" not in said
    assert refused.value.__suppress_context__


def test_the_server_says_no_in_one_line(postgres: str) -> None:
    with pytest.raises(StoreError, match="no schema has been selected to create in"):
        use(f"{postgres}{'&' if '?' in postgres else '?'}search_path=absent")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "farthing_gateway.storage.database_postgres", raising=False)
    with pytest.raises(MissingExtraError, match=r"a PostgreSQL database needs .*\[postgres\]"):
        use("postgresql://me@127.0.0.1:1/farthing")


class Failing:
    """Stands before a pool of connections, and fails so often: before the server, or after it."""

    def __init__(self, pool: Any, problem: Exception, *, after: bool) -> None:
        self.pool, self.problem, self.after, self.times = pool, problem, after, 0

    async def fetchval(self, *asked: str) -> Any:
        if self.times and not self.after:
            self.times -= 1
            raise self.problem
        answer = await self.pool.fetchval(*asked)
        if self.times:
            self.times -= 1
            raise self.problem
        return answer

    async def close(self) -> None:
        await self.pool.close()


CONFLICTS = [asyncpg.SerializationError("s"), asyncpg.DeadlockDetectedError("d")]
BREAKS = [
    asyncpg.ConnectionDoesNotExistError("c"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.AdminShutdownError("a"),
    ConnectionResetError("r"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("problem", [*CONFLICTS, *BREAKS], ids=lambda one: type(one).__name__)
def test_what_failed_is_tried_again_and_done_once(
    schema: str, problem: Exception, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection may break after the commit; a conflict never comes after it."""
    monkeypatch.setattr("farthing_gateway.storage.ledger.postgres.WAIT_S", 0.001)
    after = after and problem in BREAKS

    async def inside() -> None:
        await migrate(schema)
        database = await PostgresLedgerDatabase.open(schema)
        failing = Failing(database._pool, problem, after=after)
        monkeypatch.setattr(database, "_pool", failing)
        accounts = AccountLedger(database)
        failing.times = 2
        hold = await accounts.reserve(["all"], Amount(10), [], lease_s=60)
        failing.times = 2
        await accounts.settle(hold, Amount(7))
        failing.times = 2
        assert await accounts.claim("key", "f", lease_s=60) == New()
        [*_, total] = await accounts.balances(["all"])
        assert (total.held, total.settled) == (Amount(0, 0, 0), Amount(7))
        with pytest.raises(LeaseError):
            await accounts.settle(hold, Amount(7))
        failing.times = TRIES
        with pytest.raises(StoreError, match="check the address, and that the server runs"):
            await accounts.settle(hold, Amount(7))
        failing.times = 0
        await accounts.aclose()

    asyncio.run(inside())
