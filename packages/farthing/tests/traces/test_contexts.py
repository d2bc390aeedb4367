"""What importers keep of how questions were asked, and what system that shows."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from farthing.errors import InputError
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.importers.base import Options
from farthing.traces.importers.read import Supplied, read_foreign
from farthing.traces.store import Store
from farthing.traces.system import (
    ALONE,
    LOGGED,
    UNSAID,
    RoleSetup,
    SentRequest,
    changes,
    fingerprint,
    parameters_of,
    prompt_mark,
    recorded_system,
    unrecorded,
    with_longest,
)

SYSTEM, QUESTION, REPLY = "Be brief.", "2 + 2?", "4"
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]
COMPLETION = {
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": REPLY}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1},
}
LITELLM = {
    "request_id": "r",
    "call_type": "acompletion",
    "model": "m",
    "spend": 0.1,
    "messages": MESSAGES,
    "proxy_server_request": json.dumps(
        {"model": "m", "messages": MESSAGES, "max_tokens": 7, "temperature": 0.0, "top_p": 1,
         "user": "u", "metadata": {"requester_ip_address": ""}, "tools": TOOLS}
    ),
    "response": COMPLETION,
}  # fmt: skip
LANGFUSE = {
    "id": "o",
    "type": "GENERATION",
    "startTime": "2025-01-31T12:00:00Z",
    "input": MESSAGES,
    "output": {"role": "assistant", "content": REPLY},
    "model": "m",
    "modelParameters": {"temperature": "0.2", "max_tokens": "Infinity", "top_p": 1},
}
BATCH = {"custom_id": "1", "response": {"status_code": 200, "body": COMPLETION}, "error": None}
REQUEST = {
    "custom_id": "1",
    "body": {"model": "m", "messages": MESSAGES, "max_completion_tokens": 5, "seed": 3},
}
STORED = {**COMPLETION, "messages": MESSAGES, "temperature": 0.5, "top_p": 1.0, "tools": None}
RESPONSE = {
    "object": "response",
    "model": "m",
    "input": QUESTION,
    "instructions": SYSTEM,
    "temperature": 1.0,
    "max_output_tokens": 9,
    "text": {"format": {"type": "text"}},
    "output": [{"type": "message", "content": [{"type": "output_text", "text": REPLY}]}],
}
PROMPTFOO = {
    "results": {
        "results": [
            {
                "promptIdx": 0,
                "testCase": {},
                "provider": {"id": "openai:chat:m", "label": ""},
                "prompt": {"raw": json.dumps(MESSAGES)},
                "response": {"output": REPLY},
                "vars": {},
                "success": True,
            }
        ]
    },
    "config": {"providers": [{"id": "openai:chat:m", "config": {"temperature": 0.3}}]},
}
INSPECT = {
    "status": "success",
    "eval": {"task": "t", "model": "m", "model_generate_config": {"temperature": 0.1}},
    "plan": {"config": {"temperature": 0.4, "top_p": None}},
    "samples": [
        {
            "id": 1,
            "input": QUESTION,
            "target": "4",
            "messages": [
                {"role": "system", "content": "attachment://a"},
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": REPLY},
            ],
            "attachments": {"a": SYSTEM},
            "output": {"choices": [{"message": {"content": REPLY}}]},
        }
    ],
}
TABLE = {
    "question": QUESTION,
    "model": "m",
    "answer": REPLY,
    "system_prompt": SYSTEM,
    "temperature": 0,
    "max_tokens": 5,
}
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "litellm": (LITELLM, {"max_tokens": 7, "temperature": 0, "tools": TOOLS}),
    "langfuse": (LANGFUSE, {"temperature": 0.2}),
    "batch": (BATCH, {"max_tokens": 5}),
    "stored": (STORED, {"temperature": 0.5}),
    "response": (RESPONSE, {"max_tokens": 9}),
    "promptfoo": (PROMPTFOO, {"temperature": 0.3, "max_tokens": None}),
    "inspect": (INSPECT, {"temperature": 0.4, "max_tokens": None}),
    "table": (TABLE, {"temperature": 0, "max_tokens": 5}),
}
"""A tool's export of one call, and the parameters that it tells of."""


def imported(folder: Path, *rows: dict[str, Any], **supplied: Any) -> list[Trace]:
    file = folder / "export.json"
    lone = len(rows) == 1 and not {"custom_id", "object"} & rows[0].keys()
    nested = lone and {"results", "samples"} & rows[0].keys()
    file.write_text(json.dumps(rows[0] if nested else list(rows)))
    return read_foreign([file], None, Supplied(**supplied)).traces


@pytest.mark.parametrize("tool", ROWS)
def test_system_prompt_and_parameters_are_kept(tmp_path: Path, tool: str) -> None:
    row, parameters = ROWS[tool]
    (tmp_path / "requests.jsonl").write_text(json.dumps(REQUEST))
    given = {"requests": (tmp_path / "requests.jsonl",)} if tool == "batch" else {}
    (trace,) = imported(tmp_path, row, **given)
    assert (trace.question, trace.system_prompt) == (QUESTION, SYSTEM)
    assert json.loads(trace.parameters or "") == parameters
    assert trace.parameters == msgspec.json.encode(parameters, order="sorted").decode()
    assert trace.history == ""


@pytest.mark.parametrize("tool", ["litellm", "langfuse", "stored", "inspect", "table"])
def test_what_a_file_does_not_say_stays_unknown(tmp_path: Path, tool: str) -> None:
    row = json.loads(json.dumps(ROWS[tool][0]))
    for gone in ("proxy_server_request", "modelParameters", "temperature", "top_p", "tools"):
        row.pop(gone, None)
    for gone in ("max_tokens", "system_prompt", "plan"):
        row.pop(gone, None)
    if tool == "inspect":
        del row["eval"]["model_generate_config"], row["samples"][0]["messages"]
    else:
        for field in {"messages", "input"} & row.keys():
            row[field] = QUESTION
    (trace,) = imported(tmp_path, row)
    assert (trace.question, trace.system_prompt, trace.history) == (QUESTION, None, None)
    assert trace.parameters is None
    assert recorded_system(assemble([trace])) is None


def test_messages_without_a_system_prompt_are_known_to_have_none(tmp_path: Path) -> None:
    (trace,) = imported(tmp_path, {**LANGFUSE, "input": MESSAGES[1:]})
    assert (trace.system_prompt, trace.history) == ("", "")


def test_earlier_turns_are_the_history(tmp_path: Path) -> None:
    turns = [*MESSAGES, {"role": "assistant", "content": "4"}, {"role": "user", "content": "Sure?"}]
    (trace,) = imported(tmp_path, {**LANGFUSE, "input": turns})
    assert trace.history == f"user: {QUESTION}\n\nassistant: 4"
    assert trace.question == f"{trace.history}\n\nuser: Sure?"


def test_an_input_that_a_solver_wrote_anew_was_asked_in_words_that_nobody_knows(
    tmp_path: Path,
) -> None:
    log = json.loads(json.dumps(INSPECT))
    log["samples"][0]["messages"][1]["content"] = f"Think first. {QUESTION}"
    (trace,) = imported(tmp_path, log)
    assert (trace.question, trace.system_prompt, trace.history) == (QUESTION, SYSTEM, None)
    log["samples"][0]["messages"][1:1] = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2"},
    ]
    log["samples"][0]["messages"][3]["content"] = QUESTION
    (trace,) = imported(tmp_path, log)
    assert trace.history == "user: 1 + 1?\n\nassistant: 2"


def test_a_prompt_that_was_cut_is_unknown(tmp_path: Path) -> None:
    cut = "Be (litellm_truncated 9 chars)"
    (trace,) = imported(
        tmp_path, {**LITELLM, "messages": [{"role": "system", "content": cut}, MESSAGES[1]]}
    )
    assert (trace.system_prompt, trace.history) == (None, "")
    turns = [MESSAGES[0], {"role": "assistant", "content": cut}, MESSAGES[1]]
    request = {"model": "m", "max_tokens": 7, "tools": [{"function": {"description": cut}}]}
    (trace,) = imported(tmp_path, {**LITELLM, "messages": turns, "proxy_server_request": request})
    assert (trace.system_prompt, trace.history) == (SYSTEM, None)
    assert trace.parameters == '{"max_tokens":7,"tools":null}'


def test_one_id_that_was_asked_in_two_ways_is_refused(tmp_path: Path) -> None:
    """Without a system prompt is one way, and so is without turns before the question."""
    user = MESSAGES[1]
    said = {"role": "assistant", "content": "Ask."}
    for other, what in ((MESSAGES, "system prompt"), ([said, user], "conversation before")):
        logs = [json.loads(json.dumps(INSPECT)) for _ in range(2)]
        for at, (log, messages) in enumerate(zip(logs, ([user], other), strict=True)):
            log["eval"]["model"] = f"m{at}"
            log["samples"][0]["messages"] = messages
            (tmp_path / f"{at}.json").write_text(json.dumps(log))
        with pytest.raises(InputError, match=f"'t-1' has another {what}"):
            read_foreign([tmp_path / "0.json", tmp_path / "1.json"])


def test_another_name_of_a_parameter_that_is_left_empty_says_nothing() -> None:
    both = {"max_tokens": 7, "max_completion_tokens": None, "temperature": 0, "maxOutputTokens": 9}
    assert parameters_of(both) == {"max_tokens": 7, "temperature": 0}
    assert parameters_of({"max_tokens": None, "max_output_tokens": "5"}) == {"max_tokens": 5}


def test_a_long_prompt_is_kept_as_the_fingerprint_of_its_text(tmp_path: Path) -> None:
    long = [{"role": "system", "content": "Be brief. " * 300}, MESSAGES[1]]
    (trace,) = imported(tmp_path, {**LANGFUSE, "input": long})
    assert trace.system_prompt == prompt_mark("Be brief. " * 300)
    assert trace.system_prompt == fingerprint(("Be brief. " * 300).strip())


def test_calls_that_were_asked_otherwise_say_so_by_role(tmp_path: Path) -> None:
    rows = [{**TABLE, "model": f"m{at}", "temperature": at} for at in range(2)]
    (trace,) = imported(tmp_path, *rows)
    system = recorded_system(assemble([trace]))
    assert system
    assert [part.sent and part.sent.parameters for part in system.values()] == [
        {"max_tokens": 5, "temperature": 0},
        {"max_tokens": 5},
    ]
    rows[1]["system_prompt"] = "Be verbose."
    assert len(imported(tmp_path, *rows)) == 2  # two questions: nobody was asked alike
    with pytest.raises(InputError, match="'1' has another system prompt"):
        imported(tmp_path, *({**row, "id": "1"} for row in rows))


def recorded(*contexts: dict[str, str | None], tokens: int | None = 3) -> list[Trace]:
    """Return a question of two models under each context."""
    calls = [
        Call(round=1, role=role, model=role.upper(), answer="4", cost_usd=0.1, output_tokens=tokens)
        for role in ("a", "b")
    ]
    return [
        Trace(id=f"q{at}", question=f"{at}?", calls=calls, independent=True, **one)  # type: ignore[arg-type]
        for at, one in enumerate(contexts)
    ]


KNOWN: dict[str, str | None] = {"system_prompt": SYSTEM, "history": "", "parameters": "{}"}


def shown(*contexts: dict[str, str | None]) -> SentRequest:
    """Return what the calls to `a` were sent."""
    system = recorded_system(assemble(recorded(*contexts)))
    assert system
    assert (system["a"].kind, system["a"].model) == (LOGGED, "A")
    assert system["a"].sent
    return system["a"].sent


def test_questions_that_say_the_same_show_a_system() -> None:
    mark = prompt_mark(SYSTEM)
    assert shown(KNOWN, KNOWN) == SentRequest(
        system=(mark,), around=ALONE, parameters={}, longest=3
    )
    digested = {**KNOWN, "system_prompt": mark}
    assert shown(KNOWN, digested).system == (mark,)
    assert shown(KNOWN, {**KNOWN, "system_prompt": "Other."}).system == tuple(
        sorted([mark, prompt_mark("Other.")])
    )
    assert shown(KNOWN, {}).system == (mark, UNSAID)
    assert shown(KNOWN, {}).parameters is None
    cold, warm = ({**KNOWN, "parameters": f'{{"temperature":{at}}}'} for at in (0, 2))
    assert shown(cold, cold).parameters == {"temperature": 0}
    assert shown(cold, warm).parameters == {"temperature": "several values"}
    assert shown(cold, KNOWN).parameters == {"temperature": "several values"}
    assert shown({**KNOWN, "parameters": "sha256:1"}).parameters is None
    few = {**KNOWN, "history": "user: 1\n\nassistant: 2"}
    assert shown(few, few).around == prompt_mark("user: 1\n\nassistant: 2")
    assert shown(few, KNOWN).around == ALONE  # the questions' own
    assert shown(few).around is None


def test_what_is_taken_says_what_it_was_asked_with() -> None:
    arrays = assemble(recorded(KNOWN, {**KNOWN, "system_prompt": "Other."}, {}))
    first = recorded_system(arrays.take(np.array([0])))
    assert first
    assert first["a"].sent
    assert first["a"].sent.system == (prompt_mark(SYSTEM),)
    assert recorded_system(arrays.take(np.array([2]))) is None


def test_contexts_come_through_a_store(tmp_path: Path) -> None:
    traces = recorded(KNOWN, {})
    with Store.open(tmp_path / "t.db") as store:
        store.add(traces, "here")
    with Store.read(tmp_path / "t.db") as store:
        assert list(store.traces()) == traces


def test_the_longest_reply_is_unknown_where_one_is() -> None:
    arrays = assemble([*recorded({}), *recorded({}, {}, tokens=None)[1:]])
    part = RoleSetup(model="A", kind="K", agent={}, prompts={}, sent=SentRequest())
    sent = with_longest({"a": part}, arrays)["a"].sent
    assert sent
    assert sent.longest is None
    sent = with_longest({"a": part}, arrays.take(np.array([0])))["a"].sent
    assert sent
    assert sent.longest == 3


def test_what_is_unknown_is_neither_the_same_nor_a_change() -> None:
    mark, cold = prompt_mark(SYSTEM), {"temperature": 0}
    ours = RoleSetup(
        model="A",
        kind="ChatAgent",
        agent={},
        prompts={},
        sent=SentRequest(
            system=(mark,), around=ALONE, parameters={"temperature": 0, "max_tokens": 9}
        ),
    )

    def logged(**said: Any) -> RoleSetup:
        sent = SentRequest(**{"around": ALONE if "longest" in said else None, **said})
        return RoleSetup(model="", kind=LOGGED, agent={}, prompts={}, sent=sent)

    for known, lacks in (
        ({}, ("system prompt", "parameters")),
        ({"system": (mark,)}, ("messages around the question", "parameters")),
        ({"system": (mark, UNSAID), "parameters": cold, "longest": 8}, ("system prompt",)),
        ({"system": (mark,), "parameters": {"temperature": None}, "longest": 8}, ("parameters",)),
        ({"system": (mark,), "parameters": cold, "longest": 8}, ()),
    ):
        theirs = {"a": logged(**known)}
        assert changes(theirs, {"a": ours}) == []
        assert unrecorded(theirs) == lacks
    other = {"a": logged(system=(prompt_mark("Other."), UNSAID))}
    assert changes(other, {"a": ours}) == ["the system prompt of a"]
    reached = {"a": logged(parameters={"temperature": 0}, longest=9)}
    assert changes(reached, {"a": ours}) == ["max_tokens of a (9 instead of nothing)"]


def test_samples_keep_how_they_were_asked(tmp_path: Path) -> None:
    rows = [{**STORED, "messages": MESSAGES} for _ in range(2)]
    (trace,) = imported(tmp_path, *rows, options=Options(samples=True))
    assert (trace.system_prompt, trace.parameters) == (SYSTEM, '{"temperature":0.5}')
