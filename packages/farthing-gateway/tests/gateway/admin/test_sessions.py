"""Sessions: by their digest alone, for so long, and no longer than their key."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from farthing_gateway.admin.login_throttle import Attempts, network_of
from farthing_gateway.admin.sessions import IDLE, LONGEST, Session, Sessions
from farthing_gateway.storage.database import open_database
from farthing_gateway.storage.keys import KeyRecord, Keys
from farthing_gateway.storage.migrations import migrate

BEGIN = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Clock:
    """Tells a time that is set by hand; keys forget at once."""

    def __init__(self) -> None:
        self.now, self.seconds = BEGIN, 0.0

    def after(self, time: timedelta) -> None:
        self.now += time

    def date(self) -> datetime:
        return self.now

    def ticks(self) -> float:
        self.seconds += 10.0
        return self.seconds


Play = Callable[[Sessions, Keys, KeyRecord, Clock], Awaitable[None]]


def playing(where: str, play: Play) -> None:
    async def go() -> None:
        clock = Clock()
        keys = Keys(await open_database(where), clock.date, clock.ticks)
        database = await open_database(where)
        key, _ = await keys.make("owner", scopes=["admin"])
        await play(Sessions(database, keys, clock.date), keys, key, clock)
        await keys.aclose()
        await database.aclose()

    asyncio.run(go())


def test_a_session_is_found_by_its_token_alone(where: str) -> None:
    async def play(sessions: Sessions, _: Keys, key: KeyRecord, __: Clock) -> None:
        first, second = await sessions.begin(key), await sessions.begin(key)
        assert first.token != second.token
        assert await sessions.find(first.token) == first
        for wrong in ("", "x", first.token[:-1], first.token.upper(), first.form_token):
            assert await sessions.find(wrong) is None
        await sessions.end(first.token)
        assert await sessions.find(first.token) is None
        assert await sessions.find(second.token) == second

    playing(where, play)


def test_the_database_has_no_token(tmp_path: Path) -> None:
    file = tmp_path / "farthing.db"
    asyncio.run(migrate(str(file)))
    found: list[Session] = []

    async def play(sessions: Sessions, _: Keys, key: KeyRecord, __: Clock) -> None:
        found.append(await sessions.begin(key))

    playing(str(file), play)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    connection.close()
    data = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert found[0].token.encode() not in data
    assert found[0].form_token.encode() not in data


def test_it_ends_when_nobody_looks_and_after_half_a_day(where: str) -> None:
    async def play(sessions: Sessions, _: Keys, key: KeyRecord, clock: Clock) -> None:
        idle, used = await sessions.begin(key), await sessions.begin(key)
        step = timedelta(minutes=50)
        for _number in range(int(LONGEST / step)):
            clock.after(step)
            assert await sessions.find(used.token)
        assert await sessions.find(idle.token) is None
        clock.after(BEGIN + LONGEST - clock.now)
        assert await sessions.find(used.token) is None

    playing(where, play)


def test_a_page_that_asks_by_itself_keeps_no_session_alive(where: str) -> None:
    async def play(sessions: Sessions, _: Keys, key: KeyRecord, clock: Clock) -> None:
        session = await sessions.begin(key)
        clock.after(IDLE - timedelta(seconds=1))
        assert await sessions.find(session.token, counts=False)
        clock.after(timedelta(seconds=1))
        assert await sessions.find(session.token) is None

    playing(where, play)


def test_it_ends_with_its_key(where: str) -> None:
    async def play(sessions: Sessions, keys: Keys, key: KeyRecord, clock: Clock) -> None:
        soon, _ = await keys.make("soon", scopes=["read"], expires_at=BEGIN + timedelta(minutes=5))
        revoked, expired = await sessions.begin(key), await sessions.begin(soon)
        assert await sessions.find(expired.token)
        clock.after(timedelta(minutes=5))
        assert await sessions.find(expired.token) is None
        assert await sessions.find(revoked.token)
        await keys.revoke(key.id)
        assert await sessions.find(revoked.token) is None

    playing(where, play)


def test_what_has_ended_is_deleted(where: str) -> None:
    async def play(sessions: Sessions, _: Keys, key: KeyRecord, clock: Clock) -> None:
        await sessions.begin(key)
        clock.after(IDLE)
        last = await sessions.begin(key)
        database = await open_database(where)
        assert await database.read("SELECT count(*) FROM sessions") == [(1,)]
        await database.aclose()
        await sessions.end_all(key.id)
        assert await sessions.find(last.token) is None

    playing(where, play)


def test_a_form_is_of_one_session() -> None:
    one, other = Session("a", None), Session("b", None)  # type: ignore[arg-type]
    assert one.sent_by_us(one.form_token)
    for wrong in ("", "é", one.token, other.form_token):
        assert not one.sent_by_us(wrong)


def test_tries_are_limited_by_address_and_in_total() -> None:
    attempts = Attempts(of_address=3, in_total=10)
    for at in range(3):
        assert attempts.wait_s("192.0.2.1", at) == 0
        attempts.failed("192.0.2.1", at)
    assert attempts.wait_s("192.0.2.1", 3.0) == 57.0
    assert attempts.wait_s("192.0.2.2", 3.0) == 0
    for at in range(7):
        attempts.failed(f"198.51.100.{at}", 4.0)
    assert attempts.wait_s("192.0.2.2", 5.0) == 55.0
    assert attempts.wait_s("192.0.2.2", 60.5) == 0


def test_a_try_that_succeeds_does_not_count() -> None:
    attempts = Attempts(of_address=1)
    attempts.failed("2001:db8::1", 0.0)
    assert attempts.wait_s("2001:db8::2", 0.0) > 0, "one network is one address"
    attempts.succeeded("2001:db8::1")
    assert attempts.wait_s("2001:db8::1", 0.0) == 0
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
