"""What traffic comes to by the hour is what a sum over all of its rows comes to."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from made_traffic import NOW, call, passed

from farthing.traces.base import Call, CallError
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.recording.traffic_sums import HOUR_US, RATIO, bucket_of, quantile
from farthing_gateway.storage.database import Database, microseconds, open_database

Sums = Counter[tuple[Any, ...]]


def made(number: int, generator: np.random.Generator) -> RequestRecord:
    """Return some request of three days."""
    calls = [
        msgspec.structs.replace(
            call(role),
            cost_usd=None if generator.random() < 0.1 else float(generator.random()),
            latency_s=None if generator.random() < 0.1 else float(generator.lognormal()),
            error=CallError("timeout", "slow") if generator.random() < 0.2 else None,
        )
        for role in ("small", "large")[: int(generator.integers(1, 3))]
    ]
    one = passed(
        f"q{number}",
        at=NOW - timedelta(hours=float(generator.random() * 72)),
        policy=(None, "a", "b")[int(generator.integers(3))],
        calls=calls,
    )
    saved = None if generator.random() < 0.3 else int(generator.integers(-(10**9), 10**9))
    promise = ("none", "agreement")[int(generator.integers(2))]
    latency = float(generator.lognormal())
    return replace(one, saved_nano=saved, promise=promise, latency_s=latency)


def by_hand(
    requests: list[RequestRecord], later: list[tuple[RequestRecord, list[Call]]]
) -> dict[str, Sums]:
    """Add everything up, request by request."""
    hours, calls, latency = Sums(), Sums(), Sums()
    for one in requests:
        hour, policy = microseconds(one.at) // HOUR_US, one.policy or ""
        place, cost = (hour, policy, one.model, one.promise), cost_of(one.trace.calls)
        known = one.saved_nano is not None
        sums = (1, cost, 0, one.saved_nano or 0, int(known), cost if known else 0)
        hours.update({(*place, at): value for at, value in enumerate(sums)})
        latency[hour, policy, "reply", one.model, bucket_of(one.latency_s)] += 1
        for each in one.trace.calls:
            of_call = (1, int(each.error is not None), cost_of([each]))
            calls.update({(hour, policy, each.role, 0, at): v for at, v in enumerate(of_call)})
            if each.latency_s is not None:
                latency[hour, policy, "call", each.role, bucket_of(each.latency_s)] += 1
    for one, some in later:
        hour, policy = microseconds(one.at) // HOUR_US, one.policy or ""
        hours[hour, policy, one.model, one.promise, 2] += cost_of(some)
        for each in some:
            of_call = (1, int(each.error is not None), cost_of([each]))
            calls.update({(hour, policy, each.role, 1, at): v for at, v in enumerate(of_call)})
    return {"hours": hours, "calls": calls, "latency": latency}


async def kept(database: Database) -> dict[str, Sums]:
    """Return the sums of a database."""
    hours = await database.read("SELECT * FROM traffic_hours")
    calls = await database.read("SELECT * FROM traffic_hours_calls")
    latency = await database.read("SELECT * FROM traffic_hours_latency")
    return {
        "hours": Sums({(*row[:4], at): v for row in hours for at, v in enumerate(row[4:])}),
        "calls": Sums({(*row[:4], at): v for row in calls for at, v in enumerate(row[4:])}),
        "latency": Sums({row[:5]: row[5] for row in latency}),
    }


def test_sums_are_those_of_all_requests_each_once(where: str) -> None:
    generator = np.random.default_rng(0)
    requests = [made(number, generator) for number in range(700)]
    tiny = call("tiny", cost_usd=0.25)
    later = [(one, [tiny, call("small")]) for one in requests[::7]]

    async def put(traffic: Traffic) -> None:
        for one in requests:
            traffic.put(one)
            traffic.put(replace(one, model="twice", saved_nano=1))
        await asyncio.gather(*(traffic.attach(one.id, calls) for one, calls in later))
        for one in requests[:50]:
            traffic.put(replace(one, promise="again"))
        await traffic.attach("gone", [tiny])

    async def go() -> None:
        traffic = await open_traffic(where, None, keep_prompts=True)
        await put(traffic)
        await traffic.flush()
        database = await open_database(where)
        assert await kept(database) == by_hand(requests, later)
        assert await traffic.delete_before(NOW) == 700
        assert await kept(database) == by_hand(requests, later)
        await database.aclose()
        await traffic.aclose()

    asyncio.run(go())


@pytest.mark.slow
def test_writers_that_add_to_the_same_sums_lose_nothing(where: str) -> None:
    generator = np.random.default_rng(1)
    requests = [made(number, generator) for number in range(600)]

    async def write(some: list[RequestRecord]) -> int:
        traffic = await open_traffic(where, None, keep_prompts=True)
        for one in some:
            traffic.put(one)
            await asyncio.sleep(0)
        await asyncio.gather(*(traffic.attach(one.id, [call("tiny")]) for one in some))
        dropped = traffic.dropped
        await traffic.aclose()
        return dropped

    async def go() -> None:
        # Each request is put by two writers; who comes first inserts it.
        halves = [requests[:400], list(reversed(requests[200:])), requests[::3]]
        assert await asyncio.gather(*map(write, halves)) == [0, 0, 0]
        added = [(one, [call("tiny")]) for half in halves for one in half]
        database = await open_database(where)
        found, wanted = await kept(database), by_hand(requests, added)
        assert (found["hours"], found["latency"]) == (wanted["hours"], wanted["latency"])
        assert found["calls"] == wanted["calls"]
        await database.aclose()

    asyncio.run(go())


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_quantile_of_buckets_is_near_that_of_the_latencies(share: float) -> None:
    seconds = np.random.default_rng(2).lognormal(0, 1.5, 5_000)
    found = quantile(Counter(map(bucket_of, seconds.tolist())), share)
    exact = float(np.quantile(seconds, share, method="inverted_cdf"))
    assert found is not None
    assert 1 / RATIO**0.5 <= found / exact <= RATIO**0.5
    assert quantile({}, share) is None


def test_failures_by_the_hour_are_their_rows_each_once(where: str) -> None:
    hour = NOW.replace(minute=0, second=0)
    one = FailedRequest("a", hour, None, "large", 402, "budget_exceeded", "said", (), 5, 0.1)
    others = [
        replace(one, id="b", at=hour + timedelta(minutes=59)),
        replace(one, id="c", status=502, code="upstream_timeout", cost_nano=70),
        replace(one, id="d", model=None, at=hour + timedelta(hours=1)),
    ]

    async def play() -> list[Any]:
        for batch in ([one, one, *others], [one]):
            traffic = await open_traffic(where, None, keep_prompts=True)
            for failed in batch:
                traffic.failed(failed)
            await traffic.aclose()
        traffic = await open_traffic(where, None, keep_prompts=True)
        assert await traffic.delete_before(NOW + timedelta(days=1)) == 0
        await traffic.aclose()
        database = await open_database(where)
        assert await database.read("SELECT * FROM traffic_failures") == []
        found = await database.read("SELECT * FROM traffic_hours_failures ORDER BY hour, status")
        await database.aclose()
        return [tuple(row) for row in found]

    at = microseconds(hour) // HOUR_US
    assert asyncio.run(play()) == [
        (at, "large", 402, "budget_exceeded", 2, 10),
        (at, "large", 502, "upstream_timeout", 1, 70),
        (at + 1, "", 402, "budget_exceeded", 1, 5),
    ]
