from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from farthing import plugins
from farthing.errors import InputError, TraceFormatError
from farthing.money import nano_from_usd
from farthing.tasks import text
from farthing.traces.arrays import SIGNALS, SPLITS, TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Call, Trace
from farthing.traces.fingerprint import fingerprint
from farthing.traces.jsonl import write_traces
from farthing.traces.pool import cascade
from farthing.traces.text_signals import OF_ANSWER, OF_QUESTION, read_answer, read_question
from farthing.traces.trace_kind import is_reply
from farthing_lab.generator.generate import generate, generate_traces
from farthing_lab.generator.presets import preset

AssertSame = Callable[[TraceArrays, TraceArrays], None]
RECORDED = Path(__file__).parents[4] / "../shared/data/traces"


def protocol(name: str = "q", rounds: int = 2, **more: Any) -> Trace:
    calls = [
        Call(round=t, role=role, answer="4", correct=True, cost_usd=t * price)
        for t in range(1, rounds + 1)
        for role, price in (("base", 1e-9), ("guide", 1e-8))
    ]
    return Trace(**{"id": name, "calls": calls} | more)


def pool(name: str, prices: dict[str, float], **more: Any) -> Trace:
    calls = [
        Call(round=1, role=role, model=role.upper(), answer=role, correct=True, cost_usd=price)
        for role, price in prices.items()
    ]
    return Trace(**{"id": name, "calls": calls} | more)


def normalised(trace: Trace, answer: str) -> str:
    known = trace.task in plugins.names("tasks")
    return str((plugins.load("tasks", trace.task) if known else text.TEXT).normalise(answer))


def right(trace: Trace, call: Call) -> bool:
    if not (call.answer or "").strip():
        return False
    if call.correct is not None:
        return call.correct
    return bool(plugins.load("tasks", trace.task).grade(call.answer, trace.gold))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_every_call_lands_in_its_place(
    any_file: st.SearchStrategy[list[Trace]], data: st.DataObject
) -> None:
    traces = data.draw(any_file)
    arrays = assemble(traces)
    assert arrays.ids.tolist() == [t.id for t in traces]
    filled = np.zeros(arrays.answer.shape, dtype=bool)
    for i, trace in enumerate(traces):
        group = arrays.group[i]
        assert (arrays.group_names[group] if group >= 0 else None) == trace.group
        assert (SPLITS[arrays.split[i]] if arrays.split[i] >= 0 else None) == trace.split
        codes: dict[int, str] = {}
        for call in trace.calls:
            if is_reply(call.role):
                continue
            at = (i, call.round - 1, arrays.roles.index(call.role))
            filled[at] = True
            assert arrays.correct[at] == right(trace, call)
            assert arrays.cost_nano[at] == _counted(call, traces)
            assert arrays.largest_cost_nano[at] == nano_from_usd(call.largest_cost_usd or 0)
            read = read_question(trace.question) + read_answer(call.answer)
            numbers = {name: getattr(call, name) for name in SIGNALS} | call.extra
            numbers |= dict(zip(OF_QUESTION + OF_ANSWER, read, strict=True))
            for name, values in arrays.signals.items():
                expected = numbers.get(name)
                assert np.isnan(values[at]) if expected is None else _near(values[at], expected)
            if (call.answer or "").strip():
                said = normalised(trace, str(call.answer))
                assert codes.setdefault(int(arrays.answer[at]), said) == said
            else:
                assert arrays.answer[at] == -1
        assert len(set(codes.values())) == len(codes)
        assert sorted(codes) == list(range(len(codes)))
    money = (arrays.cost_nano, arrays.largest_cost_nano)
    for nothing in (arrays.answer + 1, arrays.correct, *money):
        assert not nothing[~filled].any()
    for name, values in arrays.signals.items():
        assert name != "gold"
        assert np.isnan(values[~filled]).all()
        assert not np.isnan(values).all()


def _counted(call: Call, traces: list[Trace]) -> int:
    known = _paid(call)
    if known is None and call.error is None:
        others = [_paid(c) for trace in traces for c in trace.calls if c.role == call.role]
        recorded = [nano for nano in others if nano is not None]
        known = round(sum(recorded) / len(recorded)) if recorded else None
    return known or 0


def _paid(call: Call) -> int | None:
    usd = call.largest_cost_usd if call.cost_usd is None else call.cost_usd
    return None if usd is None else nano_from_usd(usd)


def _near(ours: Any, recorded: float) -> bool:
    largest = float(np.finfo(np.float32).max)
    return bool(ours == np.float32(np.clip(float(recorded), -largest, largest)))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_order_of_calls_in_the_file_means_nothing(
    any_file: st.SearchStrategy[list[Trace]], assert_same: AssertSame, data: st.DataObject
) -> None:
    traces = data.draw(any_file)
    shuffled = [
        Trace(
            **{f: getattr(t, f) for f in Trace.__struct_fields__ if f != "calls"},
            calls=data.draw(st.permutations(t.calls)),
        )
        for t in traces
    ]
    assert_same(assemble(traces), assemble(shuffled))


def test_records_of_the_generator_become_its_arrays(assert_same: AssertSame) -> None:
    config = preset("hotpotqa-llama2-7b").config
    traces = generate_traces(config, 40, np.random.default_rng(3))
    found = assemble(traces)
    assert found.question is not None
    assert not any(found.question)  # it invents no texts
    theirs = generate(config, 40, np.random.default_rng(3))
    assert_same(replace(found, question=None), theirs)


def test_what_is_graded_is_not_graded_again() -> None:
    calls = [
        Call(round=1, role="a", answer="4.0"),
        Call(round=1, role="b", answer="4", correct=False),
        Call(round=1, role="c", answer=" ", correct=True),
        Call(round=1, role="d", correct=True),
    ]
    arrays = assemble([Trace(id="q", task="gsm8k", gold=["4"], calls=calls)])
    assert arrays.correct[0, 0].tolist() == [True, False, False, False]
    assert arrays.answer[0, 0].tolist() == [0, 0, -1, -1]


def test_an_unknown_task_needs_grades() -> None:
    with pytest.raises(TraceFormatError, match="unknown task 'gsm9k'; did you mean 'gsm8k'"):
        assemble(
            [Trace(id="q", task="gsm9k", gold=["4"], calls=[Call(round=1, role="m", answer="4")])]
        )


def test_no_grade_becomes_a_signal_and_other_numbers_do() -> None:
    call = Call(
        round=1, role="m", answer="4", correct=True, f1=0.5, score=2, extra={"gold": 1, "depth": 3}
    )
    assert list(assemble([Trace(id="q", calls=[call])]).signals) == ["depth", "answer_number"]


def test_a_truncated_trace_knows_its_rounds() -> None:
    cut = protocol("cut", 3, truncated=True)
    half = Trace(id="half", calls=protocol("half", 2).calls[:-1], truncated=True)
    arrays = assemble([protocol("whole", 3), protocol("one", 1, truncated=True), half, cut])
    assert arrays.recorded.tolist() == [3, 1, 1, 3]
    assert arrays.complete.tolist() == [True, False, False, True]


def test_a_missing_model_cannot_be_asked() -> None:
    arrays = assemble([pool("1", {"a": 1e-9, "b": 2e-9}), pool("2", {"b": 2e-9})])
    assert arrays.answer[1].tolist() == [[-1, 0]]
    assert arrays.cost_nano[1].tolist() == [[0, 2]]
    assert arrays.complete.tolist() == [True, False]
    assert arrays.made[:, 0].tolist() == [[True, True], [False, True]]


def test_models_of_a_pool_stand_in_the_order_of_their_mean_cost() -> None:
    # Over the calls that were made: a costs 5 once, b costs 4 on average, c is free.
    traces = [pool("1", {"a": 5e-9, "b": 2e-9, "c": 0.0}), pool("2", {"b": 6e-9, "c": 0.0})]
    arrays = assemble(traces)
    assert arrays.roles == ("c", "b", "a")
    assert arrays.models == ("C", "B", "A")
    assert arrays.cost_nano[:, 0].tolist() == [[0, 2, 5], [0, 6, 0]]
    assert arrays.independent.all()


def test_a_cascade_asks_one_model_after_another() -> None:
    traces = [
        pool("1", {"a": 5e-9, "b": 2e-9}),
        pool("2", {"a": 5e-9}),
        pool("3", {"b": 2e-9}, truncated=True),
        pool("4", {"a": 2e-9}, truncated=True),
    ]
    traces[0].calls[0] = structs.replace(traces[0].calls[0], largest_cost_usd=9e-9)
    side_by_side = assemble(traces)
    assert side_by_side.largest_cost_nano[0].tolist() == [[0, 9]]  # the cheapest first
    arrays = cascade(side_by_side)
    assert (arrays.roles, arrays.models) == (("model",), ("B -> A",))
    assert arrays.answer.shape == (4, 2, 1)
    for name in ("answer", "correct", "cost_nano", "largest_cost_nano"):
        ours, theirs = getattr(arrays, name)[:, :, 0], getattr(side_by_side, name)[:, 0, :]
        np.testing.assert_array_equal(ours, theirs)
    # A question is known as far as models were asked in the cascade's order, truncated or not.
    assert arrays.recorded.tolist() == [2, 0, 1, 0]


def test_replies_follow_the_actions_that_they_name() -> None:
    calls = [
        *protocol(rounds=2).calls,
        Call(round=1, role="policy-x", answer=" 3 ", cost_usd=7e-9),
        Call(round=2, role="policy-x", answer="four"),
        Call(round=1, role="exit-guide", answer="Continue"),
        Call(round=2, role="exit-guide", answer="exit", cost_usd=1e-9),
    ]
    replies = assemble([protocol("1"), Trace(id="2", calls=calls)]).replies
    assert replies["policy-x"].action.tolist() == [[-1, -1], [2, -1]]
    assert replies["policy-x"].cost_nano.tolist() == [[0, 0], [7, 0]]
    assert replies["exit-guide"].action.tolist() == [[-1, -1], [2, 1]]
    assert replies["exit-guide"].cost_nano.tolist() == [[0, 0], [0, 1]]


def test_replies_over_a_pool_keep_their_meaning_when_models_are_reordered() -> None:
    said = [Call(round=1, role=f"policy-{n}", answer=n) for n in ("1", "2", "3", "4", "9")]
    trace = pool("q", {"a": 2e-9, "b": 3e-9, "c": 1e-9})
    arrays = assemble([Trace(id="q", calls=[*trace.calls, *said])])
    assert arrays.roles == ("c", "a", "b")
    assert {r: int(v.action[0, 0]) for r, v in arrays.replies.items()} == {
        "policy-1": 1,  # the file's first role in the alphabet, a, is now the second
        "policy-2": 2,
        "policy-3": 0,
        "policy-4": 3,  # ask on
        "policy-9": -1,
    }


def test_records_are_checked_like_a_file() -> None:
    with pytest.raises(InputError, match="there are no traces"):
        assemble([])
    with pytest.raises(TraceFormatError, match="traces, line 2, id: 'q' is that of line 1"):
        assemble([protocol(), protocol()])


@pytest.mark.slow
@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_file_loads_as_its_records_assemble(
    any_file: st.SearchStrategy[list[Trace]],
    assert_same: AssertSame,
    tmp_path: Path,
    data: st.DataObject,
) -> None:
    traces = data.draw(any_file)
    for name in ("runs.jsonl", "runs.jsonl.gz"):
        write_traces(tmp_path / name, traces)
        assert_same(load(tmp_path / name), assemble(traces))


def test_a_name_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"runs\.csv: cannot tell its form"):
        load(tmp_path / "runs.csv")


def test_the_fingerprint_sees_everything() -> None:
    config = preset("hotpotqa-llama2-7b").config
    arrays = generate(config, 5, np.random.default_rng(0))
    same = generate(config, 5, np.random.default_rng(0))
    same = replace(same, signals={k: same.signals[k] for k in sorted(same.signals)[::-1]})
    assert fingerprint(arrays) == fingerprint(same)
    changed = [
        replace(arrays, ids=np.array(["x", *arrays.ids[1:].tolist()])),
        replace(arrays, roles=("base", "judge")),
        replace(arrays, models=("a", "b")),
        replace(arrays, group_names=("law",)),
        replace(arrays, answer=arrays.answer + np.int16(1)),
        replace(arrays, correct=~arrays.correct),
        replace(arrays, cost_nano=arrays.cost_nano + 1),
        replace(arrays, signals={k: v for k, v in arrays.signals.items() if k != "verdict"}),
        replace(arrays, signals={**arrays.signals, "verdict": arrays.signals["uncertainty"]}),
        replace(arrays, group=arrays.group + np.int32(1)),
        replace(arrays, split=arrays.split + np.int8(1)),
        replace(arrays, recorded=arrays.recorded - np.int16(1)),
        replace(arrays, independent=~arrays.independent),
        arrays.take(np.arange(4)),
        arrays.take(np.arange(5)[::-1]),
    ]
    assert len({fingerprint(a) for a in [arrays, *changed]}) == len(changed) + 1


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded traces are not beside the clone")
class TestRecordedFiles:
    def test_reasoning(self) -> None:
        arrays = load(RECORDED / "reasoning-llama2-13b-gpt4.jsonl.gz")
        assert arrays.answer.shape == (1169, 4, 2)
        groups = {arrays.group_names[g]: int((arrays.group == g).sum()) for g in range(3)}
        assert sorted(groups.values()) == [369, 400, 400]
        assert arrays.independent.all()
        first = arrays.correct[:, 0]
        assert first.mean(axis=0).round(2).tolist() == [0.36, 0.91]
        covered = first.any(axis=1) | ~arrays.solvable
        assert covered.mean() == pytest.approx(0.964, abs=5e-4)
        assert arrays.round_cost_nano[:, 0].mean() / 1e9 == pytest.approx(0.0358, abs=5e-5)

    def test_mmlu(self) -> None:
        arrays = load(RECORDED / "mmlu-nine-models.jsonl.gz")
        assert arrays.answer.shape == (1816, 1, 9)
        assert len(arrays.group_names) == 57
        assert [int((arrays.split == s).sum()) for s in range(3)] == [285, 0, 1531]
        place = arrays.roles.index("gpt-4o")
        # The recorded dollars: GPT-4o alone costs 0.471 per 1,000 questions.
        assert arrays.cost_nano[:, 0, place].mean() / 1e6 == pytest.approx(0.471, abs=5e-4)
        assert cascade(arrays).answer.shape == (1816, 9, 1)
        recorded = {"confidence", "input_tokens", "output_tokens", "latency_s"}
        assert set(arrays.signals) == recorded | set(OF_QUESTION) | {"answer_number"}

    def test_hotpotqa(self) -> None:
        arrays = load(RECORDED / "hotpotqa-seven-agents.jsonl.gz")
        assert arrays.answer.shape == (500, 1, 7)
        assert (~arrays.made.all(axis=(1, 2))).sum() == 36
        assert "f1" not in arrays.signals
        assert {"uncertainty", "tool_calls"} <= set(arrays.signals)
