"""What a log marks as failed is no evidence, and what its graders leave open is no grade."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.importers.chat import failure_of, read_reply
from farthing.traces.importers.read import Imported, read_foreign

Line = dict[str, Any]
ASKED = [{"role": "user", "content": "2 + 2?"}]


def read(folder: Path, *documents: Any, name: str = "log") -> Imported:
    paths = []
    for i, document in enumerate(documents):
        rows = document if isinstance(document, str) else json.dumps(document)
        paths.append(folder / f"{name}{i}.json")
        paths[-1].write_text(rows)
    return read_foreign(paths)


def one(folder: Path, document: Any) -> Trace:
    (trace,) = read(folder, document).traces
    return trace


def completion(**of_choice: Any) -> Line:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "4"}} | of_choice
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage}


def response(**fields: Any) -> Line:
    said = {"type": "message", "content": [{"type": "output_text", "text": "4"}]}
    return {"object": "response", "model": "gpt-4o", "output": [said], **fields}


ERROR = {"code": "server_error", "message": "the upstream died"}
FAILED: dict[str, Line] = {
    "a choice with an error": completion(error=ERROR),
    "an error beside its choices": completion() | {"error": ERROR},
    "an end by an error": completion(finish_reason="error"),
    "a filter": completion(finish_reason="content_filter"),
    "a torn stream": completion(finish_reason=None),
    "a failed response": response(status="failed", error=ERROR),
    "an incomplete one": response(status="incomplete", incomplete_details={"reason": "x"}),
    "one in progress": response(status="in_progress"),
    "a refused message": {"type": "message", "content": "4", "stop_reason": "refusal"},
    "an error alone": {"error": ERROR},
}


def stored(reply: Line) -> Any:
    return [{"object": "chat.completion", "model": "gpt-4o"} | reply | {"messages": ASKED}]


def batched(reply: Line) -> Any:
    return [{"custom_id": "q", "response": {"status_code": 200, "body": {"model": "m"} | reply}}]


def spent(reply: Line) -> Any:
    row = {"request_id": "r", "spend": 0.001, "model": "gpt-4o", "call_type": "acompletion"}
    return [row | {"messages": ASKED, "response": reply}]


def payload(reply: Line) -> Any:
    return [spent(reply)[0] | {"response_cost": 0.001}]


def observed(reply: Line) -> Any:
    about = {"type": "GENERATION", "startTime": "2026-11-01T10:00:00Z", "model": "gpt-4o"}
    return [about | {"traceId": "t", "input": ASKED, "output": reply}]


def tabled(reply: Line) -> Any:
    return [{"question": "2 + 2?", "model": "gpt-4o", "response": reply, "right": True}]


def logged(reply: Line) -> Any:
    row = {"model": "gpt-4o", "prompt": "2 + 2?", "response": "4", "response_json": reply}
    return [row | {"conversation_id": "c", "duration_ms": 9, "datetime_utc": "2026-11-01"}]


FORMS = [stored, batched, spent, payload, observed, tabled, logged]


@pytest.mark.parametrize("form", FORMS)
@given(kind=st.sampled_from(sorted(FAILED)))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
def test_a_reply_that_is_marked_as_failed_is_never_evidence(
    tmp_path: Path, form: Any, kind: str
) -> None:
    (call,) = one(tmp_path, form(FAILED[kind])).calls
    assert call.error is not None, kind
    assert (call.answer, call.text, call.correct, call.score) == (None,) * 4


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_that_ended_well_is_an_answer(tmp_path: Path, form: Any) -> None:
    for reply in (completion(), response(status="completed")):
        (call,) = one(tmp_path, form(reply)).calls
        assert (call.error, call.answer) == (None, "4")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("error", "timed out"),
        ("error", ERROR),
        ("finish_reason", "content_filter"),
        ("status", "failed"),
        ("status", 503),
    ],
)
def test_a_column_may_say_that_a_call_failed(tmp_path: Path, column: str, value: Any) -> None:
    row = {"question": "2 + 2?", "model": "m", "answer": "4", "right": True}
    (call,) = one(tmp_path, [row | {column: value}]).calls
    assert call.error is not None
    assert (call.answer, call.correct) == (None, None)
    for fine in ("", None, "ok", "stop", 200) if column != "error" else ("", None, False, "None"):
        (call,) = one(tmp_path, [row | {column: fine}]).calls
        assert (call.error, call.answer) == (None, "4")


def test_an_answer_in_json_that_speaks_of_an_error_is_one() -> None:
    for answer in ({"error": "no such city"}, {"error": {"in": "line 3"}, "status": "failed"}):
        assert failure_of(answer) is failure_of(json.dumps(answer)) is None
        assert json.loads(read_reply(answer) or "") == answer


def test_what_a_failed_call_says_that_it_used_is_paid(tmp_path: Path) -> None:
    cut = response(status="incomplete", usage={"input_tokens": 1_000, "output_tokens": 100})
    (call,) = one(tmp_path, stored(cut)).calls
    assert call.cost_usd == pytest.approx(0.0035)
    (call,) = one(tmp_path, stored(response(status="failed", usage=None))).calls
    assert call.cost_usd is None


def test_choices_are_not_one_text() -> None:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": t}}
        for i, t in ((0, "4"), (1, "5"))
    ]
    said = [one["message"] for one in choices]
    assert read_reply(choices) == read_reply(said) == read_reply({"choices": choices}) == "4"
    talk = [said[0], {"role": "tool", "content": "x"}, said[1]]
    assert read_reply(talk) == "5"
    assert read_reply([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"


# Graders.


def evaluated(model: str, samples: list[Line], **of_eval: Any) -> Line:
    about = {"task": "sums", "model": model, "created": "2026-11-01T10:00:00+00:00", **of_eval}
    return {"version": 2, "status": "success", "eval": about, "samples": samples}


def sample(answer: str, value: Any = "C", model: str = "openai/gpt-4o", **more: Any) -> Line:
    used = {"input_tokens": 1_000, "output_tokens": 40, "total_tokens": 1_040}
    choice = {"message": {"role": "assistant", "content": answer}, "stop_reason": "stop"}
    return {
        "id": "q",
        "epoch": 1,
        "input": "2 + 2?",
        "target": "4",
        "output": {"model": model, "choices": [choice], "usage": used, "time": 2.0},
        "scores": {"judge": {"value": value}},
        "model_usage": {model: used},
        "working_time": 3.0,
        **more,
    }


@pytest.mark.parametrize("value", [float("nan"), None, {"a": 1}, ["C"], "NaN", float("inf")])
def test_a_grader_that_says_nothing_grades_nothing(tmp_path: Path, value: Any) -> None:
    """The text equals the target, or not: neither is what the grader would have said."""
    small, large = "openai/gpt-4o-mini", "openai/gpt-4o"
    logs = [
        evaluated(small, [sample("It is 4.", value, small)]),
        evaluated(large, [sample("It is 4.", "C", large)]),
    ]
    (trace,) = read(tmp_path, *logs).traces
    assert (trace.gold, [call.correct for call in trace.calls]) == ([], [None, True])
    row = {"question": "2 + 2?", "answer": "4", "gold": "4", "model": "a"}
    rows = [row | {"score": value}, row | {"model": "b", "answer": "5", "score": 0}]
    (trace,) = read(tmp_path, rows).traces
    assert (trace.gold, [call.correct for call in trace.calls]) == ([], [None, False])


def test_who_has_no_grader_beside_a_silent_one_is_graded_by_accepted_answers(
    tmp_path: Path,
) -> None:
    silent = evaluated("a", [sample("4", None, "a")])
    unscored = evaluated("b", [sample("4", model="b") | {"scores": None}])
    (trace,) = read(tmp_path, silent, unscored).traces
    assert (trace.gold, [call.correct for call in trace.calls]) == ([], [None, True])


def event(model: str, tokens: int, **more: Any) -> Line:
    used = {"input_tokens": tokens, "output_tokens": tokens // 10}
    output = {"model": model, "choices": [], "usage": used, "time": 1.5}
    return {"event": "model", "model": model, "output": output, "working_time": 1.25, **more}


def begun(name: str, kind: str | None, parent: str | None = None) -> Line:
    return {"event": "span_begin", "id": name, "type": kind, "name": name, "parent_id": parent}


LARGE = "openai/gpt-4o"


def only(folder: Path, **more: Any) -> Call:
    (call,) = one(folder, evaluated(LARGE, [sample("4", **more)])).calls
    return call


def test_a_judges_tokens_and_its_time_are_not_the_models(tmp_path: Path) -> None:
    """It is the same model, within spans of the scorers; so is one with the role of a grader."""
    both = {LARGE: {"input_tokens": 9_000, "output_tokens": 900}}
    spans = [begun("solvers", "solvers"), event(LARGE, 1_000, span_id="solvers")]
    for judged in (
        [
            begun("s", "scorers"),
            begun("m", "scorer", "s"),
            begun("x", None, "m"),
            event(LARGE, 8_000, span_id="x"),
        ],
        [event(LARGE, 8_000, role="grader")],
    ):
        call = only(tmp_path, model_usage=both, events=[*spans, *judged])
        assert (call.input_tokens, call.output_tokens, call.latency_s) == (1_000, 100, 1.25)
        assert call.cost_usd == pytest.approx(0.0025 + 0.001)
    told = {"judge": {"value": "C", "metadata": {"grading": [{"role": "user", "content": "?"}]}}}
    for beside in ({"scores": told}, {"role_usage": {"grader": both[LARGE]}}):
        call = only(tmp_path, model_usage=both, **beside)
        assert (call.input_tokens, call.output_tokens, call.latency_s) == (1_000, 40, 2.0)


def test_the_time_of_a_reply_from_a_cache_is_unknown_and_its_cost_is_not(tmp_path: Path) -> None:
    nobody: Line = {"model_usage": {}}
    for beside in (nobody, {"events": [event(LARGE, 1_000, cache="read")]}):
        call = only(tmp_path, **beside)
        assert call.latency_s is None
        assert call.cost_usd
    assert only(tmp_path, events=[event(LARGE, 1_000, cache="write")]).latency_s == 3.0


def test_a_sample_that_was_tried_again_costs_its_failed_tries_too(tmp_path: Path) -> None:
    failed = {"message": "died", "traceback": "", "events": [event(LARGE, 2_000)]}
    call = only(tmp_path, events=[event(LARGE, 1_000)], error_retries=[failed])
    assert (call.input_tokens, call.output_tokens, call.latency_s) == (3_000, 300, 2.5)
    unseen = only(tmp_path, events=[event(LARGE, 1_000)], error_retries=[{"message": "died"}])
    assert (unseen.input_tokens, unseen.cost_usd, unseen.latency_s) == (None, None, None)


def test_each_request_of_a_sample_has_the_price_of_its_own_length(tmp_path: Path) -> None:
    """Three prompts of 100,000 tokens are none of 300,000, which is dearer by the token."""
    model = "anthropic/claude-sonnet-4-5"
    more = {"events": [event(model, 100_000)] * 3, "model_usage": {model: {"input_tokens": 1}}}
    log = evaluated(model, [sample("4", model=model, **more)])
    (call,) = one(tmp_path, log).calls
    assert call.cost_usd == pytest.approx(3 * (0.3 + 0.15))


# Langfuse.

PARTS = {"_cache_read": ("input", 200), "": ("input", 800), "_reasoning": ("output", 300)}


@pytest.mark.parametrize(("tier", "whole"), [("flex", (0, 0)), ("priority", (1_000, 500))])
def test_a_tier_that_langchain_writes_into_names_is_read(
    tmp_path: Path, tier: str, whole: tuple[int, int]
) -> None:
    """As langfuse 5.0.4 records what langchain-openai 1.7.4 says; the same tokens each time."""
    counts = {"input": whole[0], "output": whole[1], "total": 1_500, f"output_{tier}": 200}
    counts |= {f"{side}_{tier}{part}": n for part, (side, n) in PARTS.items()}
    at = {"start_time": "2026-11-01T10:00:00Z", "end_time": "2026-11-01T10:00:02Z"}
    row = {"type": "GENERATION", "model": "gpt-5", "input": "2 + 2?", "output": "4", **at}
    (told,) = one(tmp_path, [row | {"usage_details": counts}]).calls
    plain = {"input": 800, "input_cached_tokens": 200, "output": 200, "total": 1_500}
    (usual,) = one(tmp_path, [row | {"usage_details": plain | {"output_reasoning": 300}}]).calls
    assert (told.input_tokens, told.output_tokens) == (1_000, 500)
    assert usual.cost_usd is not None
    assert told.cost_usd == pytest.approx(usual.cost_usd * {"flex": 0.5, "priority": 2}[tier])


# Promptfoo.


def results(configs: list[Line], *, listed: bool) -> Line:
    provider, label = "openai:chat:gpt-4o", "{{q}}"
    rows = [
        {
            "provider": {"id": provider, "label": ""},
            "prompt": {"raw": "2 + 2?", "label": label},
            "promptIdx": i,
            "testCase": {"assert": [{"type": "equals", "value": "4"}]},
            "vars": {},
            "response": {"output": str(4 - i), "tokenUsage": {"prompt": 9, "completion": 1}},
            "success": i == 0,
            "gradingResult": {"componentResults": [{"pass": i == 0}]},
        }
        for i in reversed(range(len(configs)))
    ]
    prompts = [{"provider": provider, "raw": label, "label": label}] * len(configs)
    return {
        "results": {"version": 3, "results": rows, "prompts": prompts if listed else []},
        "config": {"providers": [{"id": provider, "config": config} for config in configs]},
    }


@pytest.mark.parametrize("listed", [True, False])
def test_two_providers_of_one_name_are_two_models(tmp_path: Path, listed: bool) -> None:
    name = "openai:chat:gpt-4o"
    efforts: list[Line] = [{"reasoning_effort": "low"}, {"reasoning_effort": "high"}]
    cases: list[tuple[list[Line], list[str]]] = [
        (efforts, [f"{name}@low", f"{name}@high"]),
        ([{"temperature": 0}, {"temperature": 0.9}], [name, f"{name}#2"]),
        ([{}, {}, {}], [name, f"{name}#2", f"{name}#3"]),
    ]
    for configs, roles in cases:
        trace = one(tmp_path, results(configs, listed=listed))
        assert {c.role: (c.answer, c.correct) for c in trace.calls} == {
            role: (str(4 - i), i == 0) for i, role in enumerate(roles)
        }


# Other shapes.


@pytest.mark.parametrize("document", [True, False])
def test_messages_as_a_list_are_a_question(tmp_path: Path, document: bool) -> None:
    said = [{"role": "system", "content": "Be brief."}, *ASKED]
    rows = [{"messages": said, "model": m, "response": "4", "cost": 0.1} for m in "ab"]
    text = json.dumps(rows) if document else "".join(json.dumps(row) + "\n" for row in rows)
    trace = one(tmp_path, text)
    assert (trace.question, trace.system_prompt) == ("2 + 2?", "Be brief.")
    assert [call.role for call in trace.calls] == ["a", "b"]


def test_usage_in_a_table_is_read_whole(tmp_path: Path) -> None:
    row = {"question": "2 + 2?", "model": "gpt-4.1", "answer": "4"}
    whole = {"prompt_tokens": 10_000, "completion_tokens": 100}
    parts = {"prompt_tokens_details": {"cached_tokens": 9_000}}
    for beside in (
        {"usage": whole | parts},
        whole | parts,
        whole | {"cached_tokens": 9_000},
        {"input_tokens": 1_000, "cache_read_input_tokens": 9_000, "output_tokens": 100},
    ):
        (call,) = one(tmp_path, [row | beside]).calls
        assert call.cost_usd == pytest.approx(0.0073)


def test_json_answers_agree_by_value(tmp_path: Path) -> None:
    row = {"question": "Where?", "cost": 0.1}
    said: list[Any] = [
        '{"a": 1, "b": [2]}',
        {"b": [2.0], "a": 1.0},
        '```json\n{"b":[2],"a":1}\n```',
        "1",
    ]
    rows = [row | {"model": f"m{i}", "answer": answer} for i, answer in enumerate(said)]
    codes = assemble([one(tmp_path, rows)]).answer[0, 0].tolist()
    assert codes == [0, 0, 0, 1]


def test_turns_of_llm_come_after_one_another(tmp_path: Path) -> None:
    about = {
        "conversation_id": "c",
        "model": "m",
        "duration_ms": 500,
        "conversation_name": "2 + 2?",
    }
    turns = [
        about | {"prompt": "2 + 2?", "system": "Be brief.", "response": "4"},
        about | {"prompt": "And 1?", "system": None, "response": "5"},
    ]
    turns = [t | {"datetime_utc": f"2026-11-01T10:00:0{i}"} for i, t in enumerate(turns)]
    first, second = read(tmp_path, turns[::-1]).traces
    assert (first.question, first.system_prompt, first.history) == ("2 + 2?", "Be brief.", "")
    assert second.system_prompt == "Be brief."
    assert second.history == "user: 2 + 2?\n\nassistant: 4"
    found = read(tmp_path, [turns[1], turns[0] | {"conversation_id": "d"}])
    assert len(found.traces) == 1
    assert any("whose conversation began before" in note for note in found.notes)
