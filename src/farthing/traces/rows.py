"""A trace as rows of SQL tables, and back."""

import json
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from farthing.money import nano_from_usd
from farthing.traces.base import Call, CallError, Trace

_COPIED = (
    "round",
    "role",
    "model",
    "answer",
    "correct",
    "text",
    "verdict",
    "confidence",
    "uncertainty",
    "input_tokens",
    "output_tokens",
    "tool_calls",
    "latency_s",
    "cost_usd",
    "largest_cost_usd",
    "asked_probability",
    "f1",
    "score",
)
"""Fields of a call that have a column of the same name."""

_copied = attrgetter(*_COPIED)

_CONTEXT = ("system_prompt", "history", "options", "parameters", "missing_because", "requests")
"""Fields of a trace that have a column of the same name."""

_context = attrgetter(*_CONTEXT)

INSERT_TRACE = """
INSERT INTO traces (
    position, id, task, stratum, split, question, gold, independent, truncated, import,
    system, system_prompt, history, options, parameters, missing_because, requests
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

INSERT_CALL = """
INSERT INTO calls (
    round, role, model, answer, correct, text, verdict, confidence, uncertainty, input_tokens,
    output_tokens, tool_calls, latency_s, cost_usd, largest_cost_usd, asked_probability, f1, score,
    cost_nano, largest_cost_nano, error_type, error_message, extra, trace, position
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

SELECT_TRACES = """
SELECT position, id, task, stratum, split, question, gold, independent, truncated,
    system_prompt, history, options, parameters, missing_because, requests
FROM traces
WHERE (:task IS NULL OR task = :task) AND (:stratum IS NULL OR stratum = :stratum)
    AND (:split IS NULL OR split = :split)
ORDER BY position"""

SELECT_CALLS = """
SELECT round, role, model, answer, correct, text, verdict, confidence, uncertainty, input_tokens,
    output_tokens, tool_calls, latency_s, cost_usd, largest_cost_usd, asked_probability, f1, score,
    error_type, error_message, extra
FROM calls WHERE trace = ? ORDER BY position"""


def trace_row(position: int, trace: Trace, log: int | None, system: int | None) -> tuple[Any, ...]:
    """Return what `INSERT_TRACE` takes: of which import the trace is, and what it was made with."""
    return (
        position,
        trace.id,
        trace.task,
        trace.group,
        trace.split,
        trace.question,
        json.dumps(trace.gold, ensure_ascii=False),
        trace.independent,
        trace.truncated,
        log,
        system,
        *_context(trace),
    )


def call_row(trace: int, place: int, call: Call) -> tuple[Any, ...]:
    """Return what `INSERT_CALL` takes; `trace` and `place` are the two halves of the key.

    Raises:
        ValueError: a number is not finite.
        OverflowError: a number is beyond 64 bits.
    """
    nano = [
        None if usd is None else nano_from_usd(usd)
        for usd in (call.cost_usd, call.largest_cost_usd)
    ]
    kind, message = (call.error.type, call.error.message) if call.error else (None, None)
    extra = json.dumps(call.extra, ensure_ascii=False, allow_nan=False) if call.extra else None
    return (*_copied(call), *nano, kind, message, extra, trace, place)


def trace_from(row: list[Any], calls: Iterable[tuple[Any, ...]]) -> Trace:
    """Rebuild a trace from its row of `SELECT_TRACES`, less the position, and its calls."""
    name, task, group, split, question, gold, independent, truncated, *context = row
    return Trace(
        id=name,
        question=question,
        gold=json.loads(gold),
        calls=[_call_from(call) for call in calls],
        task=task,
        group=group,
        split=split,
        independent=bool(independent),
        truncated=bool(truncated),
        **dict(zip(_CONTEXT, context, strict=True)),
    )


def _call_from(row: tuple[Any, ...]) -> Call:
    *values, kind, message, extra = row
    fields = dict(zip(_COPIED, values, strict=True))
    for flag in ("correct", "verdict"):
        fields[flag] = None if fields[flag] is None else bool(fields[flag])
    return Call(
        **fields,
        error=None if kind is None else CallError(kind, message),
        extra=json.loads(extra) if extra else {},
    )
