"""Thoughts: their shape, their cuts as ways to answer and in turn, and what is refused of them."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from farthing.api.frames import record_of
from farthing.errors import InputError, TraceFormatError
from farthing.money import usd_from_nano
from farthing.process.action_space import recorded_space
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Call, Trace
from farthing.traces.fingerprint import fingerprint
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.grades.overlay import graded
from farthing.traces.jsonl import decode, encode, read_traces, write_traces
from farthing.traces.pool import cascade, is_pool
from farthing.traces.store import Store
from farthing.traces.trace_kind import shape_of

NANO = (500, 300, 200, 100)


def thought(
    said: Sequence[str | None], name: str = "q", *, ended: bool = False, truncated: bool = False
) -> Trace:
    calls = [
        Call(
            round=t,
            role="base",
            model="m",
            answer=answer,
            cost_usd=usd_from_nano(NANO[t - 1]),
            largest_cost_usd=usd_from_nano(2 * NANO[t - 1]),
            output_tokens=10 * t,
            latency_s=float(t),
            extra={"entropy": t / 8},
            ended=True if ended and t == len(said) else None,
        )
        for t, answer in enumerate(said, start=1)
    ]
    return Trace(id=name, gold=["4"], calls=calls[::-1], truncated=truncated)


def test_cuts_stand_side_by_side_at_the_price_of_the_thought_so_far() -> None:
    arrays = assemble([thought(["4", "5", None, "4"])])
    assert arrays.cuts
    assert is_pool(arrays)
    assert arrays.roles == ("cut-1", "cut-2", "cut-3", "cut-4")
    assert arrays.cost_nano[0, 0].tolist() == [500, 800, 1_000, 1_100]
    assert arrays.largest_cost_nano[0, 0].tolist() == [1_000, 1_600, 2_000, 2_200]
    assert arrays.signals["output_tokens"][0, 0].tolist() == [10, 30, 60, 100]
    assert arrays.signals["latency_s"][0, 0].tolist() == [1, 3, 6, 10]
    assert arrays.signals["entropy"][0, 0].tolist() == [0.125, 0.25, 0.375, 0.5]
    assert arrays.answer[0, 0].tolist() == [0, 1, -1, 0]
    assert arrays.correct[0, 0].tolist() == [True, False, False, True]
    assert arrays.round_cost_nano.tolist() == [[1_100]]


def test_in_turn_a_cut_has_what_the_file_says_of_it() -> None:
    turns = cascade(assemble([thought(["4", "5", None, "4"])]))
    assert (turns.roles, turns.models, turns.horizon) == (("thought",), ("m",), 4)
    assert turns.cost_nano[0, :, 0].tolist() == list(NANO)
    assert turns.largest_cost_nano[0, :, 0].tolist() == [2 * nano for nano in NANO]
    assert turns.signals["output_tokens"][0, :, 0].tolist() == [10, 20, 30, 40]
    assert turns.signals["latency_s"][0, :, 0].tolist() == [1, 2, 3, 4]
    assert turns.signals["entropy"][0, :, 0].tolist() == [0.125, 0.25, 0.375, 0.5]
    assert turns.recorded.tolist() == [4]
    assert not turns.independent.any()
    with pytest.raises(InputError, match="none can be skipped"):
        recorded_space("calls", turns)


def looked_at(said: Sequence[str], name: str = "q", *, ended: bool = False) -> Trace:
    """Return a thought whose cuts say what was paid for answers, and for reading again."""
    trace = thought(said, name, ended=ended)
    calls = [
        structs.replace(
            call,
            extra={
                "answering_usd": usd_from_nano(40),
                "read_again_usd": usd_from_nano(10 * (call.round - 1)),
            },
        )
        for call in trace.calls
    ]
    return structs.replace(trace, calls=calls)


def test_straight_to_a_cut_nothing_is_paid_for_looking_at_those_before() -> None:
    traces = [looked_at(["4", "5", "6", "4"]), looked_at(["4", "5"], "short", ended=True)]
    arrays = assemble(traces)
    looked = [[0, 40 + 10, 80 + 30, 120 + 60], [0, 50, 50, 50]]
    assert arrays.stopping_nano[:, 0].tolist() == looked
    paid = [[500, 800, 1_000, 1_100], [500, 800, 800, 800]]
    assert arrays.cost_nano[:, 0].tolist() == (np.array(paid) - looked).tolist()
    assert cascade(arrays).cost_nano[:, :, 0].tolist() == [[500, 300, 200, 100], [500, 300, 0, 0]]
    assert fingerprint(arrays) != fingerprint(assemble([thought(["4", "5", "6", "4"])]))


@pytest.mark.parametrize("wrong", [-1e-9, 1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["answering_usd", "read_again_usd"])
def test_what_looking_cost_is_a_part_of_the_price(name: str, wrong: float) -> None:
    trace = thought(["4", "5"])
    trace.calls[0].extra[name] = wrong
    with pytest.raises(TraceFormatError, match="must be parts of `cost_usd`"):
        assemble([trace])


def test_more_than_nine_cuts_keep_their_order() -> None:
    calls = [Call(round=t, role="r", answer=str(t), cost_usd=1e-6) for t in range(1, 12)]
    arrays = assemble([Trace(id="q", calls=calls)])
    assert arrays.roles == tuple(f"cut-{t}" for t in range(1, 12))
    assert arrays.answer[0, 0].tolist() == list(range(11))


def test_after_its_own_end_a_thought_says_the_same_for_nothing() -> None:
    arrays = assemble([thought(["5", "4"], "short", ended=True), thought(["4", "5", "6", "4"])])
    turns = cascade(arrays)
    assert arrays.complete.all()
    assert turns.recorded.tolist() == [4, 4]
    assert turns.cost_nano[0, :, 0].tolist() == [500, 300, 0, 0]
    assert turns.signals["latency_s"][0, :, 0].tolist() == [1, 2, 0, 0]
    assert turns.answer[0, :, 0].tolist() == [0, 1, 1, 1]
    assert turns.correct[0, :, 0].tolist() == [False, True, True, True]
    assert graded(arrays, "same as cut-4").correct[0, 0].tolist() == [False, True, True, True]


def test_of_a_thought_cut_short_the_end_is_unknown() -> None:
    arrays = assemble([thought(["5", "4"], "short", truncated=True), thought(["4", "5", "6", "4"])])
    assert arrays.complete.tolist() == [False, True]
    assert arrays.made[0, 0].tolist() == [True, True, False, False]
    assert not arrays.correct[0, 0, 2:].any()
    assert cascade(arrays).recorded.tolist() == [2, 4]
    whole = assemble([thought(["5", "4", "4", "4"], "long", truncated=True), thought(["4"] * 4)])
    assert whole.complete.tolist() == [False, True]
    assert cascade(whole).recorded.tolist() == [3, 4]
    assert cascade(whole).complete.tolist() == [False, True], "nor is it known in turn"


def test_the_bound_of_a_thought_is_unknown_from_the_first_cut_without_one() -> None:
    whole = thought(["4", "5", "6", "4"])
    calls = [structs.replace(c, largest_cost_usd=None) if c.round == 2 else c for c in whole.calls]
    arrays = assemble([structs.replace(whole, calls=calls)])
    assert arrays.largest_cost_nano[0, 0].tolist() == [1_000, 0, 0, 0]
    assert cascade(arrays).largest_cost_nano[0, :, 0].tolist() == [1_000, 0, 0, 0]


def test_ended_alone_makes_one_cut_a_thought() -> None:
    call = Call(round=1, role="m", answer="4")
    assert shape_of(Trace(id="q", calls=[call])) == "pool"
    for said in (True, False):
        one = structs.replace(call, ended=said)
        assert shape_of(Trace(id="q", calls=[one])) == "thinking"


def with_call(trace: Trace, number: int, **changes: object) -> Trace:
    calls = [
        structs.replace(call, **changes) if call.round == number else call for call in trace.calls
    ]
    return structs.replace(trace, calls=calls)


@pytest.mark.parametrize(
    ("traces", "problem"),
    [
        ([structs.replace(thought(["4"] * 3), calls=thought(["4"] * 3).calls[:2])], "cut 1 is mis"),
        ([with_call(thought(["4"] * 3), 2, round=4)], "cut 2 is missing"),
        ([with_call(thought(["4"] * 3), 1, ended=True)], "later cuts follow"),
        ([thought(["4"] * 2, ended=True, truncated=True)], "the trace is truncated"),
        ([thought(["4"] * 2, "a"), thought(["4"] * 3)], "say `ended` of the last cut"),
        (
            [structs.replace(thought(["4"] * 2, ended=True), independent=True)],
            "said of the cuts of one thought",
        ),
    ],
)
def test_what_is_no_thought_is_refused(traces: list[Trace], problem: str) -> None:
    with pytest.raises(TraceFormatError, match=problem):
        assemble(traces)


def same(one: TraceArrays, other: TraceArrays) -> None:
    for field in fields(TraceArrays):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "signals":
            assert ours.keys() == theirs.keys()
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name])
        elif field.name != "question":
            np.testing.assert_array_equal(ours, theirs)


def test_files_and_stores_keep_thoughts(tmp_path: Path) -> None:
    traces = [thought(["5", "4"], "short", ended=True), thought(["4", "5", None, "4"])]
    traces.append(thought(["4"], "cut", truncated=True))
    traces[-1] = with_call(traces[-1], 1, ended=False)
    arrays = assemble(traces)
    assert [decode(encode(trace)) for trace in traces] == traces
    write_traces(tmp_path / "a.jsonl", traces)
    assert list(read_traces(tmp_path / "a.jsonl")) == traces
    same(load(tmp_path / "a.jsonl"), arrays)
    with Store.open(tmp_path / "a.db") as store:
        store.add(traces, "thoughts")
        assert list(store.traces()) == traces


def test_arrays_say_again_what_was_cut_short_and_where_thoughts_ended() -> None:
    traces = [
        thought(["5", "4"], "short", ended=True),
        thought(["4", "5", "6", "4"], "whole"),
        thought(["4", "5", "6", "4"], "cut", truncated=True),
        structs.replace(thought(["4", "5"], "early"), truncated=True),
    ]
    arrays = assemble(traces)
    again = [record_of(arrays, i) for i in range(len(traces))]
    assert [len(trace.calls) for trace in again] == [2, 4, 4, 2]
    assert [trace.truncated for trace in again] == [False, False, True, True]
    assert [trace.calls[-1].ended for trace in again] == [True, True, False, False]
    assert [sum(c.cost_usd or 0.0 for c in trace.calls) for trace in again] == pytest.approx(
        [sum(c.cost_usd or 0.0 for c in trace.calls) for trace in traces]
    )
    assert assemble(again).complete.tolist() == arrays.complete.tolist()


def test_records_and_texts_find_their_cuts() -> None:
    traces = [thought(["4", "5", None, "4"])]
    arrays = assemble(traces)
    assert AnswerTexts.of(traces, arrays).texts == ({0: "4", 1: "5"},)
    calls = record_of(arrays, 0).calls
    assert [(call.round, call.role, call.answer) for call in calls] == [
        (1, "thought", "0"), (2, "thought", "1"), (3, "thought", None), (4, "thought", "0"),
    ]  # fmt: skip
    assert [call.cost_usd for call in calls] == [usd_from_nano(nano) for nano in NANO]
    assert [call.ended for call in calls] == [None, None, None, True]
