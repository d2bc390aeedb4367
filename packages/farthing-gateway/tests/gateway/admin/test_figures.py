"""What a page reads of traffic is what a sum or a filter by hand gives, found by an index."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import asyncpg
import msgspec
import numpy as np
import pytest
from made_traffic import NOW, call, passed
from page_running import fail, failures, put, traffic

from farthing_gateway.admin.figures import NEVER, Figures, Slot, Totals, midnight, week
from farthing_gateway.admin.requests_read import PAGE, PageCursor, lines, query, whole
from farthing_gateway.recording import traffic_sums
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.storage.database import Database, open_database

REQUESTS = [
    replace(one, saved_nano=None if at % 7 == 0 else one.saved_nano)
    for at, one in enumerate(traffic(1_500, NOW, days=10.0))
]


def playing(where: str, play: Callable[[Database], Awaitable[None]]) -> None:
    async def go() -> None:
        database = await open_database(where)
        await play(database)
        await database.aclose()

    asyncio.run(go())


def by_hand(since: datetime, until: datetime = NEVER) -> Totals:
    some = [one for one in REQUESTS if since <= one.at < until]
    known = [one for one in some if one.saved_nano is not None]
    return Totals(
        len(some),
        sum(cost_of(one.trace.calls) for one in some),
        cost_of([call("tiny")]) if REQUESTS[0] in some else 0,
        sum(one.saved_nano or 0 for one in known),
        len(known),
        sum(cost_of(one.trace.calls) for one in known),
    )


def test_figures_are_those_of_all_requests(where: str) -> None:
    put(where, *REQUESTS, later=(call("tiny"),))

    async def play(database: Database) -> None:
        figures = Figures(database)
        assert await figures.totals() == by_hand(REQUESTS[0].at)
        for since in (midnight(NOW), week(NOW)):
            assert await figures.totals(since) == by_hand(since)
        first = midnight(NOW) - timedelta(days=13)
        end, now_hour = first + timedelta(days=14), NOW.replace(minute=0)
        assert await figures.totals(first, midnight(NOW)) == by_hand(first, midnight(NOW))
        assert await figures.first() == REQUESTS[0].at.replace(minute=0, second=0, microsecond=0)
        for since, until, hours in (
            (first, end, 24),
            (first, end, 5 * 24),
            (now_hour - timedelta(days=1), now_hour, 1),
        ):
            slots = await figures.slots(since, until, hours)
            step = timedelta(hours=hours)
            assert [one.at for one in slots] == [since + at * step for at in range(len(slots))]
            assert slots[-1].at < until <= slots[-1].at + step
            for one in slots:
                some = by_hand(one.at, min(until, one.at + step))
                assert one == Slot(
                    one.at, some.compared_nano, some.saved_nano, some.cost_nano, some.requests, 0, 0
                )
        kinds = Counter((one.policy or "", one.model, one.promise) for one in REQUESTS)
        found = {(k.policy, k.model, k.promise): k.requests for k in await figures.kinds()}
        assert found == kinds

    playing(where, play)


def test_failures_are_counted_by_the_slot_and_by_why(where: str) -> None:
    made = [*failures(97, NOW), replace(failures(1, NOW)[0], id="x", model=None)]
    fail(where, *made)

    async def play(database: Database) -> None:
        figures = Figures(database)
        first = midnight(NOW) - timedelta(days=6)
        some = [one for one in made if one.at >= first]
        slots = await figures.slots(first, first + timedelta(days=7), 24)
        assert [(one.refused, one.failed) for one in slots] == [
            tuple(
                sum((one.status < 500) == refused and midnight(one.at) == slot.at for one in some)
                for refused in (True, False)
            )
            for slot in slots
        ]
        counted = Counter((one.model or "", one.status, one.code) for one in some)
        found = await figures.failures(first)
        assert {(one.model, one.status, one.code): one.number for one in found} == counted
        assert sum(one.cost_nano for one in found) == sum(one.cost_nano for one in some)
        assert await figures.failures(first, first) == []
        assert await figures.first() == min(one.at for one in made).replace(
            minute=0, second=0, microsecond=0
        )

    playing(where, play)


def test_latencies_are_near_those_of_all_requests(where: str) -> None:
    put(where, *REQUESTS)

    async def play(database: Database) -> None:
        found = await Figures(database).latencies(REQUESTS[0].at)
        replies = {(one.policy, one.model): one for one in found if one.kind == "reply"}
        calls = {one.model: one for one in found if one.kind == "call"}
        own = [one.latency_s for one in REQUESTS if one.model == "farthing/letters"]
        assert_near(replies["letters", "farthing/letters"].slow_s, own, 0.95)
        each = [c for one in REQUESTS for c in one.trace.calls if c.role == "small"]
        seconds = [c.latency_s for c in each if c.latency_s is not None]
        assert_near(calls["small"].median_s, seconds, 0.5)
        assert calls["small"].number == len(seconds)

    playing(where, play)


def assert_near(found: float, seconds: list[float], share: float) -> None:
    exact = float(np.quantile(seconds, share, method="inverted_cdf"))
    assert abs(np.log(found / exact)) <= np.log(traffic_sums.RATIO) / 2 + 1e-9


@pytest.mark.parametrize(
    "wanted",
    [{}, {"policy": "support"}, {"promise": "none"}, {"policy": "letters", "model": "large"}],
)
def test_pages_are_all_requests_that_fit_each_once_the_newest_first(
    where: str, wanted: dict[str, str]
) -> None:
    twins = [replace(one, id=f"twin-{at}") for at, one in enumerate(REQUESTS[::5])]
    nobody = [replace(passed(f"n{at}", at=NOW), policy=None) for at in range(3)]
    everything = [*REQUESTS, *twins, *nobody]
    put(where, *everything)

    async def play(database: Database) -> None:
        kinds = await Figures(database).kinds()
        some = [k for k in kinds if all(getattr(k, f) == v for f, v in wanted.items())]
        place, found = PageCursor(), list[str]()
        while page := await lines(database, some if wanted else None, place):
            found += [one.id for one in page[:PAGE]]
            if len(page) <= PAGE:
                break
            place = PageCursor.read(str(page[PAGE - 1].place))
        assert found == by_filter(everything, wanted)

    playing(where, play)


def by_filter(requests: list[RequestRecord], wanted: dict[str, str]) -> list[str]:
    fit = [one for one in requests if all(getattr(one, f) == v for f, v in wanted.items())]
    return [one.id for one in sorted(fit, key=lambda one: (one.at, one.id), reverse=True)]


def test_a_filter_that_nothing_fits_is_an_empty_page(where: str) -> None:
    async def play(database: Database) -> None:
        assert await lines(database, [], PageCursor()) == []
        assert await lines(database, None, PageCursor()) == []
        assert await whole(database, "gone") is None

    playing(where, play)


@pytest.mark.parametrize("text", ["", "x", "-", "5", "-5-a", "9" * 30 + "-a", "²-a", "1e3-a"])
def test_a_place_that_cannot_be_read_is_the_beginning(text: str) -> None:
    found = PageCursor.read(text)
    assert found == PageCursor() or str(found) == f"{text}-"


def test_lists_are_read_from_an_index_in_its_order(tmp_path: object) -> None:
    where = f"{tmp_path}/farthing.db"
    put(where, *REQUESTS[:200])

    async def play(database: Database) -> None:
        kinds = await Figures(database).kinds()
        for some in (None, kinds, kinds[:1]):
            sql, values = query(some, PageCursor())
            rows = await database.read(f"EXPLAIN QUERY PLAN {sql}", *values)
            plan = [str(row[3]) for row in rows]
            read = [at for at, line in enumerate(plan) if "traffic_requests" in line]
            wanted = "traffic_by_time" if some is None else "traffic_by_kind"
            assert len(read) == (1 if some is None else len(some))
            for at in read:
                assert f"SEARCH traffic_requests USING INDEX {wanted}" in plan[at], plan
                assert "(at_us,id)<(?,?)" in plan[at], plan
                after = plan[at + 1] if at + 1 < len(plan) else ""
                assert "TEMP B-TREE" not in after, "what is read would be sorted as a whole"

    playing(where, play)


def test_lists_are_read_from_an_index_by_postgresql_too(schema: str) -> None:
    put(schema, *REQUESTS[:200])

    async def play(database: Database) -> None:
        kinds = await Figures(database).kinds()
        connection = await asyncpg.connect(schema)
        await connection.execute("SET enable_seqscan = off; SET enable_sort = off")
        for some, index in ((None, "traffic_by_time"), (kinds, "traffic_by_kind")):
            sql, values = query(some, PageCursor())
            rows = await connection.fetch(f"EXPLAIN {sql}", *values)
            plan = "\n".join(row[0] for row in rows)
            assert "Seq Scan" not in plan, plan
            assert plan.count(index) == (1 if some is None else len(some)), plan
        await connection.close()

    playing(schema, play)


def test_one_request_is_found_with_what_was_asked_later(where: str) -> None:
    one = REQUESTS[3]
    later = msgspec.structs.replace(call("tiny"), latency_s=1.0)
    put(where, one, later=(later, *one.trace.calls[:1]))

    async def play(database: Database) -> None:
        found = await whole(database, one.id)
        assert found is not None
        assert found.passed == one
        assert found.later == (later, *one.trace.calls[:1])

    playing(where, play)
