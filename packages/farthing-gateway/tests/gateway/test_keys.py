"""Keys: shown once, kept by their digest, found by every process, ended within seconds."""

import asyncio
import hmac
import logging
import re
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from farthing.errors import InputError, StoreError, UnknownNameError
from farthing.models.clock import ManualClock
from farthing_gateway.storage.database import Database, Row, Step, open_database
from farthing_gateway.storage.keys import (
    CACHE_S,
    CACHED,
    KeyLimit,
    KeyRecord,
    Keys,
    Scope,
    open_keys,
)
from farthing_gateway.storage.migrations import migrate

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = KeyLimit("usd", "day", 5_000_000_000)


def playing(where: str, play: Callable[[Keys], Awaitable[None]]) -> None:
    async def go() -> None:
        keys = await open_keys(where)
        try:
            await play(keys)
        finally:
            await keys.aclose()

    asyncio.run(go())


class Counting:
    """A database that counts what is asked."""

    def __init__(self, database: Database) -> None:
        self.database, self.reads = database, 0

    async def write(self, *steps: Step) -> int:
        return await self.database.write(*steps)

    async def read(self, sql: str, *values: object) -> list[Row]:
        self.reads += 1
        return await self.database.read(sql, *values)

    async def aclose(self) -> None:
        await self.database.aclose()


def test_a_key_is_found_by_its_secret_alone(where: str) -> None:
    async def play(keys: Keys) -> None:
        scopes: tuple[Scope, ...] = ("call", "read")
        made, secret = await keys.make("ci", "web", scopes, [DAY], ["small", "farthing/mine"])
        assert re.fullmatch(rf"fk-{made.id}-[A-Za-z0-9_-]{{43}}", secret)
        assert await keys.find(secret) == made
        assert (made.name, made.team, made.scopes) == ("ci", "web", frozenset(scopes))
        assert (made.limits, made.models) == ((DAY,), ("small", "farthing/mine"))
        other = "A" if secret[-1] != "A" else "B"
        for wrong in (secret[:-1] + other, secret[:-1], secret + "A", "", "fk-", made.id, "é"):
            assert await keys.find(wrong) is None
        _, theirs = await keys.make("theirs")
        assert await keys.find(secret[:12] + theirs[12:]) is None

    playing(where, play)


def test_the_database_and_everything_that_prints_lack_the_secret(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secrets: list[str] = []

    async def play(keys: Keys) -> None:
        made, secret = await keys.make("ci")
        secrets.append(secret)
        await keys.find(secret)
        with pytest.raises(UnknownNameError) as unknown:
            await keys.revoke("nobody")
        with pytest.raises(InputError) as named:
            await keys.make(secret)
        with pytest.raises(InputError) as teamed:
            await keys.make("two", team=secret)
        said = (made, keys, vars(keys), unknown.value, named.value, teamed.value, caplog.text)
        assert not any(secret[12:] in f"{part}{part!r}" for part in said)
        database = await open_database(where)
        rows = await database.read("SELECT * FROM gateway_keys")
        await database.aclose()
        assert len(rows) == 1
        assert secret[12:] not in str(rows)

    playing(where, play)


def test_digests_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def watched(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)

    async def play(keys: Keys) -> None:
        _, secret = await keys.make("ci")
        assert await keys.find(secret)
        assert await keys.find("fk-00000000-" + "A" * 43) is None

    playing(where, play)
    assert compared == [(64, 64), (64, 64)]


def test_a_request_costs_no_query_and_a_revocation_takes_seconds(where: str) -> None:
    async def play(theirs: Keys) -> None:
        clock, database = ManualClock(), Counting(await open_database(where))
        ours = Keys(database, lambda: NOW, clock.now)
        made, secret = await theirs.make("ci")
        for _ in range(100):
            assert await ours.find(secret) == made
        assert database.reads == 1
        revoked = await theirs.revoke("ci")
        assert revoked.revoked_at is not None
        assert await theirs.find(secret) is None
        await clock.advance(CACHE_S - 0.01)
        assert await ours.find(secret) == made
        await clock.advance(0.01)
        assert await ours.find(secret) is None
        assert database.reads == 2
        await ours.aclose()

    playing(where, play)


def test_whoever_guesses_fills_no_memory_and_asks_once(where: str) -> None:
    async def play(_: Keys) -> None:
        database = Counting(await open_database(where))
        ours = Keys(database)
        for _again in range(2):
            assert await ours.find("fk-00000000-" + "A" * 43) is None
        assert database.reads == 1
        ours._remembered |= {f"{i:08x}": (1e18, ("", None)) for i in range(CACHED)}
        await ours.find("fk-ffffffff-" + "A" * 43)
        assert len(ours._remembered) == 1
        await ours.aclose()

    playing(where, play)


def test_a_key_ends_with_its_last_day(where: str) -> None:
    async def play(_: Keys) -> None:
        now = NOW
        keys = Keys(await open_database(where), lambda: now)
        made, secret = await keys.make("ci", expires_at=NOW + timedelta(days=1))
        assert await keys.find(secret) == made
        now = NOW + timedelta(days=1, microseconds=-1)
        assert await keys.find(secret) == made
        now = NOW + timedelta(days=1)
        assert await keys.find(secret) is None
        with pytest.raises(InputError, match="expired already"):
            await keys.make("late", expires_at=now)
        await keys.aclose()

    playing(where, play)


def test_names_are_unique_until_a_key_is_revoked(where: str) -> None:
    async def play(keys: Keys) -> None:
        first, _ = await keys.make("ci")
        with pytest.raises(InputError, match="there is a key 'ci' already; revoke it first"):
            await keys.make("ci")
        again = await keys.revoke("ci")
        assert await keys.revoke(first.id) == again
        assert await keys.revoke("ci") == again
        second, secret = await keys.make("ci")
        assert [key.id for key in await keys.list()] == [first.id, second.id]
        assert (await keys.revoke("ci")).id == second.id
        assert await keys.find(secret) is None

    playing(where, play)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "0123abcd", "x" * 64, "naïve\0"])
def test_what_cannot_be_a_name_is_refused(where: str, name: str) -> None:
    async def play(keys: Keys) -> None:
        with pytest.raises(InputError, match="cannot name a key"):
            await keys.make(name)
        assert await keys.list() == []

    playing(where, play)


def test_limits_and_scopes_are_checked(where: str) -> None:
    async def play(keys: Keys) -> None:
        with pytest.raises(InputError, match="opens nothing"):
            await keys.make("ci", scopes=())
        with pytest.raises(InputError, match="below 0"):
            await keys.make("ci", limits=[KeyLimit("calls", "day", -1)])

    playing(where, play)


def test_many_who_make_one_name_make_one_key(where: str) -> None:
    async def go() -> list[KeyRecord]:
        rooms = await asyncio.gather(*[open_keys(where) for _ in range(5)])
        made = await asyncio.gather(*[k.make("ci") for k in rooms], return_exceptions=True)
        assert sum(isinstance(one, tuple) for one in made) == 1
        assert sum(isinstance(one, InputError) for one in made) == 4
        found = await rooms[0].list()
        await asyncio.gather(*[keys.aclose() for keys in rooms])
        return found

    assert len(asyncio.run(go())) == 1


def test_a_database_that_is_not_there_is_refused(tmp_path: object) -> None:
    with pytest.raises(StoreError, match="there is no such database"):
        asyncio.run(open_keys(f"{tmp_path}/absent.db"))
    with pytest.raises(StoreError, match="cannot be made"):
        asyncio.run(migrate(f"{tmp_path}/absent/farthing.db"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/farthing",
        "postgresql://me:hunter2#x@127.0.0.1:1/farthing",
        "postgresql://me:hunter2@host:port/farthing",
    ],
)
def test_a_server_that_is_not_there_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        asyncio.run(open_keys(url))
    assert "hunter2" not in str(refused.value)


def test_the_file_is_the_owners_alone(tmp_path: object) -> None:
    asyncio.run(migrate(f"{tmp_path}/farthing.db"))
    asyncio.run(_made(f"{tmp_path}/farthing.db"))
    modes = subprocess.check_output(["ls", "-l", str(tmp_path)], text=True).splitlines()[1:]
    assert all(mode.startswith("-rw-------") for mode in modes)


async def _made(where: str) -> None:
    keys = await open_keys(where)
    await keys.make("ci")
    await keys.aclose()


def test_a_limit_is_raised_for_the_same_key_in_every_process(where: str) -> None:
    async def play(keys: Keys) -> None:
        clock = ManualClock()
        calls, more = KeyLimit("calls", "minute", 10), KeyLimit("usd", "day", 9_000_000_000)
        made, secret = await keys.make("ci", limits=[DAY, calls])
        other = Keys(await open_database(where), seconds=clock.now)
        assert await other.find(secret) == made
        changed = await keys.limit("ci", [more], [])
        assert changed.limits == (more, calls)
        assert await keys.find(secret) == changed
        await clock.advance(CACHE_S)
        assert await other.find(secret) == changed
        changed = await keys.limit(made.id, [KeyLimit("tokens", "total", 5)], [("usd", "day")])
        assert changed.limits == (calls, KeyLimit("tokens", "total", 5))
        with pytest.raises(InputError, match="no limit usd/month"):
            await keys.limit("ci", [], [("usd", "month")])
        with pytest.raises(UnknownNameError):
            await keys.limit("nobody", [more], [])
        await asyncio.gather(
            keys.limit("ci", [KeyLimit("usd", "hour", 1)], []),
            other.limit("ci", [KeyLimit("usd", "month", 2)], []),
        )
        (now,) = await keys.list()
        assert {(one.unit, one.period) for one in now.limits} == {
            ("calls", "minute"),
            ("tokens", "total"),
            ("usd", "hour"),
            ("usd", "month"),
        }
        await keys.revoke("ci")
        with pytest.raises(InputError, match="is revoked"):
            await keys.limit("ci", [more], [])
        await other.aclose()

    playing(where, play)
