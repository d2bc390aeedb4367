"""Runs the migrations of a PostgreSQL database."""

import asyncio
from functools import partial
from itertools import count

import asyncpg
from sqlalchemy import Connection, NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from farthing_gateway.storage.database import PATIENCE_S, named
from farthing_gateway.storage.database_postgres import CONFLICTS
from farthing_gateway.storage.ledger.postgres import TRIES, WAIT_S, explained
from farthing_gateway.storage.migrations.running import upgrade

LOCK = 0x46746867
"""Number of the lock under which tables are made and changed: servers may start at once."""


async def upgrade_server(url: str) -> None:
    """Bring the tables of a database to this version.

    An older gateway may write meanwhile, and wait for what this waits for: then it is tried again.
    """
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=partial(asyncpg.connect, url, timeout=PATIENCE_S),
        poolclass=NullPool,
        # What another process made while this one waited for the lock is seen.
        isolation_level="READ COMMITTED",
    )
    for attempt in count(1):
        try:
            async with engine.begin() as connection:
                await connection.run_sync(_upgrade, url)
        except DBAPIError as problem:
            cause = getattr(problem.orig, "__cause__", None) or problem
            if attempt == TRIES or not isinstance(cause, CONFLICTS):
                raise explained(url, cause) from None
        except (ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as problem:
            raise explained(url, problem) from None  # what it came from may quote the password
        else:
            return
        await asyncio.sleep(WAIT_S * 2**attempt)


def _upgrade(connection: Connection, url: str) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
    upgrade(connection, named(url))
