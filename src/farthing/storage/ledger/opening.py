"""Open accounts by where they are."""

from farthing.storage.ledger.base import Accounts
from farthing.storage.ledger.periods import Now, utc_now
from farthing.storage.ledger.postgres import open_postgres
from farthing.storage.ledger.sqlite import open_sqlite

SCHEMES = ("postgresql://", "postgres://")


async def open_accounts(where: str, now: Now = utc_now) -> Accounts:
    """Open accounts in a database, whose tables are made where there are none.

    Args:
        where: the path of an SQLite file, or a `postgresql://` address.
        now: the clock.

    Raises:
        MissingExtraError: asyncpg is needed and not installed.
        StoreError: it cannot be opened, or a newer version wrote it.
    """
    return await (open_postgres if where.startswith(SCHEMES) else open_sqlite)(where, now)
