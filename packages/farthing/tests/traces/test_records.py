"""Traces from rows in memory: every field in its place, and no contradiction let through."""

from typing import Any

import pytest

from farthing.errors import InputError
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.files import from_records

ROW: dict[str, Any] = {
    "id": "q7",
    "question": "How many grams are in a kilogram?",
    "gold": ["1000", "1,000"],
    "task": "gsm8k",
    "group": "units",
    "split": "calibrate",
    "independent": True,
    "truncated": False,
    "round": 2,
    "role": "base",
    "model": "gpt-4o-mini",
    "answer": "1000",
    "correct": True,
    "text": "Answer: 1000",
    "verdict": True,
    "confidence": 0.625,
    "uncertainty": 1.375,
    "input_tokens": 57,
    "output_tokens": 9,
    "tool_calls": 3,
    "latency_s": 1.834,
    "cost_usd": 0.00013,
    "largest_cost_usd": 0.0007,
    "error": None,
    "f1": 0.9,
    "score": 0.75,
    "depth": 4.0,
}


def test_a_row_says_exactly_this() -> None:
    call = Call(
        round=2,
        role="base",
        model="gpt-4o-mini",
        answer="1000",
        correct=True,
        text="Answer: 1000",
        verdict=True,
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
    failure = {"type": "timeout", "message": "no reply"}
    failed = {
        "id": "q7",
        "model": "large",
        "role": "base",
        "answer": None,
        "error": failure,
        "confidence": float("nan"),
    }
    other = Call(
        round=1, role="base", model="large", error=CallError(type="timeout", message="no reply")
    )
    assert from_records([ROW, failed]) == [
        Trace(
            id="q7",
            question="How many grams are in a kilogram?",
            gold=["1000", "1,000"],
            task="gsm8k",
            group="units",
            split="calibrate",
            independent=True,
            calls=[call, other],
        )
    ]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("split", ("train", "test")),
        ("group", ("sums", "words")),
        ("gold", (["4"], ["5"])),
        ("question", ("2 + 2?", "2 + 3?")),
        ("task", ("text", "gsm8k")),
    ],
)
def test_rows_of_a_question_do_not_contradict_each_other(key: str, values: tuple[Any, Any]) -> None:
    rows = [
        {"id": "q1", "model": model, "answer": "4", key: value}
        for model, value in zip(("small", "large"), values, strict=True)
    ]
    with pytest.raises(InputError, match=f"record 2: question 'q1' has another {key} in a record"):
        from_records(rows)
    said = [rows[0] | {key: None}, rows[1]]
    (trace,) = from_records(said)
    assert getattr(trace, key) == values[1]


@pytest.mark.parametrize(
    ("written", "usd"),
    [("$0.0001525", 0.0001525), ("0.25 USD", 0.25), ("1,234.50", 1234.5), ("", None)],
)
def test_an_amount_is_read_as_a_table_reads_it(written: str, usd: float | None) -> None:
    costs = {"cost_usd": written, "largest_cost_usd": written}
    row = {"id": "q", "model": "small", **costs}
    question = {"id": "q", "calls": [{"round": 1, "role": "small", "answer": "4", **costs}]}
    for record in (row, question):
        ((call,),) = (trace.calls for trace in from_records([record]))
        assert (call.cost_usd, call.largest_cost_usd) == (usd, usd)


def test_an_amount_that_may_be_another_is_refused() -> None:
    called = {"round": 1, "role": "small", "answer": "4"}
    row = {"id": "q", "model": "small"}
    unclear = {"cost_usd": "0,002"}
    for records, where in (
        ([row, row | {"id": "r"} | unclear], "cost_usd"),
        ([{"id": "q", "calls": [called]}, {"id": "r", "calls": [called, called | unclear]}],
         "calls[1].cost_usd"),
    ):  # fmt: skip
        with pytest.raises(InputError) as refusal:
            from_records(records)
        assert f"records, line 2, {where}: is '0,002'; it must be a number" in str(refusal.value)
