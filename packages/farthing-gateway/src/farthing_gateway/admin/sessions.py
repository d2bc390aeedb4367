"""Who is logged in: sessions that a key opens, in the gateway's database, so that workers share.

A session is 256 random bits in the browser's cookie; the database has their SHA-256 alone. It ends
after `LONGEST`, after `IDLE` without a page, with its key, and when its user logs out.
"""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from farthing_gateway.storage.database import Database, Step, microseconds, moment
from farthing_gateway.storage.keys import KeyRecord, Keys, digest_of

LONGEST = timedelta(hours=12)
IDLE = timedelta(hours=1)
NOTED = timedelta(minutes=1)
"""How exactly it is known when a session was last used: a page is no write to the database."""
_INSERT = "INSERT INTO sessions (digest, key_id, made_us, used_us) VALUES ($1, $2, $3, $3)"
_SELECT = "SELECT key_id, made_us, used_us FROM sessions WHERE digest = $1"
_USED = "UPDATE sessions SET used_us = $2 WHERE digest = $1"
_END = "DELETE FROM sessions WHERE digest = $1"
_END_OF_KEY = "DELETE FROM sessions WHERE key_id = $1"
_FORGET = "DELETE FROM sessions WHERE made_us <= $1 OR used_us <= $2"


@dataclass(frozen=True)
class Session:
    """Somebody who is logged in."""

    token: str
    """What the cookie holds."""
    key: KeyRecord

    @property
    def is_admin(self) -> bool:
        """Whether prompts and keys may be seen, and alarms closed."""
        return "admin" in self.key.scopes

    @property
    def form_token(self) -> str:
        """What each form of the session has to send back: no other site can know it.

        >>> record = None
        >>> Session("a", record).form_token == Session("b", record).form_token
        False
        """
        return hmac.new(self.token.encode(), b"form", sha256).hexdigest()

    def sent_by_us(self, token: str) -> bool:
        """Return whether a form's token is this session's."""
        return hmac.compare_digest(self.form_token.encode(), token.encode())


class Sessions:
    """The sessions of a gateway's database."""

    def __init__(
        self,
        database: Database,
        keys: Keys,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database, self._keys, self._now = database, keys, now

    async def begin(self, key: KeyRecord) -> Session:
        """Log a key in, and delete the sessions that have ended."""
        session = Session(secrets.token_urlsafe(32), key)
        now = self._now()
        ended = microseconds(now - LONGEST), microseconds(now - IDLE)
        begun = digest_of(session.token), key.id, microseconds(now)
        await self._database.write(Step(_FORGET, [ended]), Step(_INSERT, [begun]))
        return session

    async def find(self, token: str, *, counts: bool = True) -> Session | None:
        """Return the session of a cookie; None where it has ended.

        Args:
            token: what the cookie holds.
            counts: whether this is a page that somebody asked for; one that asks by itself again
                and again keeps no session alive.
        """
        now = self._now()
        rows = await self._database.read(_SELECT, digest_of(token))
        if not rows:
            return None
        key_id, made, used = rows[0]
        key = await self._keys.by_id(key_id)
        if key is None or now >= moment(made) + LONGEST or now >= moment(used) + IDLE:
            await self.end(token)
            return None
        if counts and now >= moment(used) + NOTED:
            await self._database.write(Step(_USED, [(digest_of(token), microseconds(now))]))
        return Session(token, key)

    async def end(self, token: str) -> None:
        """Log out."""
        await self._database.write(Step(_END, [(digest_of(token),)]))

    async def end_all(self, key_id: str) -> None:
        """End whatever a key opened."""
        await self._database.write(Step(_END_OF_KEY, [(key_id,)]))
