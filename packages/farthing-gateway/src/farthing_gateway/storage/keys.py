"""Keys: who may ask the gateway, for what, and how much they may spend.

A key is `fk-ID-SECRET`: eight hexadecimal digits that are public and name it in logs and tables,
and 256 random bits that are shown once. The database has the SHA-256 of the whole alone.

No slow hash is needed: bcrypt and its like make guessing a *password* dear, of which people choose
few. Of 256 random bits nobody guesses one in the age of the universe, however fast the hash, and a
slow one would cost every request its time.
"""

import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, get_args

import msgspec

from farthing.errors import InputError, UnknownNameError
from farthing_gateway.storage.database import (
    Database,
    Row,
    Step,
    microseconds,
    moment,
    open_database,
)
from farthing_gateway.storage.ledger.base import Limit, Period, Unit

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


CACHED = 4096
"""Keys that are remembered at most, unknown ones among them."""
_INSERT = """
INSERT INTO gateway_keys (id, digest, name, team, scopes, limits, models, made_us, expires_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"""
_SELECT = """
SELECT digest, id, name, team, scopes, limits, models, made_us, revoked_us, expires_us
FROM gateway_keys"""
_REVOKE = "UPDATE gateway_keys SET revoked_us = $1 WHERE id = $2 AND revoked_us IS NULL"
_LIMIT = "UPDATE gateway_keys SET limits = $1 WHERE id = $2 AND limits = $3"
_SECRET = re.compile(r"fk-([0-9a-f]{8})-[A-Za-z0-9_-]{43}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")
_SECRET_LIKE = re.compile(r"[fs]k-", re.IGNORECASE)
_NOBODY = "0" * 64
"""What the secret of an unknown id is compared with, so that it takes as long."""
_Found = tuple[str, KeyRecord | None]
"""A digest, and whose it is."""


class Keys:
    """Makes, finds and revokes keys; other processes may do so at the same time."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep keys in a database.

        `seconds` tells how long a key was remembered; setting the date does not move it.
        """
        self._database = database
        self._now = now
        self._seconds = seconds
        self._remembered: dict[str, tuple[float, _Found]] = {}

    async def make(
        self,
        name: str,
        team: str | None = None,
        scopes: Iterable[Scope] = ("call",),
        limits: Sequence[KeyLimit] = (),
        models: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> tuple[KeyRecord, str]:
        """Make a key; return its record and the secret, which nobody can show again."""
        made_at = moment(microseconds(self._now()))
        record = KeyRecord(
            id=secrets.token_hex(4),
            name=name,
            team=team,
            scopes=frozenset(scopes),
            limits=tuple(limits),
            models=tuple(models),
            made_at=made_at,
            revoked_at=None,
            expires_at=expires_at,
        )
        _check(record)
        secret = f"fk-{record.id}-{secrets.token_urlsafe(32)}"
        if not await self._database.write(Step(_INSERT, [_row(record, digest_of(secret))])):
            raise InputError(f"there is a key '{name}' already; revoke it first, or name another")
        self._remembered.pop(record.id, None)
        return record, secret

    async def find(self, secret: str) -> KeyRecord | None:
        """Return the record of a key; None where it is unknown, revoked or expired."""
        shaped = _SECRET.fullmatch(secret)
        if shaped is None:
            return None
        digest, record = await self._looked_up(shaped[1])
        same = hmac.compare_digest(digest, digest_of(secret))
        return record if same and record and record.is_valid(self._now()) else None

    async def by_id(self, id: str) -> KeyRecord | None:  # noqa: A002
        """Return the record of a key that opens something; None where it does so no more."""
        record = (await self._looked_up(id))[1]
        return record if record and record.is_valid(self._now()) else None

    async def revoke(self, id_or_name: str) -> KeyRecord:
        """End a key, within `CACHE_S` in every process; one that is revoked stays so."""
        found = await self._named(id_or_name)
        at = microseconds(self._now())
        changed = await self._database.write(Step(_REVOKE, [(at, found.id)]))
        self._remembered.pop(found.id, None)
        return replace(found, revoked_at=moment(at)) if changed else found

    async def limit(
        self, id_or_name: str, limits: Sequence[KeyLimit], without: Sequence[tuple[Unit, Period]]
    ) -> KeyRecord:
        """Change a key's limits, within `CACHE_S` in every process; return its record.

        Args:
            id_or_name: of a key that is not revoked.
            limits: take the place of those of the same unit and period; the others stay.
            without: units and periods whose limits end.
        """
        while True:
            found = await self._named(id_or_name)
            if found.revoked_at is not None:
                raise InputError(f"the key '{found.name}' is revoked; make another")
            changed = replace(found, limits=_changed(found.limits, limits, without))
            _check(changed)
            said = (_json(changed.limits), found.id, _json(found.limits))
            if await self._database.write(Step(_LIMIT, [said])):  # else somebody else was quicker
                self._remembered.pop(found.id, None)
                return changed

    async def list(self) -> list[KeyRecord]:
        """Return all keys, the oldest first, revoked ones among them."""
        rows = await self._database.read(f"{_SELECT} ORDER BY made_us, id")
        return [_record(row)[1] for row in rows]

    async def aclose(self) -> None:
        await self._database.aclose()

    async def _named(self, id_or_name: str) -> KeyRecord:
        keys = await self.list()
        found = [key for key in keys if key.id == id_or_name]
        found += [key for key in keys if key.name == id_or_name and key.revoked_at is None]
        found += [key for key in keys if key.name == id_or_name]
        if not found:
            raise UnknownNameError("key", id_or_name, (key.name for key in keys))
        return found[0]

    async def _looked_up(self, key_id: str) -> _Found:
        asked_at = self._seconds()
        until, found = self._remembered.get(key_id, (asked_at, (_NOBODY, None)))
        if asked_at < until:
            return found
        rows = await self._database.read(f"{_SELECT} WHERE id = $1", key_id)
        found = _record(rows[0]) if rows else (_NOBODY, None)
        if len(self._remembered) >= CACHED:
            self._remembered.clear()
        self._remembered[key_id] = asked_at + CACHE_S, found
        return found


async def open_keys(where: str) -> Keys:
    """Open the keys of a database; see `open_database`."""
    return Keys(await open_database(where))


def digest_of(secret: str) -> str:
    """Return what the database keeps of a secret.

    >>> digest_of("fk-")[:8]
    'e1b9a40a'
    """
    return sha256(secret.encode()).hexdigest()


def _changed(
    limits: Sequence[KeyLimit], others: Sequence[KeyLimit], without: Sequence[tuple[Unit, Period]]
) -> tuple[KeyLimit, ...]:
    """Return limits with others in the place of those of the same unit and period."""
    found = {(one.unit, one.period): one for one in limits}
    for unit, period in without:
        if found.pop((unit, period), None) is None:
            known = ", ".join(f"{one.unit}/{one.period}" for one in limits) or "none"
            raise InputError(f"the key has no limit {unit}/{period}; it has {known}")
    return tuple((found | {(one.unit, one.period): one for one in others}).values())


def _check(record: KeyRecord) -> None:
    if not _NAME.fullmatch(record.name) or _ID.fullmatch(record.name):
        shown = "..." if _SECRET_LIKE.match(record.name) else record.name[:40]
        raise InputError(
            f"'{shown}' cannot name a key; give up to 63 letters, digits, dots and "
            "dashes, and not eight hexadecimal digits, which are an id"
        )
    for text in (record.name, record.team or "", *record.models):
        if _SECRET_LIKE.match(text):
            raise InputError("a name, team or model looks like a secret key; nothing was kept")
    if unknown := record.scopes - set(get_args(Scope)):
        raise UnknownNameError("scope", min(unknown), get_args(Scope))
    if not record.scopes:
        raise InputError("a key without a scope opens nothing; give call, admin or read")
    if any(limit.most < 0 for limit in record.limits):
        raise InputError("a limit is below 0; give the most that may be spent")
    if record.expires_at is not None and record.expires_at <= record.made_at:
        raise InputError("the key would have expired already; give a later date")


def _row(record: KeyRecord, digest: str) -> Row:
    lists = (sorted(record.scopes), record.limits, record.models)
    return (
        record.id,
        digest,
        record.name,
        record.team,
        *map(_json, lists),
        microseconds(record.made_at),
        None if record.expires_at is None else microseconds(record.expires_at),
    )


def _json(values: Any) -> str:
    return msgspec.json.encode(values).decode()


def _record(row: Row) -> tuple[str, KeyRecord]:
    digest, key_id, name, team, scopes, limits, models, made, revoked, expires = row
    return digest, KeyRecord(
        id=key_id,
        name=name,
        team=team,
        scopes=msgspec.json.decode(scopes, type=frozenset[Scope]),
        limits=msgspec.json.decode(limits, type=tuple[KeyLimit, ...]),
        models=msgspec.json.decode(models, type=tuple[str, ...]),
        made_at=moment(made),
        revoked_at=None if revoked is None else moment(revoked),
        expires_at=None if expires is None else moment(expires),
    )
