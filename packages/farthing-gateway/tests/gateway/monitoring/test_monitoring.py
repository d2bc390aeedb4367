"""Events are counted once each, whoever counts them and whenever a process ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import msgspec
import pytest
from watched_traffic import AGREEMENT, later, reply

from farthing.errors import StoreError
from farthing_gateway.monitoring.base import Alarm, Deployed, PromiseStatus
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.deployments import note_deployment
from farthing_gateway.monitoring.events import AuditGraded, Under, event_row, inserted
from farthing_gateway.monitoring.status import StoredWatch, meaning, open_watch
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.storage.database import Database, Row, Step

DELTA = 0.05
UNDER = Under("sums", "default", "c")


def playing(where: str, play: Callable[[Traffic, StoredWatch], Awaitable[None]]) -> None:
    async def go() -> None:
        traffic = await open_traffic(where, None, keep_prompts=True)
        watch = await open_watch(where)
        try:
            await play(traffic, watch)
        finally:
            await watch.aclose()
            await traffic.aclose()

    asyncio.run(go())


async def put(traffic: Traffic, *requests: RequestRecord) -> None:
    for one in requests:
        traffic.put(one)
    await traffic.flush()


async def grade(watch: StoredWatch, values: Sequence[float], start: int = 0) -> None:
    """Write grades as audits do."""
    rows = [
        event_row(f"q{at}", UNDER, AuditGraded(value=value, probability=0.5), later(1))
        for at, value in enumerate(values, start=start)
    ]
    await watch.database.write(*(inserted(row, "") for row in rows))


async def the_only(watch: StoredWatch) -> PromiseStatus:
    (found,) = await watch.kept()
    return found


def test_what_is_kept_is_the_sum_of_the_rows(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        drawn = [reply(f"q{k}", audited=k < 3, group="x" if k % 2 else None) for k in range(9)]
        plain = replace(reply("p"), certificate=None, decided=None, audit=None)
        await put(traffic, *drawn, plain)
        assert await count(watch.database, DELTA) == 9
        await put(traffic, *drawn)  # again, as after an uncertain commit
        assert await count(watch.database, DELTA) == 0
        await grade(watch, [1.0, 1.0, 0.0])
        assert await count(watch.database, DELTA) == 3
        whole, group = await watch.kept()
        assert (whole.replies, whole.drawn, whole.graded, whole.group) == (9, 3, 3, None)
        assert whole.share == pytest.approx(2 / 3)
        assert whole.promised == 0.9
        assert (group.group, group.replies, group.drawn, group.graded) == ("x", 4, 1, 0)
        assert (group.share, group.low, group.high) == (None, None, None)
        audits = await watch.database.read("SELECT id, purpose, probability FROM audits")
        assert sorted(audits) == [(f"q{k}", "audit", 0.5) for k in range(3)]

    playing(where, play)


def test_where_no_one_share_fits_all_audits_that_is_said(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, reply("q"))
        await grade(watch, [1.0] * 300)
        await count(watch.database, DELTA)
        assert not (await the_only(watch)).changed
        await grade(watch, [0.0] * 300, start=300)
        await count(watch.database, DELTA)
        changed = await the_only(watch)
        assert changed.changed
        said = meaning(changed)
        assert "50 % of 600 graded audits kept it. No one share fits all of them" in said
        assert "confidence" not in said  # of the life: it says nothing any more

    playing(where, play)


def test_since_the_alarm_and_since_it_was_closed_have_figures_of_their_own(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, *(reply(f"q{k}", group="g") for k in range(2)))
        await grade(watch, [1.0] * 300 + [0.0] * 100)
        await count(watch.database, DELTA)
        (alarm,) = await watch.alarms()
        whole, group = await watch.kept()
        assert whole.recent is not None
        assert (whole.recent.since, whole.recent.closed) == (alarm.at, False)
        assert (whole.recent.graded, whole.recent.share, whole.recent.low) == (0, None, None)
        assert "UTC) no audit was graded." in meaning(whole)
        await grade(watch, [1.0, 0.0] * 40, start=400)
        await count(watch.database, DELTA)
        whole, group = await watch.kept()
        assert whole.recent is not None
        assert (whole.recent.graded, whole.recent.share) == (80, 0.5)
        assert whole.recent.low is not None
        assert whole.recent.high is not None
        assert 0.3 < whole.recent.low < 0.5 < whole.recent.high < 0.7
        assert " UTC) 50 % of 80 graded audits kept it: 3" in meaning(whole)
        assert (await watch.close_alarm(alarm.id, "ann")) is True
        (alarm,) = await watch.alarms()
        await count(watch.database, DELTA)
        await grade(watch, [1.0] * 20, start=480)
        await count(watch.database, DELTA)
        whole, group = await watch.kept()
        assert whole.recent is not None
        assert group.recent is not None
        assert (whole.recent.since, whole.recent.closed) == (alarm.closed_at, True)
        assert (whole.recent.graded, whole.recent.share, group.recent.graded) == (20, 1.0, 0)
        assert "Since the alarm was closed (" in meaning(whole)

    playing(where, play)


@pytest.mark.slow
def test_workers_that_count_at_once_count_everything_once(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, *(reply(f"q{k}", at=later(k), group=f"g{k % 3}") for k in range(1_200)))
        await grade(watch, [1.0] * 100)
        workers = [await open_watch(where) for _ in range(3)]
        try:
            counted = 0
            while any(
                some := await asyncio.gather(*(count(one.database, DELTA) for one in workers))
            ):
                counted += sum(some)
        finally:
            for one in workers:
                await one.aclose()
        assert counted == 1_300
        whole, *groups = await watch.kept()
        assert (whole.replies, whole.graded, whole.share) == (1_200, 100, 1.0)
        assert [one.replies for one in groups] == [400] * 3
        assert await watch.database.read("SELECT id FROM watch_events") == []

    playing(where, play)


class Dying:
    """A database whose process dies in the midst of a write."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def write(self, *steps: Step) -> int:
        # The last statement fails, as at a kill: what was done before it is undone.
        await self.database.write(*steps, Step("INSERT INTO nowhere VALUES (1)"))
        return 0

    async def read(self, sql: str, *values: object) -> list[Row]:
        return await self.database.read(sql, *values)

    async def aclose(self) -> None: ...


class Slow:
    """A database whose worker is held up before it writes."""

    def __init__(self, database: Database) -> None:
        self.database, self.reached, self.goes_on = database, asyncio.Event(), asyncio.Event()

    async def write(self, *steps: Step) -> int:
        self.reached.set()
        await self.goes_on.wait()
        return await self.database.write(*steps)

    async def read(self, sql: str, *values: object) -> list[Row]:
        return await self.database.read(sql, *values)

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("known", [0, 4])
def test_who_comes_late_counts_nothing_and_deletes_nothing(where: str, known: int) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, *(reply(f"k{k}") for k in range(known)))
        await count(watch.database, DELTA)
        await put(traffic, reply("a"))
        first, second = Slow(watch.database), Slow(watch.database)
        one = asyncio.ensure_future(count(first, DELTA))
        await first.reached.wait()
        await put(traffic, reply("b"))
        other = asyncio.ensure_future(count(second, DELTA))
        await second.reached.wait()
        first.goes_on.set()
        assert await one == 1
        second.goes_on.set()
        assert await other == 0
        assert (await the_only(watch)).replies == known + 1
        assert await count(watch.database, DELTA) == 1
        assert (await the_only(watch)).replies == known + 2

    playing(where, play)


def test_a_worker_that_dies_while_it_counts_leaves_all_to_the_next(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, *(reply(f"q{k}", at=later(k)) for k in range(10)))
        with pytest.raises(StoreError):
            await count(Dying(watch.database), DELTA)
        assert await watch.kept() == []
        assert await count(watch.database, DELTA) == 10
        assert (await the_only(watch)).replies == 10

    playing(where, play)


def test_certificates_are_apart_and_those_in_force_come_first(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, reply("a"), reply("b", certificate="d"), reply("c", certificate="d"))
        for at, mark in enumerate(("c", "d")):
            one = Deployed("sums", "default", later(at), mark, f"says {mark}", "loaded", None)
            await note_deployment(watch.database, one)
        await count(watch.database, DELTA)
        assert [(one.certificate, one.replies) for one in await watch.kept()] == [
            ("d", 2),
            ("c", 1),
        ]

    playing(where, play)


def test_a_parity_is_said_as_a_difference(where: str) -> None:
    parity = replace(reply("q0"), decided=None)

    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        decided = msgspec.structs.replace(AGREEMENT, kind="parity", promised=0.49)
        await put(traffic, replace(parity, decided=decided, promise="parity"))
        await grade(watch, [0.5, 0.5, 0.0, 0.5])
        await count(watch.database, DELTA)
        found = await the_only(watch)
        assert found.promised is None
        assert found.share == pytest.approx(-0.25)
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low < -0.25 < found.high <= 1

    playing(where, play)


def test_an_alarm_ends_a_promise_until_it_is_closed(where: str) -> None:
    async def play(traffic: Traffic, watch: StoredWatch) -> None:
        await put(traffic, reply("q0"))
        await grade(watch, [float(k % 2) for k in range(80)])
        await count(watch.database, DELTA)
        (alarm,) = await watch.alarms()
        assert (alarm.signal, alarm.closed_at, alarm.certificate) == ("promise", None, "c")
        assert "90 % was promised" in alarm.says
        assert set(await watch.ended()) == {UNDER}
        assert not await watch.close_alarm("none", "ann")
        closed = await asyncio.gather(*(watch.close_alarm(alarm.id, by) for by in ("ann", "bob")))
        assert sorted(closed) == [False, True]
        (seen,) = await watch.alarms()
        assert seen.closed_by == ("ann", "bob")[closed.index(True)]
        assert await watch.alarms(only_open=True) == []
        assert await watch.ended() == {}
        await count(watch.database, DELTA)
        await grade(watch, [float(k % 2) for k in range(80)], start=100)
        await count(watch.database, DELTA)
        again: list[Alarm] = await watch.alarms(only_open=True)
        assert [one.signal for one in again] == ["promise"]
        assert again[0].id != alarm.id

    playing(where, play)
