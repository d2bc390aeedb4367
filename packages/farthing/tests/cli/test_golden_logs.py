"""One row of each log's real export, every field with its unit, and the whole trace it becomes.

No two numbers of a row are alike, so that a field or a unit that is taken for another is noticed.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from farthing.traces.base import Call, CallError, Trace
from farthing.traces.importers.read import short_hash

Import = Callable[..., Trace]
ASKED = "How many grams are in a kilogram?"
SAID = "There are 1000 grams.\nAnswer: 1000"
SYSTEM = "Answer with a number."
USER = {"role": "user", "content": ASKED}
REPLY = {"role": "assistant", "content": SAID}
MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "How many metres are in a mile?"},
    {"role": "assistant", "content": "1609"},
    USER,
]
HISTORY = "user: How many metres are in a mile?\n\nassistant: 1609"
TALK = f"{HISTORY}\n\nuser: {ASKED}"
PARAMETERS = '{"max_tokens":256,"temperature":0.3,"top_p":0.9}'


def becomes(call: Call, **of_question: Any) -> Trace:
    """Return the trace of one call on the last message, with what stood before and beside it."""
    about = {
        "id": short_hash(f"system: {SYSTEM}\n\n{TALK}"),
        "question": TALK,
        "task": "gsm8k",
        "system_prompt": SYSTEM,
        "history": HISTORY,
        "parameters": PARAMETERS,
    }
    return Trace(independent=True, calls=[call], **(about | of_question))


REQUESTED = {
    "model": "gpt-4o-mini",
    "messages": MESSAGES,
    "temperature": 0.3,
    "max_tokens": 256,
    "top_p": 0.9,
    "presence_penalty": 0,
    "stream": False,
    "seed": 11,
    "user": "u",
    "metadata": {"requester_ip_address": ""},
}
SPEND = {
    "request_id": "chatcmpl-BxT2",
    "call_type": "acompletion",
    "api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
    "spend": 0.00013125,
    "total_tokens": 66,
    "prompt_tokens": 57,
    "completion_tokens": 9,
    "startTime": "2026-01-31T12:00:00.000Z",
    "endTime": "2026-01-31T12:00:02.500Z",
    "request_duration_ms": 1834,
    "completionStartTime": "2026-01-31T12:00:00.700Z",
    "model": "gpt-4o-mini-2024-07-18",
    "model_id": "2f23b",
    "model_group": "gpt-4o-mini",
    "custom_llm_provider": "openai",
    "api_base": "https://api.openai.com/v1/",
    "user": "default_user_id",
    "metadata": {"status": "success", "additional_usage_values": {}},
    "cache_hit": "None",
    "cache_key": "Cache OFF",
    "request_tags": ["User-Agent: openai"],
    "team_id": None,
    "end_user": "",
    "requester_ip_address": "127.0.0.1",
    "messages": MESSAGES,
    "response": {
        "id": "chatcmpl-BxT2",
        "object": "chat.completion",
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "finish_reason": "stop", "message": REPLY}],
        "usage": {"prompt_tokens": 58, "completion_tokens": 8, "total_tokens": 66},
    },
    "session_id": "5c2e",
    "status": "success",
    "proxy_server_request": REQUESTED,
}
SPENT = Call(
    round=1,
    role="gpt-4o-mini-2024-07-18",
    model="gpt-4o-mini-2024-07-18",
    answer="1000",
    text=SAID,
    input_tokens=57,
    output_tokens=9,
    latency_s=1.834,
    cost_usd=0.00013125,
)


def test_a_row_of_litellm(imported: Import) -> None:
    """As `LiteLLM_SpendLogs` in BerriAI/litellm's `schema.prisma`: USD, milliseconds."""
    assert imported("spend.json", [SPEND]) == becomes(SPENT)


@pytest.mark.parametrize("messages", ["{}", MESSAGES[1:]])
def test_a_row_of_litellm_for_anthropics_messages(imported: Import, messages: Any) -> None:
    """The system prompt stands beside the messages, as a text or in parts; stops have a name."""
    asked = {
        "model": "claude",
        "max_tokens": 256,
        "system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "messages": MESSAGES[1:],
        "top_k": 40,
        "stop_sequences": ["END"],
    }
    row = SPEND | {"call_type": "anthropic_messages", "messages": messages}
    expected = becomes(SPENT, parameters='{"max_tokens":256,"stop":["END"],"top_k":40}')
    for system in (SYSTEM, asked["system"]):
        found = imported("spend.json", [row | {"proxy_server_request": asked | {"system": system}}])
        assert found == expected


def test_a_row_of_litellm_without_its_duration(imported: Import) -> None:
    """An older proxy has only when a call began and ended, and keeps no request."""
    gone = {"request_duration_ms", "proxy_server_request"}
    older = {name: value for name, value in SPEND.items() if name not in gone}
    expected = becomes(structs.replace(SPENT, latency_s=2.5), parameters=None)
    assert imported("spend.json", [older]) == expected


def test_a_row_of_litellm_that_has_its_messages_in_the_request(imported: Import) -> None:
    """As proxies write it by now: `messages` is empty, and the request holds all."""
    newer = SPEND | {"messages": "{}", "proxy_server_request": json.dumps(REQUESTED)}
    assert imported("spend.json", [newer]) == becomes(SPENT)


def test_a_row_of_litellm_from_its_cache(imported: Import) -> None:
    """A hit of the proxy's cache cost nothing and took no time; the model's are not known."""
    hit = SPEND | {"cache_hit": "True", "spend": 0.0, "request_duration_ms": 3, "model": "mine"}
    call = structs.replace(SPENT, latency_s=None, cost_usd=None, model="mine", role="mine")
    assert imported("spend.json", [hit]) == becomes(call)


@pytest.mark.parametrize(
    "lost", [("prompt_tokens", "completion_tokens"), ("prompt_tokens",), ("completion_tokens",)]
)
def test_tokens_that_nobody_counted_make_no_call_free(
    imported: Import, lost: tuple[str, ...]
) -> None:
    """A stream without usage has zeros throughout; an answered request read and wrote something."""
    row = SPEND | {"spend": 0.0} | dict.fromkeys((*lost, "total_tokens"), 0)
    [call] = imported("spend.json", [row], "--price", "gpt-4o-mini-2024-07-18=1,2").calls
    assert call.cost_usd is None
    [counted] = imported(
        "spend.json", [SPEND | {"spend": 0.0}], "--price", "gpt-4o-mini-2024-07-18=1,2"
    ).calls
    assert counted.cost_usd == pytest.approx(57e-6 + 18e-6)


def test_a_failed_row_of_litellm(imported: Import) -> None:
    """As the proxy logs a failure: status, and `error_information` in the metadata."""
    about = {
        "error_code": "429",
        "error_class": "RateLimitError",
        "llm_provider": "openai",
        "traceback": "...",
        "error_message": "litellm.RateLimitError: slow down",
    }
    failed = SPEND | {
        "status": "failure",
        "response": {},
        "spend": 0.0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "metadata": {"status": "failure", "error_information": about},
    }
    call = Call(
        round=1,
        role=str(SPEND["model"]),
        model=str(SPEND["model"]),
        output_tokens=0,
        latency_s=1.834,
        error=CallError(type="RateLimitError", message="litellm.RateLimitError: slow down"),
    )
    assert imported("spend.json", [failed]) == becomes(call)


OBSERVATION = {
    "id": "f3b1",
    "trace_id": "9a61",
    "project_id": "clx",
    "environment": "default",
    "type": "GENERATION",
    "parent_observation_id": "77aa",
    "start_time": "2026-01-31 12:00:00.000000",
    "end_time": "2026-01-31 12:00:02.250000",
    "completion_start_time": "2026-01-31 12:00:00.700000",
    "name": "answer",
    "metadata": {},
    "level": "DEFAULT",
    "status_message": "",
    "version": "",
    "input": json.dumps(MESSAGES),
    "output": json.dumps(REPLY),
    "provided_model_name": "gpt-4o-mini",
    "internal_model_id": "clxm",
    "model_parameters": json.dumps(
        {"temperature": 0.3, "max_tokens": "256", "top_p": 0.9, "frequency_penalty": 0}
    ),
    "usage_details": {"input": 40, "input_cached_tokens": 17, "output": 7, "output_reasoning": 2}
    | {"total": 66},
    "cost_details": {"input": 0.0001, "output": 0.00003, "total": 0.00013},
    "total_cost": 0.00013,
    "latency": 2.251,
    "time_to_first_token": 0.7,
    "helpfulness": 0.75,
}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_row_of_langfuse(imported: Import, form: str) -> None:
    """As the blob storage export field reference of langfuse.com has it: USD, seconds.

    Tokens from a cache and of reasoning stand beside the others. The score is a column, as in
    exports from the user interface.
    """
    call = Call(
        round=1,
        role="gpt-4o-mini",
        model="gpt-4o-mini",
        answer="1000",
        text=SAID,
        correct=True,
        score=0.75,
        input_tokens=57,
        output_tokens=9,
        latency_s=2.25,
        cost_usd=0.00013,
        extra={"cached_tokens": 17, "reasoning_tokens": 2},
    )
    assert imported(f"o.{form}", [OBSERVATION], "--score", "helpfulness") == becomes(call)


def test_a_row_of_langfuse_from_its_interface(imported: Import) -> None:
    """As `ObservationsView` of Langfuse's API: seconds, `calculatedTotalCost` in USD.

    Langfuse's wrapper of OpenAI's client writes a limit that was not set as infinite, and tools
    beside the messages. What failed is no answer, whatever was said until then.
    """
    row = {
        "id": "f3b1",
        "traceId": "9a61",
        "type": "GENERATION",
        "startTime": "2026-01-31T12:00:00.000Z",
        "endTime": None,
        "model": "gpt-4o-mini",
        "modelParameters": {"temperature": "0.3", "max_tokens": "Infinity", "top_p": 0.9},
        "input": {"messages": MESSAGES, "tools": [{"type": "function"}]},
        "output": REPLY,
        "usage": {"unit": "TOKENS", "input": 57, "output": 9, "total": 66},
        "calculatedInputCost": 0.0001,
        "calculatedOutputCost": 0.00003,
        "calculatedTotalCost": 0.00013,
        "latency": 2.251,
        "level": "ERROR",
        "statusMessage": "cut off",
        "scores": [{"name": "other", "value": 1}, {"name": "helpfulness", "value": 0.25}],
    }
    call = Call(
        round=1,
        role="gpt-4o-mini",
        model="gpt-4o-mini",
        input_tokens=57,
        output_tokens=9,
        latency_s=2.251,
        cost_usd=0.00013,
        error=CallError(type="error", message="cut off"),
    )
    tools = '"tools":[{"type":"function"}]'
    expected = becomes(call, parameters=f'{{"temperature":0.3,{tools},"top_p":0.9}}')
    assert imported("o.json", [row], "--score", "helpfulness") == expected


REQUEST = {
    "custom_id": "request-1",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {
        "model": "gpt-4o-mini",
        "messages": MESSAGES,
        "temperature": 0.3,
        "max_completion_tokens": 256,
        "top_p": 0.9,
        "tools": [],
        "seed": 11,
    },
}
OUTPUT = {
    "id": "batch_req_123",
    "custom_id": "request-1",
    "response": {
        "status_code": 200,
        "request_id": "req_123",
        "body": {
            "id": "chatcmpl-123",
            "object": "chat.completion",
            "created": 1711652795,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [{"index": 0, "message": REPLY, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 57, "completion_tokens": 9, "total_tokens": 66},
        },
    },
    "error": None,
}


def test_a_line_of_openais_batch(imported: Import) -> None:
    """As `BatchRequestOutput` and `BatchRequestInput` of OpenAI's API, with a price for its tokens.

    57 tokens at $0.075 and 9 at $0.30 per million are 0.000006975 USD.
    """
    Path("in.jsonl").write_text(json.dumps(REQUEST))
    price = ("--requests", "in.jsonl", "--price", "gpt-4o-mini=0.075,0.3")
    call = Call(
        round=1,
        role="gpt-4o-mini",
        model="gpt-4o-mini",
        answer="1000",
        text=SAID,
        input_tokens=57,
        output_tokens=9,
        cost_usd=0.000006975,
    )
    assert imported("out_.jsonl", [OUTPUT], *price) == becomes(call)


@pytest.mark.parametrize("status", [400, 404, 429, 500])
def test_a_line_of_a_batch_that_was_refused_is_no_answer(imported: Import, status: int) -> None:
    """A line of the error file; its body has an error, and some servers put a text beside it."""
    error = {"message": "the request was refused", "type": "invalid_request_error", "code": None}
    body = {"error": error, "choices": [{"index": 0, "message": REPLY}], "usage": {}}
    refused = OUTPUT | {"response": {"status_code": status, "request_id": "r", "body": body}}
    Path("in.jsonl").write_text(json.dumps(REQUEST))
    call = Call(
        round=1,
        role="gpt-4o-mini",
        model="gpt-4o-mini",
        error=CallError(type="invalid_request_error", message="the request was refused"),
    )
    found = imported("e.jsonl", [refused], "--requests", "in.jsonl")
    assert found == becomes(call)


@pytest.mark.parametrize("status", [400, 429, 503])
def test_the_status_of_a_line_alone_says_that_it_failed(imported: Import, status: int) -> None:
    """A proxy of the interface may answer 4xx with a text and no error beside it."""
    response = OUTPUT["response"]
    assert isinstance(response, dict)
    refused = OUTPUT | {"response": response | {"status_code": status}}
    Path("in.jsonl").write_text(json.dumps(REQUEST))
    call = Call(
        round=1,
        role="gpt-4o-mini",
        model="gpt-4o-mini",
        error=CallError(type=f"status {status}", message="no message"),
    )
    found = imported("e.jsonl", [refused], "--requests", "in.jsonl")
    assert found == becomes(call)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"messages": [USER]}, {"choices": [{"message": REPLY}]}),
        ({"input": ASKED}, {"output": [{"type": "reasoning"}, {"type": "message", **REPLY}]}),
        ({"prompt": ASKED}, {"choices": [{"text": SAID}, {"text": "1"}]}),
        ([{"type": "text", "text": ASKED}], {"output_text": SAID}),
        ({"input": [USER]}, {"content": [{"type": "text", "text": SAID}]}),
    ],
)
def test_prompts_and_replies_of_every_interface(
    imported: Import, asked: object, said: object
) -> None:
    """As chat completions, responses, completions and Anthropic's messages have them."""
    row = OBSERVATION | {"input": asked, "output": said}
    trace = imported("o.json", [row])
    (call,) = trace.calls
    assert (trace.question, call.text, call.answer) == (ASKED, SAID, "1000")
