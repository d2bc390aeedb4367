"""The live point of the frontier: what is paid and what is kept are of the same replies."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from made_traffic import NOW, call, passed
from page_running import put

from farthing_gateway.admin import certificate_figures as read
from farthing_gateway.admin.certificate_figures import Promised, promised
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.storage.database import Database, Step, microseconds, open_database

AUDIT = """INSERT INTO audits VALUES
($1, $2, 'letters', 'default', $3, 'audit', $4, 'reference', 1, 'done', '', 0, 0, 0, $5, '')"""


def replied(
    name: str, usd: float, certificate: str, promise: str, at: datetime = NOW
) -> RequestRecord:
    one = passed(name, at=at, policy="letters", calls=[call("small", cost_usd=usd)])
    return replace(one, certificate=certificate, promise=promise, mode="default")


async def filled(where: str, audits: list[tuple[RequestRecord, float, float]]) -> Database:
    database = await open_database(where)
    rows = [
        (one.id, microseconds(one.at), one.certificate, probability, value)
        for one, probability, value in audits
    ]
    await database.write(Step(AUDIT, rows))
    return database


def test_the_live_point_is_of_the_replies_that_carried_the_promise(where: str) -> None:
    under = [replied(f"u{at}", 0.002, "new", "agreement") for at in range(8)]
    ended = [replied(f"e{at}", 0.5, "new", "none") for at in range(5)]
    before = [replied(f"b{at}", 0.7, "old", "agreement") for at in range(5)]
    long_ago = [replied("l", 0.9, "new", "agreement", NOW - timedelta(days=30))]
    put(where, *under, *ended, *before, *long_ago)
    audits = [(under[0], 0.5, 1.0), (under[1], 0.25, 1.0), (under[2], 0.25, 0.0)]
    audits += [(one, 0.5, 0.0) for one in (*ended, *before, *long_ago)]

    async def play() -> None:
        database = await filled(where, audits)
        since = NOW - timedelta(days=7)
        found = await promised(database, "letters", "new", "agreement", since)
        # Weights 2, 4 and 4: a share of 6 of 10.
        assert found is not None
        assert (found.replies, found.cost_nano, found.graded) == (8, 8 * 2_000_000, 3)
        assert found.share == pytest.approx(0.6)
        assert found.interval == (0.0, 1.0)  # three say next to nothing
        parity = await promised(database, "letters", "new", "parity", since)
        assert parity == Promised(8, 8 * 2_000_000, 3, None)
        assert await promised(database, "letters", "gone", "agreement", since) is None
        await database.aclose()

    asyncio.run(play())


def test_the_share_is_of_no_reply_that_is_too_old_for_the_cost(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [
        replied(f"r{at}", 0.001 * (at + 1), "new", "agreement", NOW + timedelta(seconds=at))
        for at in range(4)
    ]
    put(where, *some)
    monkeypatch.setattr(read, "REPLIES", read.REPLIES.replace(str(read.MOST), "2"))

    async def play() -> None:
        database = await filled(where, [(some[0], 0.5, 0.0), (some[3], 0.5, 1.0)])
        found = await promised(database, "letters", "new", "agreement", NOW)
        assert found is not None
        assert (found.replies, found.cost_nano, found.graded) == (2, 7_000_000, 1)
        assert found.share == 1.0
        await database.aclose()

    asyncio.run(play())


def test_the_live_point_is_read_from_indices(tmp_path: object) -> None:
    where = f"{tmp_path}/farthing.db"
    put(where, replied("a", 0.001, "new", "agreement"))

    async def play() -> None:
        database = await filled(where, [])
        for sql, index in ((read.REPLIES, "COVERING INDEX traffic_under"),
                           (read.AUDITS, "INDEX audits_graded")):  # fmt: skip
            rows = await database.read(f"EXPLAIN QUERY PLAN {sql}", "letters", "new", 0)
            plan = " ".join(str(row[3]) for row in rows)
            assert f"{index} (policy=? AND certificate=? AND at_us>?)" in plan
            assert "TEMP B-TREE" not in plan
        await database.aclose()

    asyncio.run(play())
