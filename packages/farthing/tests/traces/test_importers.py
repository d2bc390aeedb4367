"""Every registered importer is held to the same; then each format's calls, one by one."""

import csv
import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imported_alike import *  # noqa: F403
from imported_alike import (
    MODELS,
    QUESTIONS,
    REPLIES,
    REQUESTS,
    SECRET,
    Line,
    assert_read_or_refused,
    csv_text,
    lines,
    notes,
    only,
    plain,
    read,
    refusal_of,
    user,
    write,
)

from farthing.errors import InputError, TraceFormatError
from farthing.models.prices import Rates, TokenPrice
from farthing.traces.importers.base import Options
from farthing.traces.importers.read import (
    OWN,
    Supplied,
    check,
    read_foreign,
    short_hash,
    sniffed,
)
from farthing.traces.importers.source import _cells
from farthing.traces.jsonl import read_traces, write_traces
from farthing.traces.trace_kind import Checker


def completion(model: str, reply: str) -> Line:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": reply}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }


PACKAGE = "farthing"
TABLE = [
    {"question": q, "model": m, "answer": reply, "right": reply == QUESTIONS[q], "cost": 0.001}
    for (q, m), reply in REPLIES.items()
]
SPEND = [
    {
        "request_id": f"r{i}",
        "call_type": "acompletion",
        "api_key": SECRET,
        "spend": 0.002,
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "startTime": "2025-01-31T12:00:00.000Z",
        "endTime": "2025-01-31T12:00:01.500Z",
        "model": m,
        "custom_llm_provider": "openai",
        "metadata": {},
        "messages": user(q),
        "response": completion(m, reply),
        "status": "success",
    }
    for i, ((q, m), reply) in enumerate(REPLIES.items())
]
STORED = [completion(m, reply) | {"messages": user(q)} for (q, m), reply in REPLIES.items()]
LLM_LOGS: list[dict[str, object]] = [
    {
        "id": f"01m8{i}",
        "model": m,
        "resolved_model": None,
        "options_json": {},
        "conversation_id": f"c{i}",
        "duration_ms": 1500,
        "datetime_utc": f"2026-11-27T20:56:43.60311{i}+00:00",
        "input_tokens": 10,
        "output_tokens": 2,
        "token_details": None,
        "conversation_name": q,
        "conversation_model": m,
        "schema_json": None,
        "prompt": q,
        "system": "Be brief.",
        "response": reply,
        "response_json": completion(m, reply),
        "prompt_fragments": [],
        "system_fragments": [],
        "attachments": [],
    }
    for i, ((q, m), reply) in enumerate(REPLIES.items())
]
BATCH = [
    {
        "id": f"batch_req_{i}",
        "custom_id": f"{m}-{q}",
        "response": {"status_code": 200, "request_id": "r", "body": completion(m, reply)},
        "error": None,
    }
    for i, ((q, m), reply) in enumerate(REPLIES.items())
]
OBSERVATIONS = [
    {
        "id": f"o{i}",
        "trace_id": f"t{i}",
        "type": "GENERATION",
        "start_time": "2024-05-29 13:46:19.000000",
        "end_time": "2024-05-29 13:46:20.500000",
        "level": "DEFAULT",
        "status_message": "",
        "input": json.dumps(user(q)),
        "output": json.dumps({"role": "assistant", "content": reply}),
        "provided_model_name": m,
        "usage_details": {"input": 4, "input_cached_tokens": 6, "output": 2, "total": 12},
        "total_cost": 0.002,
        "latency": 1.5,
    }
    for i, ((q, m), reply) in enumerate(REPLIES.items())
]


def inspect_log(model: str) -> Line:
    samples = [
        {
            "id": i,
            "epoch": 1,
            "input": q,
            "target": gold,
            "output": {
                "model": model,
                "choices": [{"message": {"role": "assistant", "content": REPLIES[q, model]}}],
                "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
                "time": 1.5,
            },
            "scores": {
                "match": {
                    "value": "C" if REPLIES[q, model] == gold else "I",
                    "answer": REPLIES[q, model],
                }
            },
            "model_usage": {f"openai/{model}": {"input_tokens": 10, "output_tokens": 2}},
        }
        for i, (q, gold) in enumerate(QUESTIONS.items(), start=1)
    ]
    about = {"task": "sums", "model": f"openai/{model}", "created": "2025-07-05T09:59:40-04:00"}
    return {"version": 2, "status": "success", "eval": about, "samples": samples}


PROMPTFOO: Line = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "timestamp": "2025-01-31T12:00:00Z",
        "results": [
            {
                "promptIdx": 0,
                "testIdx": i,
                "testCase": {"vars": {"q": q}, "assert": [{"type": "equals", "value": "4"}]},
                "provider": {"id": f"openai:chat:{m}", "label": ""},
                "prompt": {"raw": json.dumps(user(q)), "label": "p"},
                "vars": {"q": q},
                "response": {
                    "output": reply,
                    "tokenUsage": {"total": 12, "prompt": 10, "completion": 2},
                },
                "failureReason": 0 if reply == QUESTIONS[q] else 1,
                "success": reply == QUESTIONS[q],
                "score": float(reply == QUESTIONS[q]),
                "latencyMs": 1500,
                "gradingResult": {"pass": True, "score": 1, "reason": "", "componentResults": []},
                "namedScores": {},
                "cost": 0.002,
            }
            for i, ((q, m), reply) in enumerate(REPLIES.items())
        ],
        "prompts": [],
        "stats": {},
    },
    "config": {"env": {"OPENAI_API_KEY": SECRET}},
}


SAMPLES: dict[str, dict[str, str]] = {
    "table": {
        "calls.csv": csv_text(TABLE),
        "semicolons.csv": csv_text(TABLE).replace(",", ";"),
        "calls.jsonl": lines(TABLE),
        "calls.json": json.dumps(TABLE, indent=1),
    },
    "litellm": {
        "spend.jsonl": lines(SPEND),
        "spend.json": json.dumps(SPEND),
        "spend.csv": csv_text(SPEND),
    },
    "openai": {
        "stored.jsonl": lines(STORED),
        "stored.json": json.dumps({"object": "list", "data": STORED}),
        "batch.jsonl": lines(BATCH),
    },
    "llm": {"logs.json": json.dumps(LLM_LOGS, indent=2)},
    "langfuse": {
        "observations.jsonl": lines(OBSERVATIONS),
        "observations.json": json.dumps(OBSERVATIONS),
        "observations.csv": csv_text(OBSERVATIONS),
    },
    "inspect": {"log.json": json.dumps(inspect_log("gpt-4o"), indent=2)},
    "promptfoo": {
        "output.json": json.dumps(PROMPTFOO, indent=2),
        "output.jsonl": lines(PROMPTFOO["results"]["results"]),
    },
}
"""Format to files that hold the same calls."""


OF_ONE_MODEL = {"inspect"}


# What each format says, call by call.


def test_a_table_says_exactly_this(folder: Path) -> None:
    text = (
        "QID;Prompt;Model Name;Response;Is-Correct;Gold;Cost USD;Prompt Tokens;Latency ms;Subject"
        ";split\nq1;2 + 2?;small;I think\n4;yes;4;0.001;10;1500;sums;test\n"
    ).replace("I think\n4", '"I think\n4"')
    (trace,) = only(folder, "a.csv", text)
    assert plain(trace) == {
        "id": "q1",
        "task": "text",
        "question": "2 + 2?",
        "gold": ["4"],
        "group": "sums",
        "split": "test",
        "independent": True,
        "calls": [
            {
                "round": 1,
                "role": "small",
                "model": "small",
                "answer": "I think\n4",
                "text": "I think\n4",
                "correct": True,
                "input_tokens": 10,
                "latency_s": 1.5,
                "cost_usd": 0.001,
            }
        ],
    }


@pytest.mark.parametrize(
    ("column", "value", "field", "expected"),
    [
        ("cost_cents", "150", "cost_usd", 1.5),
        ("Cost (cents)", "0.25", "cost_usd", 0.0025),
        ("cost_usd", "150", "cost_usd", 150.0),
        ("latency_ms", "1500", "latency_s", 1.5),
        ("latency_s", "1500", "latency_s", 1500.0),
        ("score", "0.5", "correct", True),
        ("score", "0.49", "correct", False),
    ],
)
def test_a_number_of_a_table_is_read_in_its_unit(
    folder: Path, column: str, value: str, field: str, expected: float
) -> None:
    text = f"question,model,answer,{column}\n2 + 2?,gpt-4o,4,{value}\n"
    (trace,) = only(folder, "unit.csv", text)
    assert getattr(trace.calls[0], field) == expected


def test_columns_of_a_table_can_be_mapped(folder: Path) -> None:
    text = "q,who,said,answer\n2 + 2?,small,four,x\n"
    columns = {"question": "q", "model": "who", "answer": "said"}
    path = write(folder, "a.csv", text)
    (trace,) = read_foreign([path], "table", Supplied(options=Options(columns=columns))).traces
    assert (trace.id, trace.calls[0].answer) == (short_hash("2 + 2?"), "four")
    for wrong, says in (
        ({"anwser": "said"}, "did you mean answer?"),
        ({"answer": "sad"}, "there are answer, q, said, who"),
    ):
        with pytest.raises(InputError, match=says):
            read_foreign([path], "table", Supplied(options=Options(columns=wrong)))


def test_scores_of_a_table_grade_at_the_threshold(folder: Path) -> None:
    text = "id,model,answer,score\nq1,a,x,0.5\nq1,b,y,0.4\n"
    (trace,) = only(folder, "a.csv", text)
    assert [(call.correct, call.score) for call in trace.calls] == [(True, 0.5), (False, 0.4)]
    (trace,) = only(folder, "a.csv", text, options=Options(threshold=0.4))
    assert [call.correct for call in trace.calls] == [True, True]
    assert "at least 0.5 is right (--threshold)" in notes(folder, "a.csv", text)


def test_a_table_may_be_parquet_but_not_arrays_of_an_older_version(folder: Path) -> None:
    pq.write_table(pa.Table.from_pylist(TABLE), folder / "calls.parquet")
    assert sniffed(folder / "calls.parquet") == "table"
    kept = read(folder, "calls.csv").traces
    assert read(folder, "calls.parquet").traces == kept
    whole = (folder / "calls.parquet").read_bytes()
    for end in range(4, len(whole), 97):
        assert_read_or_refused(write(folder, "cut.parquet", whole[:end]), "table")
    arrays = pa.table({"id": ["q"]}).replace_schema_metadata({b"farthing.traces": b"{}"})
    pq.write_table(arrays, folder / "own.parquet")
    with pytest.raises(InputError, match="export the store again as"):
        read_foreign([folder / "own.parquet"])


def test_a_pickle_is_not_opened(folder: Path) -> None:
    write(folder, "x.pkl", b"\x80\x04\x95")
    with pytest.raises(InputError, match="pickle, which could run any program"):
        read_foreign([folder / "x.pkl"])


ONE_CALL = {
    "round": 1,
    "role": "gpt-4o-mini",
    "model": "gpt-4o-mini",
    "answer": "4",
    "text": "4",
    "input_tokens": 10,
    "output_tokens": 2,
    "latency_s": 1.5,
    "cost_usd": 0.002,
}
"""What the first row of a spend log, and the first observation, say."""


def test_a_spend_log_says_exactly_this(folder: Path) -> None:
    (trace,) = only(folder, "a.jsonl", lines(SPEND[:1]))
    assert trace.id == short_hash("system: Be brief.\n\nuser: 2 + 2?")
    assert plain(trace)["calls"] == [ONE_CALL]


def test_a_spend_log_may_have_its_prompts_in_the_request(folder: Path) -> None:
    row = SPEND[0] | {"messages": {}, "proxy_server_request": json.dumps({"messages": user("Hi?")})}
    assert only(folder, "a.jsonl", lines([row]))[0].question == "Hi?"


def test_a_spend_log_without_prompts_says_how_to_keep_them(folder: Path) -> None:
    rows = [row | {"messages": {}, "response": {}} for row in SPEND]
    assert "store_prompts_in_spend_logs" in refusal_of(folder, "a.json", rows)
    embedding = SPEND[0] | {"call_type": "aembedding"}
    said = notes(folder, "a.json", [*SPEND, embedding, rows[0]])
    assert "1 row left out: a call of the type aembedding" in said
    assert "1 row left out: no prompt is stored" in said


def test_failed_calls_keep_their_reason_but_no_key(folder: Path) -> None:
    about = {"error_class": "AuthError", "error_message": f"Incorrect API key: {SECRET}"}
    row = SPEND[0] | {"status": "failure", "response": {}, "metadata": {"error_information": about}}
    (call,) = only(folder, "a.json", [row])[0].calls
    assert call.error is not None
    assert (call.answer, call.error.type, call.error.message) == (
        None,
        "AuthError",
        "Incorrect API key: ...",
    )


def test_the_first_answer_of_each_model_is_kept(folder: Path) -> None:
    failed = SPEND[0] | {"status": "failure", "response": {}}
    later = SPEND[0] | {"response": completion("gpt-4o-mini", "5")}
    trace = only(folder, "a.json", [failed, SPEND[0], later])[0]
    assert [(call.answer, call.error) for call in trace.calls] == [("4", None)]
    assert "2 calls left out: the model was asked the same" in notes(
        folder, "a.json", [failed, SPEND[0], later]
    )


def test_a_cut_text_is_doubted(folder: Path) -> None:
    row = SPEND[0] | {"messages": user("2 + ... (litellm_truncated 900 chars) ... 2?")}
    assert "MAX_STRING_LENGTH_PROMPT_IN_DB" in notes(folder, "a.json", [row])


def test_a_batch_says_exactly_this(folder: Path) -> None:
    trace = read(folder, "batch.jsonl").traces[0]
    assert trace.question == "2 + 2?"
    assert plain(trace)["calls"][1] == {
        "round": 1,
        "role": "gpt-4o",
        "model": "gpt-4o",
        "answer": "4",
        "text": "4",
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": 4.5e-05,  # 10 tokens at $2.5 and 2 at $10 per million
    }


def test_a_batch_without_its_input_has_ids_alone(folder: Path) -> None:
    imported = read_foreign([folder / "batch.jsonl"])
    assert [trace.id for trace in imported.traces] == [row["custom_id"] for row in BATCH]
    said = "\n".join(imported.notes)
    assert "--requests FILE names the batch's input" in said
    assert "4 questions without a text" in said
    assert "every question was asked of one model alone" in said


def test_failures_of_a_batch_are_failed_calls(folder: Path) -> None:
    bad = BATCH[0] | {"response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}
    expired = BATCH[1] | {"response": None, "error": {"code": "batch_expired", "message": "late"}}
    write(folder, "batch.jsonl", lines([bad, expired]))
    imported = read(folder, "batch.jsonl", gold=None)
    errors = [
        call.error and (call.error.type, call.error.message) for call in imported.traces[0].calls
    ]
    assert errors == [("status 429", "slow"), ("batch_expired", "late")]
    assert "2 calls failed" in "\n".join(imported.notes)
    assert "2 rows: a failed call of a model that is not named" in refusal_of(
        folder, "x.jsonl", lines([bad, expired])
    )


def test_a_batch_needs_its_own_input(folder: Path) -> None:
    write(folder, "requests.jsonl", lines(REQUESTS[1:]))
    with pytest.raises(TraceFormatError, match="line 1, custom_id: 'gpt-4o-mini-2"):
        read(folder, "batch.jsonl")
    with pytest.raises(TraceFormatError, match="give this as --requests"):
        read_foreign([folder / "requests.jsonl"])
    two = (folder / "requests.jsonl",) * 2
    with pytest.raises(InputError, match="1 files and 2 of requests"):
        read(folder, "batch.jsonl", requests=two)


def test_each_output_of_several_may_have_its_own_input(folder: Path) -> None:
    for i, model in enumerate(MODELS):
        mine = [k for k, (_, m) in enumerate(REPLIES) if m == model]
        for name, rows in (("out", BATCH), ("in", REQUESTS)):
            renamed = [rows[k] | {"custom_id": f"request-{n}"} for n, k in enumerate(mine)]
            write(folder, f"{name}{i}.jsonl", lines(renamed))
    outputs, inputs = ([folder / f"{name}{i}.jsonl" for i in (0, 1)] for name in ("out", "in"))
    traces = read_foreign(outputs, None, Supplied(requests=tuple(inputs))).traces
    assert [[call.answer for call in trace.calls] for trace in traces] == [["4", "4"], ["7", "6"]]


def test_replies_of_the_newer_interface_are_read(folder: Path) -> None:
    row = {
        "object": "response",
        "model": "gpt-4o",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "4"}]},
        ],
        "usage": {"input_tokens": 10, "output_tokens": 2},
        "instructions": "Be brief.",
        "input": "2 + 2?",
    }
    (trace,) = only(folder, "a.jsonl", lines([row]))
    assert (trace.question, trace.calls[0].answer, trace.calls[0].input_tokens) == (
        "2 + 2?",
        "4",
        10,
    )


def test_observations_say_exactly_this(folder: Path) -> None:
    (trace,) = only(folder, "a.jsonl", lines(OBSERVATIONS[:1]))
    assert trace.question == "2 + 2?"
    assert plain(trace)["calls"] == [ONE_CALL | {"cached_tokens": 6.0}]


def test_observations_in_camel_case_and_within_traces_are_read(folder: Path) -> None:
    inside = {
        "type": "GENERATION",
        "model": "gpt-4o",
        "startTime": "2025-01-31T12:00:00.000Z",
        "endTime": "2025-01-31T12:00:02.000Z",
        "input": {"messages": user("2 + 2?")},
        "output": {"content": "4"},
        "usage": {"input": 10, "output": 2, "unit": "TOKENS"},
        "calculatedTotalCost": 0.002,
        "scores": [{"name": "exact", "value": 1}],
    }
    span = {"type": "SPAN", "input": "x", "startTime": "2025-01-31T12:00:00.000Z"}
    for name, content in (
        ("a.json", [{"id": "t", "observations": [span, inside]}]),
        ("b.json", {"data": [span, inside], "meta": {}}),
        ("c.json", {"id": "t", "observations": [inside, span]}),
    ):
        path = write(folder, name, json.dumps(content))
        supplied = Supplied(options=Options(score="exact"))
        (trace,) = read_foreign([path], "langfuse", supplied).traces
        (call,) = trace.calls
        assert (trace.question, call.answer, call.latency_s) == ("2 + 2?", "4", 2.0)
        assert (call.input_tokens, call.output_tokens, call.cost_usd) == (10, 2, 0.002)
        assert (call.score, call.correct) == (1.0, True)


def test_an_eval_log_says_exactly_this(folder: Path) -> None:
    trace = only(folder, "a.json", inspect_log("gpt-4o"))[0]
    assert (trace.id, trace.group, trace.gold) == ("sums-1", "sums", ["4"])
    assert plain(trace)["calls"] == [
        {
            "round": 1,
            "role": "openai/gpt-4o",
            "model": "openai/gpt-4o",
            "answer": "4",
            "text": "4",
            "correct": True,
            "score": 1.0,
            "input_tokens": 10,
            "output_tokens": 2,
            "latency_s": 1.5,
            "cost_usd": 4.5e-05,
        }
    ]


def test_logs_of_several_models_are_one_pool(folder: Path) -> None:
    paths = [write(folder, f"{m}.json", json.dumps(inspect_log(m))) for m in MODELS]
    imported = read_foreign(paths)
    assert [[call.correct for call in trace.calls] for trace in imported.traces] == [
        [True, True],
        [False, True],
    ]
    assert [place.file for place in imported.places] == [str(paths[0])] * 2


def test_values_of_scorers_are_read_or_refused(folder: Path) -> None:
    log = inspect_log("gpt-4o")
    log["samples"] = log["samples"][:1]
    for value, score in (
        ("P", 0.5),
        ("N", 0.0),
        (True, 1.0),
        (0.25, 0.25),
        ("no", 0.0),
        ({}, None),
    ):
        log["samples"][0]["scores"] = {"match": {"value": value}, "other": {"value": "I"}}
        (call,) = only(folder, "a.json", log)[0].calls
        assert (call.score, call.correct) == (score, None if score is None else score >= 0.5)
        (call,) = only(folder, "a.json", log, options=Options(score="other"))[0].calls
        assert call.score == 0.0
    assert "several scorers graded the answers (match, other)" in notes(folder, "a.json", log)
    log["samples"][0]["scores"] = {"match": {"value": "A+"}}
    assert refusal_of(folder, "a.json", log).startswith("a.json, samples[0].scores.match.value: ")
    absent = refusal_of(folder, "a.json", log, options=Options(score="absent"))
    assert absent == "a.json, samples[0].scores: have no 'absent'; there are match"


def test_an_eval_log_may_hold_nan(folder: Path) -> None:
    text = json.dumps(inspect_log("gpt-4o")).replace('"value": "C"', '"value": NaN')
    assert only(folder, "a.json", text)[0].calls[0].correct is None


def test_a_zipped_eval_log_says_how_to_write_json(folder: Path) -> None:
    write(folder, "a.eval", b"PK\x03\x04...")
    with pytest.raises(InputError, match="inspect log convert"):
        read_foreign([folder / "a.eval"])


def test_other_results_are_not_those_of_promptfoo(folder: Path) -> None:
    write(folder, "a.json", json.dumps({"results": [{"name": "a", "passed": True}]}).encode())
    with pytest.raises(InputError, match=r"a\.json"):
        read_foreign([folder / "a.json"])


def test_the_header_of_a_table_is_its_first_line() -> None:
    assert list(_cells("a,b\n\n1,2\n", "a.csv")) == [(1, ["a", "b"]), (3, ["1", "2"])]


def test_results_of_promptfoo_say_exactly_this(folder: Path) -> None:
    trace = only(folder, "a.json", PROMPTFOO)[1]
    assert trace.question == "3 + 3?"
    assert plain(trace)["calls"][0] == {
        "round": 1,
        "role": "openai:chat:gpt-4o-mini",
        "model": "openai:chat:gpt-4o-mini",
        "answer": "7",
        "text": "7",
        "correct": False,
        "score": 0.0,
        "input_tokens": 10,
        "output_tokens": 2,
        "latency_s": 1.5,
        "cost_usd": 0.002,
    }


def test_a_test_without_assertions_grades_nothing(folder: Path) -> None:
    result: Line = PROMPTFOO["results"]["results"][0]
    (trace,) = only(folder, "a.jsonl", lines([result | {"testCase": {"vars": {}}}]))
    assert (trace.calls[0].correct, trace.calls[0].score) == (None, None)
    unsaid = {"pass": False, "metadata": {"graderError": True}}
    (trace,) = only(
        folder, "a.jsonl", lines([result | {"gradingResult": {"componentResults": [unsaid]}}])
    )
    assert trace.calls[0].correct is None
    broken = result | {"failureReason": 2, "error": f"no key {SECRET}", "response": None}
    (trace,) = only(folder, "a.jsonl", lines([broken]))
    assert trace.calls[0].error is not None
    assert (trace.calls[0].correct, trace.calls[0].error.message) == (None, "no key ...")


# What a file does not say.


def test_ungraded_calls_are_read_as_such(folder: Path) -> None:
    for form in ("litellm", "openai", "langfuse"):
        for name in SAMPLES[form]:
            imported = read(folder, name, gold=None)
            assert all(not trace.gold for trace in imported.traces)
            assert all(call.correct is None for trace in imported.traces for call in trace.calls)
            assert any("--gold FILE" in note for note in imported.notes)


def test_accepted_answers_are_found_by_id_and_by_text(folder: Path) -> None:
    for gold in (
        "question,gold\n2 + 2?,4\n2 + 2?,four\n",
        f'id,answer\n{short_hash("2 + 2?")},"[""4"", ""four""]"\n',
        '{"question": " 2 + 2? ", "gold": ["4", "four"]}\n',
        "\ufeffQuestion;Target\n2 + 2?;4\n2 + 2?;four\n",
    ):
        path = write(folder, "answers", gold)
        (trace,) = only(folder, "a.csv", "question,model,answer\n2 + 2?,a,4\n", gold=path)
        assert trace.gold == ["4", "four"]
    by_request = '{"custom_id": "gpt-4o-2 + 2?", "gold": 4}\n'
    imported = read(folder, "batch.jsonl", gold=write(folder, "answers", by_request))
    assert [trace.gold for trace in imported.traces] == [["4"], []]


def test_answers_of_the_file_itself_come_first(folder: Path) -> None:
    table = "question,model,answer,gold\n2 + 2?,a,4,four\n3 + 3?,a,6,\n"
    traces = only(folder, "a.csv", table, gold=folder / "gold.csv")
    assert [trace.gold for trace in traces] == [["four"], ["6"]]


def test_a_file_of_answers_must_fit(folder: Path) -> None:
    table = "question,model,answer\n2 + 2?,a,4\n"
    for gold, says in (
        ("question,gold\n2 + 9?,4\n", "none of its questions"),
        ("question,gold\n2 + 2?,\n", "answers, line 2, gold: is missing"),
        ("who,gold\na,4\n", "answers, line 2, id: is missing"),
        ("question,gold\n", "holds no accepted answer"),
    ):
        path = write(folder, "answers", gold)
        assert says in refusal_of(folder, "a.csv", table, gold=path)


def test_a_task_reads_answers_off_replies(folder: Path) -> None:
    row = STORED[0] | completion("gpt-4o", "3 + 1 is\nAnswer: **4**")
    (trace,) = only(folder, "a.jsonl", lines([row]), task="gsm8k")
    assert (trace.task, trace.calls[0].answer, trace.calls[0].text) == (
        "gsm8k",
        "4",
        "3 + 1 is\nAnswer: **4**",
    )
    assert "unknown task 'sums'" in refusal_of(folder, "a.jsonl", lines([row]), task="sums")


def test_costs_come_from_prices_and_what_has_none_is_named(folder: Path) -> None:
    rows = [
        STORED[0] | {"model": model} | ({"usage": None} if model == "silent" else {})
        for model in ("gpt-4o", "mine", "nobodys", "silent")
    ]
    prices = {"mine": TokenPrice((Rates(Decimal(1), Decimal(10)),))}
    imported = read_foreign([write(folder, "a.jsonl", lines(rows))], None, Supplied(prices=prices))
    costs = [call.cost_usd for call in imported.traces[0].calls]
    assert costs == [4.5e-05, 3e-05, None, None]
    said = "\n".join(imported.notes)
    price = "$2.5 in, $1.25 cached and $10 out"
    assert f"of gpt-4o are worked out from its tokens at its list price, {price}" in said
    assert "not known of nobodys (1 call); --price MODEL=IN,OUT" in said
    assert "neither costs nor tokens are recorded of silent (1 call)" in said


def test_a_cost_of_zero_in_a_log_is_an_unknown_price(folder: Path) -> None:
    free = [row | {"spend": 0.0, "model": "mine", "custom_llm_provider": "vllm"} for row in SPEND]
    assert "costs are not known of mine (2 calls)" in notes(folder, "a.json", free)
    cached = [row | {"spend": 0.0, "cache_hit": "True"} for row in SPEND[:1]]
    assert only(folder, "a.json", cached)[0].calls[0].cost_usd == 2.7e-06  # 10 and 2 at .15 and .60


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("question,model,answer,cost\nq,a,x,-1\n", "a.csv, line 2, cost: is '-1'"),
        ("question,model,answer,cost\nq,a,x,0,1\n", "line 2, row: has 5 cells, the header has 4"),
        ("question;model;answer;cost\nq;a;x;0,1\n", "line 2, cost: is '0,1'"),
        ('question,model,answer\n"q\nr",a,x\n"s\n', "line 4, row: is broken CSV"),
        ("question,model,answer\nq,,x\n", "line 2, model: is missing"),
        ("question,model,answer\n,a,x\n", "line 2, question: is missing"),
        (
            "question,model,right\nq,a,maybe\n",
            "line 2, right: is 'maybe'; it must be true or false",
        ),
        ("question,model,answer,split\nq,a,x,dev\n", "line 2, split: must be train, calibrate"),
        ("question,model,answer,confidence\nq,a,x,2\n", "line 2, confidence: is '2'"),
        (
            "question,model,answer\nq,policy-a,x\n",
            "line 2, model: 'policy-a' is a name that traces",
        ),
        ("question,model,answer\nq,guide,x\n", "line 2, model: 'guide' is a name that traces"),
        ("question,model,model\nq,a,x\n", "line 1, model: names two columns"),
        ("id,question,model,answer\n1,q,a,x\n1,r,b,x\n", "line 3, id: '1' has another question"),
        ("id,gold,model,answer\n1,4,a,x\n1,5,b,x\n", "line 3, id: '1' has another accepted"),
        ("a,b\n1,2\n", "looks like none of the known formats"),
        ("question,model,answer\n", "holds no records"),
        ("\n\n", "a.csv: is empty"),
    ],
)
def test_a_wrong_row_is_named(folder: Path, text: str, says: str) -> None:
    assert says in refusal_of(folder, "a.csv", text)


def test_what_is_no_text_is_refused(folder: Path) -> None:
    write(folder, "a.csv", "question,model,answer\nq,a,\xe9\n".encode("latin-1"))
    with pytest.raises(TraceFormatError, match="line 2, line: is not UTF-8"):
        read_foreign([folder / "a.csv"])
    write(folder, "a.csv", "question,model,answer\nq,a,x\n".encode("utf-16"))
    with pytest.raises(InputError, match="UTF-8"):
        read_foreign([folder / "a.csv"])
    write(folder, "a.csv.gz", gzip.compress(b"question,model,answer\n" * 99)[:-9])
    with pytest.raises(TraceFormatError, match="damaged gzip"):
        read_foreign([folder / "a.csv.gz"])


def test_long_prompts_fit_a_cell(folder: Path) -> None:
    before = csv.field_size_limit()
    (trace,) = only(folder, "a.csv", f"question,model,answer\n{'x' * 200_000},a,x\n")
    assert len(trace.question) == 200_000
    assert csv.field_size_limit() == before


def test_a_value_of_a_gold_answer_that_a_task_cannot_use_is_refused(folder: Path) -> None:
    table = "question,model,answer,gold\nq,a,4,four\n"
    imported = read_foreign([write(folder, "a.csv", table)], None, Supplied(task="gsm8k"))
    with pytest.raises(TraceFormatError, match="line 2, gold: is 'four', which the task gsm8k"):
        check(imported, Checker())


# Traces in our own form.


def test_our_own_lines_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    kept = read(folder, "calls.csv").traces
    write_traces(folder / "own.jsonl", kept)
    own = (folder / "own.jsonl").read_bytes()
    assert read_traces(write(folder, "marked.jsonl", b"\xef\xbb\xbf" + own)) == kept
    assert sniffed(folder / "marked.jsonl") == OWN
    with pytest.raises(InputError, match="in the form of traces already"):
        read_foreign([folder / "own.jsonl", folder / "calls.csv"])


def test_what_looks_like_nothing_is_left_to_the_reader_of_traces(folder: Path) -> None:
    assert sniffed(write(folder, "a.jsonl", '{"id": "q1"}\n')) == OWN
    assert sniffed(write(folder, "a.jsonl", '{"id": \n')) == OWN
    with pytest.raises(InputError, match="--from"):
        sniffed(write(folder, "a.json", '{"id": "q1"}\n'))
