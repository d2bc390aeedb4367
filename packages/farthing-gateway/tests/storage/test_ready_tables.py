"""What tests copy is what a migration makes."""

import asyncio
import os
import sqlite3
from pathlib import Path

import asyncpg
from ready_tables import ready_file, ready_schema

from farthing_gateway.storage.migrations.running import upgrade_file
from farthing_gateway.storage.migrations.running_postgres import upgrade_server

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable, column_default
FROM information_schema.columns
WHERE table_schema = current_schema() ORDER BY 1, 2
"""
INDEXES = """
SELECT replace(indexdef, current_schema(), '') FROM pg_indexes
WHERE schemaname = current_schema() ORDER BY 1
"""
CODE = """
SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace ORDER BY 1
"""
VERSION = "SELECT version_num FROM farthing_version"


def test_a_file_has_the_same_tables(tmp_path: Path) -> None:
    upgrade = ready_file(tmp_path)
    made, copied = tmp_path / "made.db", tmp_path / "copied.db"
    upgrade_file(str(made))
    copied.touch()
    upgrade(str(copied))
    assert everything(copied) == everything(made) != []


def everything(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return sorted(connection.iterdump())
    finally:
        connection.close()


def test_a_schema_has_the_same_tables(postgres: str) -> None:
    found = asyncio.run(made_and_copied(postgres))
    assert found[0] == found[1]
    assert all(found[0])


async def made_and_copied(postgres: str) -> list[list[list[asyncpg.Record]]]:
    connection = await asyncpg.connect(postgres)
    upgrade, found = ready_schema(), []
    try:
        for number, each in enumerate((upgrade_server, upgrade, upgrade)):
            name = f"farthing_ready_{os.getpid()}_{number}"
            await connection.execute(f"CREATE SCHEMA {name}")
            await each(f"{postgres}{'&' if '?' in postgres else '?'}search_path={name}")
            await connection.execute(f"SET search_path = {name}")
            found.append([await connection.fetch(ask) for ask in (COLUMNS, INDEXES, CODE, VERSION)])
            await connection.execute(f"DROP SCHEMA {name} CASCADE")
    finally:
        await connection.close()
    return [found[0], found[2]]
