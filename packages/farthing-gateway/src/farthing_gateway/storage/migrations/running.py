"""Runs the migrations of one file: in one transaction, which one process at a time has."""

import sqlite3
from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, NullPool, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError

from farthing.errors import StoreError
from farthing_gateway.storage.database import PATIENCE_S, VERSION_TABLE, check_not_newer, unusable
from farthing_gateway.storage.schema import METADATA

FOLDER = Path(__file__).parent
BEFORE_BASELINE = "0001"
"""A version that has no file any more: its tables are adopted as those without a version are."""


def upgrade_file(path: str) -> None:
    """Bring the tables of an SQLite file to this version."""
    connected = partial(sqlite3.connect, path, timeout=PATIENCE_S, isolation_level=None)
    engine = create_engine("sqlite://", creator=connected, poolclass=NullPool)
    event.listen(engine, "begin", lambda one: one.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            upgrade(connection, path)
    except (DBAPIError, sqlite3.Error) as problem:
        raise unusable(path, problem.orig if isinstance(problem, DBAPIError) else problem) from None


def upgrade(connection: Connection, where: str) -> None:
    """Bring tables to this version, in the transaction of a connection that holds the lock.

    Raises:
        StoreError: a newer Farthing wrote them, or they are not those of any version.
    """
    options = {"version_table": VERSION_TABLE}
    found = MigrationContext.configure(connection, opts=options).get_current_revision()
    check_not_newer(where, found)
    if found == BEFORE_BASELINE:
        connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE}")  # noqa: S608 - of constants
    config = Config(attributes={"connection": connection, **options})
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    command.upgrade(config, "head")
    tables = inspect(connection).get_multi_columns()
    for table in METADATA.sorted_tables:
        there = {one["name"] for one in tables.get((None, table.name), ())}
        if lacking := [one.name for one in table.columns if one.name not in there]:
            raise StoreError(
                f"{where}: table {table.name} lacks {', '.join(lacking)}, as no version of "
                "Farthing with migrations left it; name another database"
            )
