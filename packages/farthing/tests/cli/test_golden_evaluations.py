"""One row of evaluations' real output, every field with its unit, and the whole trace it becomes.

No two numbers of a row are alike, so that a field or a unit that is taken for another is noticed.
"""

import json
from collections.abc import Callable
from typing import Any

from msgspec import structs

from farthing.traces.base import Call, Trace
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


RESULT = {
    "id": "e0c7",
    "description": "grams",
    "promptIdx": 0,
    "testIdx": 0,
    "testCase": {
        "vars": {"q": ASKED},
        "assert": [{"type": "contains", "value": "1000"}, {"type": "latency", "threshold": 5000}],
    },
    "promptId": "ab12",
    "provider": {"id": "openai:gpt-4o-mini", "label": "small"},
    "prompt": {"raw": json.dumps(MESSAGES), "label": "p"},
    "vars": {"q": ASKED},
    "response": {
        "output": SAID,
        "tokenUsage": {"total": 66, "prompt": 57, "completion": 9, "cached": 0, "numRequests": 1},
        "cached": False,
        "cost": 0.00014,
        "finishReason": "stop",
    },
    "error": None,
    "failureReason": 0,
    "success": True,
    "score": 0.75,
    "latencyMs": 1834,
    "gradingResult": {
        "pass": True,
        "score": 0.75,
        "reason": "All assertions passed",
        "componentResults": [{"pass": True, "score": 1, "reason": "contains"}],
    },
    "namedScores": {"grams": 0.25},
    "cost": 0.00013,
    "metadata": {},
    "tokenUsage": {"total": 166, "prompt": 157, "completion": 19, "cached": 0},
}
RESULTED = Call(
    round=1,
    role="small",
    model="small",
    answer="1000",
    text=SAID,
    correct=True,
    score=0.75,
    input_tokens=57,
    output_tokens=9,
    latency_s=1.834,
    cost_usd=0.00013,
)


CONFIGURED = {
    "providers": [
        "openai:gpt-4o-mini",
        {
            "id": "openai:gpt-4o-mini",
            "label": "small",
            "config": {"temperature": 0.3, "max_tokens": 256, "top_p": 0.9, "seed": 11},
        },
        {"id": "openai:gpt-4o-mini", "label": "hot", "config": {"temperature": 1.5}},
    ],
    "prompts": ["file://grams.json"],
}


def document(result: dict[str, Any]) -> dict[str, Any]:
    summary = {"version": 3, "timestamp": "2026-01-31T12:00:00Z", "results": [result], "stats": {}}
    return {"evalId": "eval-1", "results": summary, "config": CONFIGURED, "shareableUrl": None}


def test_a_result_of_promptfoo(imported: Import) -> None:
    """As `EvaluateResult` in promptfoo's `src/types/index.ts`: USD, milliseconds.

    The tokens of a result count those of its graders too; those of its response are the call's.
    """
    assert imported("output.json", document(RESULT)) == becomes(RESULTED)


def test_a_result_of_promptfoo_with_parameters_of_its_own(imported: Import) -> None:
    """Newer results carry their provider's configuration; a prompt's own, and a test's, go before.

    A limit that neither names is promptfoo's own, which the output does not say.
    """
    provider = {"id": "openai:gpt-4o-mini", "label": "small"}
    configured = provider | {"config": {"temperature": 0.7, "top_p": 0.8}}
    prompt = {"raw": json.dumps(MESSAGES), "label": "p", "config": {"temperature": 0.2}}
    found = imported("output.json", document(RESULT | {"provider": configured, "prompt": prompt}))
    expected = '{"max_tokens":null,"temperature":0.2,"top_p":0.8}'
    assert found == becomes(RESULTED, parameters=expected)


def test_a_result_of_promptfoo_of_one_of_two_providers_of_a_name(imported: Import) -> None:
    """The output does not say which of them replied, so that its parameters are not known."""
    cold, warm = ({"id": "openai:gpt-4o-mini", "config": {"temperature": at}} for at in (0, 0.9))
    unnamed = RESULT | {"provider": {"id": "openai:gpt-4o-mini", "label": ""}}
    call = structs.replace(RESULTED, model="openai:gpt-4o-mini", role="openai:gpt-4o-mini")
    for one, other, expected in (
        (cold, warm, None),
        (cold, cold, '{"max_tokens":null,"temperature":0}'),
        (cold, warm | {"label": "warm"}, '{"max_tokens":null,"temperature":0}'),
    ):
        several = document(unnamed) | {"config": {"providers": [one, other]}}
        assert imported("output.json", several) == becomes(call, parameters=expected)


def test_a_named_score_of_promptfoo(imported: Import) -> None:
    """A named score is the grade alone: passing all assertions does not make it right."""
    found = imported("output.json", document(RESULT), "--score", "grams")
    assert found == becomes(structs.replace(RESULTED, score=0.25, correct=False))


def test_a_result_of_promptfoo_from_its_cache(imported: Import) -> None:
    """A reply from the cache says its tokens in all, took no time and cost nothing now."""
    response = {"output": SAID, "tokenUsage": {"total": 66, "cached": 66}, "cached": True}
    found = imported("output.json", document(RESULT | {"response": response, "cost": 0}))
    unknown = dict.fromkeys(("input_tokens", "output_tokens", "latency_s", "cost_usd"))
    assert found == becomes(structs.replace(RESULTED, **unknown))


LOG = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "grams",
        "task_id": "x",
        "model": "openai/gpt-4o-mini",
        "model_generate_config": {"temperature": 0.7, "top_p": 0.9},
        "created": "2026-01-31T12:00:00+00:00",
    },
    "plan": {
        "name": "plan",
        "steps": [{"solver": "system_message"}, {"solver": "generate"}],
        "config": {"max_retries": 5, "temperature": 0.3, "max_tokens": 256, "seed": 11},
    },
}
SAMPLE = {
    "id": 7,
    "epoch": 1,
    "input": MESSAGES[1:],
    "target": ["1000", "1,000"],
    "messages": [*MESSAGES, REPLY],
    "output": {
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"message": REPLY, "stop_reason": "stop"}],
        "completion": SAID,
        "usage": {"input_tokens": 41, "output_tokens": 8, "total_tokens": 49},
        "time": 1.5,
    },
    "scores": {
        "match": {"value": "P", "answer": "1000", "explanation": SAID, "metadata": {}},
        "length": {"value": 12.0},
    },
    "model_usage": {
        "openai/gpt-4o": {"input_tokens": 500, "output_tokens": 60},
        "openai/gpt-4o-mini": {
            "input_tokens": 40,
            "output_tokens": 9,
            "total_tokens": 66,
            "input_tokens_cache_write": 6,
            "input_tokens_cache_read": 11,
            "reasoning_tokens": 3,
            "total_cost": 0.00013,
        },
    },
    "total_time": 4.5,
    "working_time": 1.75,
    "uuid": "u",
}
SAMPLED = Call(
    round=1,
    role="openai/gpt-4o-mini",
    model="openai/gpt-4o-mini",
    answer="1000",
    text=SAID,
    correct=True,
    score=0.5,
    input_tokens=57,
    output_tokens=9,
    latency_s=1.75,
    cost_usd=0.00013,
    extra={"cached_tokens": 11.0, "cache_writes": 6.0, "reasoning_tokens": 3.0},
)


def test_a_sample_of_inspect(imported: Import) -> None:
    """As `EvalLog`, `EvalSample` and `ModelUsage` of inspect_ai: USD, seconds, tokens by kind.

    Of the times a sample took, the working time leaves out waiting for limits of rates. Usage of
    another model, of a grader, is not the call's. A solver put the system prompt before the input,
    as the messages show; the plan's parameters go before those of the model.
    """
    expected = becomes(SAMPLED, id="grams-7", gold=["1000", "1,000"], group="grams")
    assert imported("log.json", LOG | {"samples": [SAMPLE]}) == expected
    (below,) = imported("log.json", LOG | {"samples": [SAMPLE]}, "--threshold", 0.6).calls
    assert (below.score, below.correct) == (0.5, False)


def test_a_sample_of_inspect_with_choices(imported: Import) -> None:
    """The solver writes the question anew: nobody knows which of the words stood around it."""
    template = f"Answer with a letter.\n\n{ASKED}\n\nA) 1000\nB) 100"
    chosen = SAMPLE | {
        "input": ASKED,
        "choices": ["1000", "100"],
        "messages": [MESSAGES[0], USER | {"content": template}, REPLY],
    }
    expected = becomes(
        SAMPLED,
        id="grams-7",
        question=f"{ASKED}\nA) 1000\nB) 100",
        history=None,
        gold=["1000", "1,000"],
        group="grams",
    )
    assert imported("log.json", LOG | {"samples": [chosen]}) == expected
