"""Traffic becomes traces of a pool, and sums that can be checked by hand."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import msgspec
from made_traffic import NOW, call, passed

from farthing.traces.assemble import assemble
from farthing.traces.base import Call, CallError
from farthing_gateway.recording.export import as_pool
from farthing_gateway.recording.record import COOLING, FALLBACK, STOPPED, PolicyDecision
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.recording.traffic_summary import ModelTraffic, summarise


def test_a_question_that_a_model_has_not_answered_is_marked() -> None:
    both = passed("a", calls=[call("large"), call("small")])
    pool = as_pool([both, passed("b")])
    assert (pool.models, pool.complete, pool.left_out) == (("large", "small"), 1, 0)
    assert pool.traces[0] == both.trace
    assert [trace.truncated for trace in pool.traces] == [False, True]
    assert assemble(pool.traces).complete.tolist() == [True, False]


def test_the_pool_can_be_named() -> None:
    three = passed("a", calls=[call("large"), call("small"), call("new")])
    two = passed("b", calls=[call("large"), call("small")])
    pool = as_pool([three, two, passed("c", calls=[call("new")])], ["small", "large"])
    assert [[made.role for made in trace.calls] for trace in pool.traces] == [
        ["large", "small"],
        ["large", "small"],
    ]
    assert (pool.complete, pool.left_out) == (2, 1)


def test_what_a_policy_chose_to_ask_proves_nothing_and_what_chance_drew_does() -> None:
    both = [call("large"), call("small")]
    hard = replace(passed("hard", calls=both), mode="default", certificate="c")
    audited = replace(hard, id="audited", audited=True)
    decided = PolicyDecision(kind="agreement", graded_by="reference", explored=True)
    explored = replace(hard, id="explored", decided=decided)
    pool = as_pool([hard, audited, explored, passed("before", calls=both)])
    assert [trace.truncated for trace in pool.traces] == [True, False, False, False]


def test_a_call_that_is_not_the_models_own_is_left_out() -> None:
    other = Call(round=1, role="small", error=CallError(STOPPED, "gone"))
    alone = Call(round=1, role="small", error=CallError(COOLING, "left alone"))
    stood_in = msgspec.structs.replace(call("small"), extra={FALLBACK: 1.0})
    for one in (other, alone, stood_in):
        pool = as_pool([passed("a", calls=[call("large"), one])], ["large", "small"])
        assert [made.role for made in pool.traces[0].calls] == ["large"]
        assert pool.complete == 0
        assert as_pool([passed("a", calls=[one])], ["small"]).left_out == 1


def test_what_no_pool_answered_is_left_out() -> None:
    rounds = [Call(round=1, role=role, answer="4") for role in ("base", "guide")]
    second = msgspec.structs.replace(call("large"), round=2)
    pool = as_pool([passed("a", calls=rounds), passed("b", calls=[second]), passed("c")])
    assert [trace.id for trace in pool.traces] == ["c"]
    assert pool.left_out == 2


def test_the_summary_is_a_sum_by_hand(where: str) -> None:
    async def go() -> None:
        traffic = await open_traffic(where, None, keep_prompts=True)
        for i in range(3):
            one = passed(f"a{i}", conversation="a", at=NOW + timedelta(seconds=i))
            traffic.put(replace(one, saved_nano=None if i else 7))
        traffic.put(replace(passed("b", policy="mine"), model="farthing/mine", saved_nano=-2))
        await traffic.attach("a0", [call("small", cost_usd=0.001), call("tiny", cost_usd=0.002)])
        await traffic.aclose()
        found = await summarise(where)
        cent = 10_000_000
        assert found.lines == (
            ModelTraffic(None, "large", 3, 3 * cent, 3_000_000, 7),
            ModelTraffic("mine", "farthing/mine", 1, cent, 0, -2),
        )
        assert (found.conversations, found.oldest) == (2, NOW)
        assert (found.dropped, found.unredacted) == (0, 0)

    asyncio.run(go())


def test_a_database_without_traffic_has_none(where: str) -> None:
    async def go() -> None:
        await (await open_traffic(where, None, keep_prompts=True)).aclose()
        found = await summarise(where)
        assert (found.lines, found.oldest) == ((), None)

    asyncio.run(go())
