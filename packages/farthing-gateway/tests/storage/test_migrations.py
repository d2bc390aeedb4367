"""A gateway's database is made, adopted and upgraded: once, by one, and never by a worker."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from database_facts import execute, facts, on_server, rows, written
from gateway_running import models, serve_section
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from farthing.errors import StoreError
from farthing_gateway.app_state import open_gateway
from farthing_gateway.config import read_config
from farthing_gateway.storage import migrations
from farthing_gateway.storage.database import VERSION, open_database
from farthing_gateway.storage.migrations import migrate
from farthing_gateway.storage.schema import METADATA

OLDER = "UPDATE farthing_version SET version_num = '0000'"
NEWER = "UPDATE farthing_version SET version_num = '9999'"


WAITED_FOR = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'traffic_requests'::regclass"""
UNVERSIONED = "unversioned"
NEW = {"farthing_version", "traffic_hours_failures"}
"""Tables that no gateway from before migrations had."""


@pytest.fixture(scope="module", autouse=True)
def ready_tables() -> None:
    """Each database of these tests is really migrated."""


@pytest.fixture(params=[UNVERSIONED, "0001", "0002"])
def version(request: pytest.FixtureRequest) -> str:
    """Return the version of a database that an older gateway wrote."""
    return str(request.param)


@pytest.fixture
def old(bare: str, version: str) -> str:
    """Return where a database is that a gateway of that version wrote."""
    written(bare, version)
    return bare


def emptied(where: str) -> None:
    if on_server(where):
        schema = where.rpartition("=")[2]
        execute(where, f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")
    else:
        Path(where).unlink()


def test_the_version_is_that_of_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [VERSION]


def test_what_an_older_gateway_wrote_stays_as_it_is(old: str, version: str) -> None:
    before, held = facts(old), rows(old)
    assert asyncio.run(migrate(old)) == (None if version == UNVERSIONED else version)
    after = facts(old)
    assert after.keys() - before.keys() <= NEW
    for name, (columns, indexes, *rest) in ((n, before[n]) for n in before if n != "functions"):
        now_columns, now_indexes, *now_rest = after[name]
        assert (now_columns, now_rest) == (columns, rest)
        assert all(index in now_indexes for index in indexes)
    assert after.get("functions") == before.get("functions")
    assert {name: some for name, some in rows(old).items() if name in held} == held
    assert asyncio.run(migrate(old)) == VERSION


def test_what_failed_before_is_summed(old: str) -> None:
    asyncio.run(migrate(old))
    (failed,) = rows(old)["traffic_failures"]
    ((hour, *of, number, cost),) = rows(old)["traffic_hours_failures"]
    assert hour == failed[1] // 3_600_000_000
    assert (*of, number, cost) == ("", 404, "model_not_found", 1, 0)


def test_a_new_database_is_as_an_upgraded_one(old: str) -> None:
    asyncio.run(migrate(old))
    upgraded = facts(old)
    emptied(old)
    asyncio.run(migrate(old))
    assert facts(old) == upgraded


def test_the_schema_says_what_migrations_make(bare: str) -> None:
    asyncio.run(migrate(bare))
    migrated = facts(bare)
    del migrated["farthing_version"]
    emptied(bare)
    if on_server(bare):
        asyncio.run(_created(bare))
        migrated["functions"] = []
        columns, indexes, constraints, _ = migrated["ledger_windows"]
        migrated["ledger_windows"] = columns, indexes, constraints, None  # see schema.py
    else:
        engine = create_engine(f"sqlite:///{bare}")
        METADATA.create_all(engine)
        engine.dispose()
    assert facts(bare) == migrated


async def _created(where: str) -> None:
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(where)
    )
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
    await engine.dispose()


@pytest.mark.parametrize("table", ["traffic_requests", "audits", "gateway_keys"])
def test_what_lacks_of_a_database_that_recorded_nothing_is_made(bare: str, table: str) -> None:
    written(bare)
    asyncio.run(migrate(bare))
    whole = facts(bare)
    emptied(bare)
    written(bare)
    execute(bare, f"DROP TABLE {table}; DROP INDEX feedback_by_time")
    asyncio.run(migrate(bare))
    assert facts(bare) == whole


@pytest.mark.parametrize(
    ("version", "change", "said"),
    [
        (UNVERSIONED, "ALTER TABLE sessions RENAME COLUMN used_us TO seen_us", "sessions lacks us"),
        ("0001", "ALTER TABLE sessions RENAME COLUMN key_id TO who", "sessions lacks key_id"),
    ],
)
def test_a_table_that_no_version_had_is_refused_and_nothing_is_changed(
    old: str, change: str, said: str
) -> None:
    execute(old, change)
    before = facts(old), rows(old)
    with pytest.raises(StoreError, match=rf"table {said}.*; name another"):
        asyncio.run(migrate(old))
    assert (facts(old), rows(old)) == before


def test_a_newer_database_is_refused_by_all_and_left_alone(where: str) -> None:
    execute(where, NEWER)
    before = facts(where)
    for opening in (migrate, open_database):
        with pytest.raises(StoreError, match=r"by a newer Farthing .* 9999; this one knows 0002"):
            asyncio.run(opening(where))
    assert facts(where) == before


def test_a_database_that_becomes_newer_while_one_waits_is_refused(
    bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(migrate(bare))
    execute(bare, NEWER)
    monkeypatch.setattr(migrations, "check_not_newer", lambda *_: None)
    with pytest.raises(StoreError, match="by a newer Farthing"):
        asyncio.run(migrate(bare))


def test_an_older_database_is_opened_by_nobody(where: str) -> None:
    execute(where, OLDER)
    with pytest.raises(StoreError, match="of an older Farthing; start the gateway, or run `far"):
        asyncio.run(open_database(where))


def test_a_worker_makes_no_tables(bare: str, tmp_path: Path) -> None:
    if not on_server(bare):
        Path(bare).touch()
    text = serve_section(database=bare, keys=True) + models("http://127.0.0.1:9/v1") + "[record]\n"
    (tmp_path / "serve.toml").write_text(text)

    async def start() -> None:
        config = read_config(tmp_path / "serve.toml", record=True)
        async with open_gateway(config, watch=False):
            pass

    with pytest.raises(StoreError, match="its tables are not made; start the gateway, or run"):
        asyncio.run(start())
    assert rows(bare) == {}


@pytest.mark.slow
@pytest.mark.parametrize("filled", [False, True])
def test_of_servers_that_start_at_once_one_migrates(bare: str, *, filled: bool) -> None:
    if filled:
        written(bare)
    script = f"""
import asyncio
import farthing_gateway.storage.migrations.running_postgres
from farthing_gateway.storage.migrations import migrate
input()
print(asyncio.run(migrate({bare!r})))
"""
    command = [sys.executable, "-c", script]
    servers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    time.sleep(4)  # until all have loaded what they need
    for one in servers:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    found = [one.communicate(timeout=60)[0].strip() for one in servers]
    assert [one.returncode for one in servers] == [0] * 4
    assert "None" in found
    assert set(found) <= {"None", VERSION}
    assert asyncio.run(migrate(bare)) == VERSION


def test_a_gateway_from_before_that_writes_is_waited_for_and_writes_on(schema: str) -> None:
    written(schema)

    async def upgraded() -> None:
        connection = await asyncpg.connect(schema)
        writing = connection.transaction()
        await writing.start()
        for table in ("feedback", "audits", "traffic_requests", "ledger_windows"):
            await connection.execute(f"DELETE FROM {table}")
        upgrading = asyncio.ensure_future(migrate(schema))
        await asyncio.sleep(0.5)
        assert not upgrading.done()
        await writing.commit()
        assert await upgrading is None
        await connection.execute("UPDATE audits SET tries = 1")
        await connection.close()

    asyncio.run(upgraded())
    assert rows(schema)["traffic_requests"] == []
    assert asyncio.run(migrate(schema)) == VERSION


@pytest.mark.slow
def test_where_an_older_gateway_and_a_migration_wait_for_each_other_both_end(schema: str) -> None:
    written(schema)
    execute(schema, "DROP INDEX audits_kept, traffic_by_kind")

    async def upgraded() -> None:
        connection = await asyncpg.connect(schema)
        writing = connection.transaction()
        await writing.start()
        await connection.execute("UPDATE traffic_requests SET model = 'large'")
        upgrading = asyncio.ensure_future(migrate(schema))
        while not await connection.fetchval(WAITED_FOR):  # it has the audits by then
            assert not upgrading.done()
            await asyncio.sleep(0.02)
        await connection.execute("DELETE FROM audits")
        await writing.commit()
        await connection.close()
        assert await upgrading is None

    asyncio.run(upgraded())
    assert rows(schema)["audits"] == []
    assert asyncio.run(migrate(schema)) == VERSION


def test_the_version_of_others_in_the_database_is_theirs(bare: str) -> None:
    execute(bare, "CREATE TABLE alembic_version (version_num TEXT)")
    execute(bare, "INSERT INTO alembic_version VALUES ('9999')")
    asyncio.run(migrate(bare))
    assert rows(bare)["alembic_version"] == [("9999",)]


@pytest.mark.slow
def test_who_serves_tables_of_this_version_loads_nothing_that_makes_tables(where: str) -> None:
    script = f"""
import asyncio, sys
import farthing_gateway.app, farthing_gateway.server
from farthing_gateway.storage.migrations import migrate
assert asyncio.run(migrate({where!r})) == {VERSION!r}
assert not {{"alembic", "sqlalchemy"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
