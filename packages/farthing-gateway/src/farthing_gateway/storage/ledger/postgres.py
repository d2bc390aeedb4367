"""AccountLedger in PostgreSQL: for several machines.

What waits in a process goes to the server as one call of one function, `ledger_apply`. It locks
the accounts in an order that is the same for all, so that the checks of a reservation hold until
it is written and nobody waits in a circle.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, unquote

import msgspec

from farthing.errors import StoreError
from farthing_gateway.storage.ledger.operations import Gone, Ok, Operation, Outcome, Settle

if TYPE_CHECKING:
    import asyncpg

TRIES = 5
WAIT_S = 0.025
"""Seconds before the second try are twice as many; each further wait is twice as long."""
CONNECT_S = 10
COMMAND_S = 30
SETTINGS = {
    # A check holds only if its statement sees all that was committed before it began.
    "default_transaction_isolation": "read committed",
    "application_name": "farthing",
}


class PostgresLedgerDatabase:
    """A few connections to one database; messages say where it is, and never the password."""

    def __init__(self, url: str) -> None:
        self._driver = driver = import_module("asyncpg")
        self._url = url
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._conflict = (driver.DeadlockDetectedError, driver.SerializationError)
        self._lost = (
            OSError,
            driver.InterfaceError,
            driver.PostgresConnectionError,
            driver.OperatorInterventionError,
        )

    @classmethod
    async def open(cls, url: str) -> Self:
        database = cls(url)
        try:
            database._pool = await database._driver.create_pool(
                url,
                min_size=1,
                max_size=4,
                timeout=CONNECT_S,
                command_timeout=COMMAND_S,
                server_settings=SETTINGS,
            )
        except (*database._lost, database._driver.PostgresError, ValueError) as problem:
            await database.aclose()
            # What it came from may quote the password.
            raise database._explained(problem) from None
        return database

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out operations in one transaction; see `LedgerDatabase`.

        Tried again after a conflict, and where the connection broke. It may have broken after the
        first try was committed: then a hold that is gone is one that this try has settled.
        """
        answer, broke = await self._call(msgspec.json.encode(operations).decode())
        outcomes = msgspec.json.decode(answer, type=list[Outcome])
        return _settled_before(operations, outcomes) if broke else outcomes

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    @property
    def _connections(self) -> "asyncpg.Pool[asyncpg.Record]":
        assert self._pool is not None, "open it first"  # noqa: S101
        return self._pool

    async def _call(self, operations: str) -> tuple[str, bool]:
        """Return the server's answer, and whether a connection broke before it came."""
        attempt, broke = 0, False
        while True:
            attempt += 1
            try:
                answer = await self._connections.fetchval(
                    "SELECT ledger_apply($1::jsonb)", operations
                )
            except (*self._conflict, *self._lost) as problem:
                if attempt == TRIES or isinstance(problem, TimeoutError):
                    raise self._explained(problem) from None
                broke = broke or not isinstance(problem, self._conflict)
                await asyncio.sleep(WAIT_S * 2**attempt)
            except self._driver.PostgresError as problem:
                raise self._explained(problem) from None
            else:
                return str(answer), broke

    def _explained(self, problem: BaseException) -> StoreError:
        return explained(self._url, problem)


def _settled_before(asked: Sequence[Operation], outcomes: list[Outcome]) -> list[Outcome]:
    """Take what is gone now for what the try before has settled."""
    return [
        Ok() if isinstance(outcome, Gone) and isinstance(one, Settle) else outcome
        for one, outcome in zip(asked, outcomes, strict=True)
    ]


def explained(url: str, problem: BaseException) -> StoreError:
    """Return what a driver or a network says of a database, with a remedy and without passwords."""
    text = str(problem) or type(problem).__name__
    if isinstance(problem, ValueError):  # it may quote any part of the address
        text = "this is no address of a PostgreSQL database, or a value that it cannot take"
    for password in passwords(url):
        text = text.replace(password, "***")
    return StoreError(
        f"PostgreSQL at {shown(url)}: {text}; check the address, and that the server runs and "
        "lets this user in"
    )


def shown(url: str) -> str:
    """Return where a database is: its address without user, password and settings.

    >>> shown("postgresql://me:secret@db.example:5432/farthing?sslmode=require")
    'db.example:5432/farthing'
    """
    address, _, settings = url.partition("://")[2].partition("?")
    # A password may hold an unescaped `?`; then its end cannot be told from the address.
    return "its address" if "@" in settings else address.rpartition("@")[2]


def passwords(url: str) -> set[str]:
    """Return the passwords in an address, in each way that a message may write them.

    >>> sorted(passwords("postgresql://me:a%40b@db/farthing?password=c"))
    ['a%40b', 'a@b', 'c']
    """
    address, _, settings = url.partition("://")[2].partition("?")
    user = address.rpartition("@")[0]
    found = {user.partition(":")[2], *parse_qs(settings).get("password", [])} - {""}
    return found | {unquote(one) for one in found}
