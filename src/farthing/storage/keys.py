"""Keys: who may ask the gateway, for what, and how much they may spend.

A key is `fk-ID-SECRET`: eight hexadecimal digits that are public and name it in logs and tables,
and 256 random bits that are shown once. The database has the SHA-256 of the whole alone.

No slow hash is needed: bcrypt and its like make guessing a *password* dear, of which people choose
few. Of 256 random bits nobody guesses one in the age of the universe, however fast the hash, and a
slow one would cost every request its time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from farthing.storage.database import open_database
from farthing.storage.ledger.base import Limit, Unit
from farthing.storage.ledger.periods import Period

Scope = Literal["call", "admin", "read"]
"""Ask models; make and revoke keys and see all money; see what was spent."""
CACHE_S = 3.0
"""How long a key that was looked up is remembered, in seconds: a revocation takes no longer."""


@dataclass(frozen=True)
class KeyLimit:
    """The most that may be spent with a key in a period."""

    unit: Unit
    period: Period
    most: int
    """Of `usd` in nano-dollars."""


@dataclass(frozen=True)
class KeyRecord:
    """What is known of a key; the secret is not."""

    id: str
    """Eight hexadecimal digits; public."""
    name: str
    """Unique among the keys that are not revoked."""
    team: str | None
    scopes: frozenset[Scope]
    limits: tuple[KeyLimit, ...]
    models: tuple[str, ...]
    """Models and policies that may be asked; empty: all."""
    made_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None

    def is_valid(self, at: datetime) -> bool:
        """Return whether the key opens anything at this moment."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    @property
    def account(self) -> str:
        """What calls with it are charged to."""
        return f"key:{self.name}"

    @property
    def on_account(self) -> tuple[Limit, ...]:
        """The limits on what is charged to it."""
        return tuple(Limit(self.account, one.unit, one.period, one.most) for one in self.limits)


class Keys(Protocol):
    """Makes, finds and revokes keys; other processes may do so at the same time."""

    async def make(
        self,
        name: str,
        team: str | None = None,
        scopes: Iterable[Scope] = ("call",),
        limits: Sequence[KeyLimit] = (),
        models: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> tuple[KeyRecord, str]:
        """Make a key; return its record and the secret, which nobody can show again.

        Raises:
            InputError: the name cannot be one, or is that of another key.
        """
        ...

    async def find(self, secret: str) -> KeyRecord | None:
        """Return the record of a key; None where it is unknown, revoked or expired."""
        ...

    async def by_id(self, id: str) -> KeyRecord | None:  # noqa: A002
        """Return the record of a key that opens something; None where it does so no more."""
        ...

    async def revoke(self, id_or_name: str) -> KeyRecord:
        """End a key, within `CACHE_S` in every process; one that is revoked stays so.

        Raises:
            UnknownNameError: there is no such key.
        """
        ...

    async def limit(
        self, id_or_name: str, limits: Sequence[KeyLimit], without: Sequence[tuple[Unit, Period]]
    ) -> KeyRecord:
        """Change a key's limits, within `CACHE_S` in every process; return its record.

        Args:
            id_or_name: of a key that is not revoked.
            limits: take the place of those of the same unit and period; the others stay.
            without: units and periods whose limits end.

        Raises:
            UnknownNameError: there is no such key.
            InputError: it is revoked, or there is no such limit to end.
        """
        ...

    async def list(self) -> list[KeyRecord]:
        """Return all keys, the oldest first, revoked ones among them."""
        ...

    async def aclose(self) -> None:
        """Close the database."""
        ...


async def open_keys(where: str, *, create: bool = True) -> Keys:
    """Open the keys of a database.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.
        create: whether an SQLite file that does not exist is made, and tables that lack.

    Raises:
        StoreError: it cannot be opened.
    """
    from farthing.storage.stored_keys import SCHEMA, StoredKeys  # noqa: PLC0415 - needs the records

    return StoredKeys(await open_database(where, SCHEMA, create=create))
