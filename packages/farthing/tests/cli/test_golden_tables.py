"""One row of each table's real form, every field with its unit, and the whole trace it becomes.

No two numbers of a row are alike, so that a field or a unit that is taken for another is noticed.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farthing.traces.base import Call, CallError, Trace
from farthing.traces.importers.read import short_hash
from farthing.traces.jsonl import read_traces

Farthing = Callable[..., Any]
Import = Callable[..., Trace]
ASKED = "How many grams are in a kilogram?"
SAID = "There are 1000 grams.\nAnswer: 1000"
SYSTEM = "Answer with a number."
HISTORY = "user: How many metres are in a mile?\n\nassistant: 1609"
PARAMETERS = '{"max_tokens":256,"temperature":0.3,"top_p":0.9}'


@pytest.mark.slow
def test_a_row_of_a_table(imported: Import) -> None:
    """Every column that a table may have, as people head them in a spreadsheet."""
    row = {
        "ID": "q7",
        "Question": ASKED,
        "Model": "small",
        "Answer": "1000 g",
        "Response": SAID,
        "Correct?": "no",
        "Score": 0.75,
        "Gold": '["1000", "1,000"]',
        "Cost (cents)": "0.013",
        "Input tokens": 57,
        "Output tokens": 9,
        "Latency (ms)": 1834,
        "Confidence": 0.625,
        "Uncertainty": 1.375,
        "Asked probability": 0.4375,
        "Missing because": "chance",
        "Subject": "units",
        "Split": "calibrate",
        "System prompt": SYSTEM,
        "Temperature": "0.3",
        "Max tokens": 256,
        "Top P": 0.9,
    }
    call = Call(
        round=1,
        role="small",
        model="small",
        answer="1000 g",
        text=SAID,
        correct=False,
        score=0.75,
        input_tokens=57,
        output_tokens=9,
        latency_s=1.834,
        cost_usd=0.00013,
        confidence=0.625,
        uncertainty=1.375,
        asked_probability=0.4375,
    )
    assert imported("calls.csv", [row]) == Trace(
        id="q7",
        question=ASKED,
        gold=["1000", "1,000"],
        task="gsm8k",
        group="units",
        split="calibrate",
        independent=True,
        system_prompt=SYSTEM,
        history="",
        parameters=PARAMETERS,
        missing_because="chance",
        calls=[call],
    )


def test_a_row_of_a_table_that_has_messages(imported: Import) -> None:
    """A cell with a conversation says what stood before the question; one object, all parameters.

    Of all parameters what is left out is as providers have it; a column of its own goes before.
    """
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "How many metres are in a mile?"},
        {"role": "assistant", "content": "1609"},
        {"role": "user", "content": ASKED},
    ]
    row = {
        "prompt": messages,
        "llm": "small",
        "reply": SAID,
        "Model parameters": {"temperature": 0.7, "maxTokens": 256, "top_p": 1, "seed": 11},
        "temperature": 0.3,
    }
    call = Call(round=1, role="small", model="small", answer="1000", text=SAID)
    talk = f"{HISTORY}\n\nuser: {ASKED}"
    assert imported("calls.csv", [row]) == Trace(
        id=short_hash(f"system: {SYSTEM}\n\n{talk}"),
        question=talk,
        task="gsm8k",
        independent=True,
        system_prompt=SYSTEM,
        history=HISTORY,
        parameters='{"max_tokens":256,"temperature":0.3}',
        calls=[call],
    )


def test_a_line_of_our_own(farthing: Farthing) -> None:
    """Every field of the interchange form; what is stored and exported is what was read."""
    called = {
        "round": 1,
        "role": "small",
        "model": "gpt-4o-mini",
        "answer": "1000",
        "correct": True,
        "text": SAID,
        "asked_probability": 0.375,
        "verdict": False,
        "confidence": 0.625,
        "uncertainty": 1.375,
        "input_tokens": 57,
        "output_tokens": 9,
        "tool_calls": 3,
        "latency_s": 1.834,
        "cost_usd": 0.00013,
        "largest_cost_usd": 0.0007,
        "f1": 0.9,
        "score": 0.75,
        "depth": 4.0,
    }
    error = {"type": "timeout", "message": "no reply"}
    question = {"id": "q7", "question": ASKED, "gold": ["1000", "1,000"], "task": "gsm8k"}
    about = {"group": "units", "split": "calibrate", "independent": True, "truncated": True}
    many = {"requests": 3, "cluster": "talk 7"}
    asked = {"system_prompt": SYSTEM, "history": HISTORY, "options": "A) 1000\nB) 100"}
    asked |= {"parameters": PARAMETERS, "missing_because": "chance"}
    failed = {"round": 1, "role": "large", "latency_s": 2.5, "error": error}
    Path("own.jsonl").write_text(
        json.dumps({**question, **about, **many, **asked, "calls": [called, failed]})
    )
    assert farthing("traces", "import", "own.jsonl", "--store", "a.db").code == 0
    assert farthing("traces", "export", "--store", "a.db", "--out", "out.jsonl").code == 0
    small = Call(
        round=1,
        role="small",
        model="gpt-4o-mini",
        answer="1000",
        correct=True,
        text=SAID,
        asked_probability=0.375,
        verdict=False,
        confidence=0.625,
        uncertainty=1.375,
        input_tokens=57,
        output_tokens=9,
        tool_calls=3,
        latency_s=1.834,
        cost_usd=0.00013,
        largest_cost_usd=0.0007,
        f1=0.9,
        score=0.75,
        extra={"depth": 4.0},
    )
    large = Call(
        round=1, role="large", latency_s=2.5, error=CallError(type="timeout", message="no reply")
    )
    expected = Trace(
        id="q7",
        question=ASKED,
        gold=["1000", "1,000"],
        task="gsm8k",
        group="units",
        split="calibrate",
        independent=True,
        truncated=True,
        system_prompt=SYSTEM,
        history=HISTORY,
        options="A) 1000\nB) 100",
        parameters=PARAMETERS,
        missing_because="chance",
        requests=3,
        cluster="talk 7",
        calls=[small, large],
    )
    assert read_traces("own.jsonl") == read_traces("out.jsonl") == [expected]
    said = msgspec.to_builtins(expected)  # without what is as it is by default
    assert {*said} == {*Trace.__struct_fields__}
    of_thoughts = {"ended"}
    named = {field for call in said["calls"] for field in call}
    assert named == {*Call.__struct_fields__} - of_thoughts
