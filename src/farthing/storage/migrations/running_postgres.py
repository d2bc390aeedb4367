"""Runs the migrations of a PostgreSQL database."""

from functools import partial

import asyncpg
from sqlalchemy import Connection, NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from farthing.storage.database import PATIENCE_S, named
from farthing.storage.ledger.postgres import explained
from farthing.storage.migrations.running import upgrade

LOCK = 0x46746867
"""Number of the lock under which tables are made and changed: servers may start at once."""


async def upgrade_server(url: str) -> None:
    """Bring the tables of a database to this version."""
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=partial(asyncpg.connect, url, timeout=PATIENCE_S),
        poolclass=NullPool,
        # What another process made while this one waited for the lock is seen.
        isolation_level="READ COMMITTED",
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade, url)
    except DBAPIError as problem:
        raise explained(url, getattr(problem.orig, "__cause__", None) or problem) from None
    except (ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as problem:
        raise explained(url, problem) from None  # what it came from may quote the password


def _upgrade(connection: Connection, url: str) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
    upgrade(connection, named(url))
