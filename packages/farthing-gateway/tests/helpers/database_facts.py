"""What a database is made of, to compare those that were made in different ways."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

Facts = dict[str, Any]
UPGRADES = Path(__file__).parents[1] / "storage/upgrades"
"""What `upgrades/write.py` wrote."""
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull, collname, pg_get_expr(adbin, adrelid)
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum"""
_CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = $1::regclass AND contype <> 'n' ORDER BY 1"""
_FUNCTIONS = """
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid), prosrc FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace ORDER BY 1"""


def on_server(where: str) -> bool:
    """Return whether it is a database of PostgreSQL."""
    return where.startswith("postgresql")


def written(where: str, version: str = "unversioned") -> str:
    """Fill a database with what a gateway of a version wrote; return the secret of its key."""
    engine = "postgres" if on_server(where) else "sqlite"
    execute(where, (UPGRADES / f"{version}.{engine}.sql").read_text())
    return str(json.loads((UPGRADES / f"{version}.keys.json").read_text())[engine])


def facts(where: str) -> Facts:
    """Return each table's columns, keys, checks and indexes, and the server's functions."""
    if on_server(where):
        return asyncio.run(_on_server(where))
    with closing(sqlite3.connect(where)) as connection:
        return _in_file(connection)


def rows(where: str) -> dict[str, list[Any]]:
    """Return what is in each table but that of the version."""
    if on_server(where):
        return asyncio.run(_rows_on_server(where))
    with closing(sqlite3.connect(where)) as connection:
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
            for (name, *_) in _tables(connection)
            if name != "farthing_version"
        }


def execute(where: str, script: str) -> None:
    """Run statements."""
    if on_server(where):
        asyncio.run(_executed(where, script))
        return
    with closing(sqlite3.connect(where)) as connection:
        connection.executescript(script)


def _tables(connection: sqlite3.Connection) -> list[tuple[str, int, int, str]]:
    return connection.execute(
        "SELECT l.name, l.wr, l.strict, m.sql FROM pragma_table_list AS l "
        "JOIN sqlite_master AS m ON m.name = l.name WHERE l.type = 'table' ORDER BY 1"
    ).fetchall()


def _in_file(connection: sqlite3.Connection) -> Facts:
    found: Facts = {}
    for name, without_rowid, strict, sql in _tables(connection):
        columns = [
            # Hand-written keys of text may be null in SQLite, by an old mistake of its own.
            (column, kind, bool(needed or key), default, key)
            for _, column, kind, needed, default, key in connection.execute(
                f'PRAGMA table_info("{name}")'
            )
        ]
        indexes = {
            index: (unique, _of_index(connection, index))
            for _, index, unique, *_ in connection.execute(f'PRAGMA index_list("{name}")')
        }
        checks = re.findall(r"CHECK \(.*\)", sql)
        found[name] = (columns, indexes, checks, without_rowid, strict)
    return found


def _of_index(connection: sqlite3.Connection, name: str) -> tuple[list[str], str]:
    columns = [row[2] for row in connection.execute(f'PRAGMA index_info("{name}")')]
    made = connection.execute("SELECT sql FROM sqlite_master WHERE sql > '' AND name = ?", (name,))
    sql = "".join(text for (text,) in made)  # of a key: none
    return columns, " ".join(sql.partition("WHERE")[2].split())


async def _on_server(where: str) -> Facts:
    connection = await asyncpg.connect(where)
    schema = await connection.fetchval("SELECT current_schema()")
    found: Facts = {}
    for name in await _names(connection):
        indexes = await connection.fetch(
            "SELECT indexname, indexdef FROM pg_indexes "
            "WHERE schemaname = $1 AND tablename = $2 ORDER BY 1",
            schema,
            name,
        )
        found[name] = (
            [tuple(row) for row in await connection.fetch(_COLUMNS, name)],
            [(index, text.replace(f"{schema}.", "")) for index, text in indexes],
            [tuple(row) for row in await connection.fetch(_CONSTRAINTS, name)],
            await connection.fetchval(
                "SELECT reloptions FROM pg_class WHERE oid = $1::regclass", name
            ),
        )
    functions = [tuple(row) for row in await connection.fetch(_FUNCTIONS)]
    await connection.close()
    return {**found, "functions": functions}


async def _names(connection: "asyncpg.Connection[asyncpg.Record]") -> list[str]:
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
    return [row[0] for row in await connection.fetch(sql)]


async def _rows_on_server(where: str) -> dict[str, list[Any]]:
    connection = await asyncpg.connect(where)
    names = [name for name in await _names(connection) if name != "farthing_version"]
    found = {}
    for name in names:
        all_of_it = await connection.fetch(f'SELECT * FROM "{name}"')
        found[name] = sorted((tuple(row) for row in all_of_it), key=repr)
    await connection.close()
    return found


async def _executed(where: str, script: str) -> None:
    connection = await asyncpg.connect(where)
    try:
        await connection.execute(script)
    finally:
        await connection.close()
