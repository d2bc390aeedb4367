"""Requests are found by what is asked for, answered or not: those that a filter by hand gives."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from made_traffic import NOW, call, passed

from farthing_gateway.admin import request_search
from farthing_gateway.admin.figures import Figures
from farthing_gateway.admin.request_search import (
    RequestFilter,
    failure_streams,
    request_stream,
    search,
)
from farthing_gateway.admin.requests_read import PageCursor
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.database import Database, open_database
from farthing_gateway.storage.migrations import migrate

CODES = ((402, "budget_exceeded"), (429, "rate_limit_exceeded"), (502, "upstream_timeout"))


def answered(at: int) -> RequestRecord:
    one = passed(
        f"{at:032x}",
        at=NOW + timedelta(seconds=at // 2),
        question='Say "Ångström"\n5%' if at % 31 == 0 else f"question {at}",
        policy=(None, "letters", "support")[at % 3],
        calls=[
            call(
                "small" if at % 7 else "large",
                text="A rare Word of my role" if at % 43 == 0 else "4",
            )
        ],
    )
    return replace(one, key=("web", "app")[at % 11 == 0], promise=("none", "agreement")[at % 2])


def refused(at: int) -> FailedRequest:
    status, code = CODES[at % 3]
    tries = ({"model": "large", "cost_usd": 0.0, "latency_s": 1.0, "error": "timeout"},)
    return FailedRequest(
        id=f"f{at:031x}",
        at=NOW + timedelta(seconds=at, milliseconds=500),
        key=("web", "app")[at % 13 == 0],
        model=(None, "large", "small")[at % 3],
        status=status,
        code=code,
        said=f"no rare word 5% at {at}" if at % 17 == 0 else "said",
        tries=tries if status == 502 else (),
        cost_nano=at,
        latency_s=0.1,
    )


ANSWERED = [answered(at) for at in range(600)]
REFUSED = [refused(at) for at in range(300)]
EVERY: list[RequestRecord | FailedRequest] = [*ANSWERED, *REFUSED]
FILTERS: list[dict[str, Any]] = [
    {},
    {"status": "answered"},
    {"status": "refused"},
    {"status": "failed"},
    {"status": "429"},
    {"status": "500"},
    {"status": "x"},
    {"key": "app"},
    {"key": "app", "status": "402"},
    {"key": "web", "model": "large", "promise": "none", "policy": "-"},
    {"policy": "support", "key": "app"},
    {"model": "small"},
    {"policy": "-"},
    {"text": "RARE word"},
    {"text": "rare word", "key": "web", "status": "refused"},
    {"text": 'say "ångström"\n5%'.replace("å", "Å")},
    {"text": "no rare word 5% AT 1"},
    {"text": "%"},
    {"text": "role"},
    {"text": "s"},
    {"text": "s", "key": "app"},
    {"since": NOW + timedelta(seconds=100), "until": NOW + timedelta(seconds=200)},
    {"since": NOW + timedelta(seconds=290), "key": "web", "text": "a"},
    {"until": NOW},
]


def fits(one: RequestRecord | FailedRequest, of: RequestFilter) -> bool:
    """Return whether it is one of those that are asked for, by hand."""
    if isinstance(one, RequestRecord):
        texts = [one.messages[0]["content"] if one.messages else "", one.trace.calls[0].text or ""]
        own = (of.policy in {None, one.policy or "-"} and of.promise in {None, one.promise}
               and of.status in {None, "answered"})  # fmt: skip
    else:
        texts = [one.said, one.code]
        words = {str(one.status), "refused" if one.status < 500 else "failed"}
        own = of.policy is of.promise is None and of.status in {None, *words}
    text = (of.text or "").lower()
    return (
        own
        and of.model in {None, one.model}
        and of.key in {None, one.key}
        and (of.since is None or of.since <= one.at)
        and (of.until is None or one.at < of.until)
        and (of.text is None or any(text in each.lower() for each in texts))
    )


async def filled(where: str) -> None:
    traffic = await open_traffic(where, None, keep_prompts=True)
    for one in ANSWERED:
        traffic.put(one)
    for failed in REFUSED:
        traffic.failed(failed)
    await traffic.aclose()


def playing(where: str, play: Callable[[Database], Awaitable[None]]) -> None:
    async def go() -> None:
        await filled(where)
        database = await open_database(where)
        await play(database)
        await database.aclose()

    asyncio.run(go())


@pytest.mark.slow
def test_pages_are_all_that_fits_each_once_the_newest_first(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_search, "LOOKED", 100)
    monkeypatch.setattr(request_search, "READ", 50)
    monkeypatch.setattr(request_search, "PAGE", 20)
    monkeypatch.setattr("farthing_gateway.admin.requests_read.PAGE", 20)

    async def play(database: Database) -> None:
        figures = Figures(database)
        kinds = await figures.kinds()
        statuses = sorted({one.status for one in await figures.failures()})
        assert statuses == [402, 429, 502]
        for asked in FILTERS:
            of, place, found = RequestFilter(**asked), PageCursor(), list[str]()
            for _ in range(100):
                page = await search(database, of, kinds, statuses, place)
                found += [one.id for one in page.lines]
                assert len(page.lines) <= 20
                assert page.looked_to is None or page.older is not None
                if page.older is None:
                    break
                assert page.older < place
                place = PageCursor.read(str(page.older))
            every = [one for one in EVERY if fits(one, of)]
            every.sort(key=lambda one: (one.at, one.id), reverse=True)
            assert found == [one.id for one in every], asked

    playing(where, play)


def test_a_failure_in_the_list_says_what_its_row_says(where: str) -> None:
    async def play(database: Database) -> None:
        of = RequestFilter(status="502", until=NOW + timedelta(seconds=6))
        page = await search(database, of, [], [502], PageCursor())
        newest = page.lines[0]
        assert (newest.id, newest.at) == (REFUSED[5].id, REFUSED[5].at)
        assert (newest.status, newest.code) == (502, "upstream_timeout")
        assert (newest.key, newest.model, newest.cost_nano) == ("web", "small", 5)
        ((role, error),) = [(one.role, one.error) for one in newest.calls]
        assert error is not None
        assert (role, error.type) == ("large", "timeout")

    playing(where, play)


PLANS = [
    ({"key": "app"}, "traffic_by_key", "traffic_failures_by_key"),
    ({"key": "app", "text": "x", "status": "402"}, "traffic_by_key", "traffic_failures_by_key"),
    ({"text": "x"}, "traffic_by_time", "traffic_failures_by_time"),
    ({"status": "402", "text": "x"}, "traffic_by_time", "traffic_failures_by_status"),
    ({"model": "large"}, "traffic_by_time", "traffic_failures_by_time"),
]


@pytest.mark.parametrize(("asked", "index", "of_failures"), PLANS)
def test_what_is_looked_at_is_a_part_of_an_index_in_its_order(
    tmp_path: object, schema: str, asked: dict[str, str], index: str, of_failures: str
) -> None:
    of = RequestFilter(**asked)  # type: ignore[arg-type]
    streams = [(request_stream(of), index), (failure_streams(of, [402])[0], of_failures)]
    floor = PageCursor(1, "b")

    async def in_file(database: Database) -> None:
        for stream, wanted in streams:
            statements = [stream.query(PageCursor(), floor if stream.also else None)]
            statements += [stream.floor_query(PageCursor())] if stream.also else []
            for sql, values in statements:
                rows = await database.read(f"EXPLAIN QUERY PLAN {sql}", *values)
                (plan,) = [str(row[3]) for row in rows]
                assert f"INDEX {wanted} (" in plan, plan
                bounded = "OFFSET" not in sql and stream.also
                assert ("at_us>" in plan) == bool(bounded), plan
                assert "at_us" in plan.partition("(")[2], plan

    async def on_server(database: Database) -> None:
        connection = await asyncpg.connect(schema)
        await connection.execute("SET enable_seqscan = off; SET enable_sort = off")
        for stream, wanted in streams:
            sql, values = stream.query(PageCursor(), floor if stream.also else None)
            plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {sql}", *values))
            assert wanted in plan, plan
            assert "Sort" not in plan, plan
            assert "at_us" in plan.partition("Index Cond:")[2].partition("\n")[0], plan
        await connection.close()

    playing_empty(f"{tmp_path}/farthing.db", in_file)
    playing_empty(schema, on_server)


def playing_empty(where: str, play: Callable[[Database], Awaitable[None]]) -> None:
    async def go() -> None:
        await migrate(where)
        database = await open_database(where)
        await play(database)
        await database.aclose()

    asyncio.run(go())
