"""Recorded questions as records and as a data frame: what people look at."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import structs

from farthing.errors import InputError
from farthing.money import usd_from_nano
from farthing.traces.arrays import NO_ANSWER, SPLITS, TraceArrays
from farthing.traces.base import Call, Trace
from farthing.traces.files import OF_QUESTION
from farthing.traces.pool import cascade

if TYPE_CHECKING:
    import pandas as pd

_UNSAID = {name: getattr(Trace(id="", calls=[]), name) for name in OF_QUESTION}
"""What a record has of a question where nothing is said of it."""
_MEASURED = ("confidence", "uncertainty", "latency_s")
_COUNTED = ("input_tokens", "output_tokens", "tool_calls")


def record_of(arrays: TraceArrays, i: int) -> Trace:
    """Return a question of which only arrays are kept; its answers are numbers, equal ones equal.

    Made-up questions have no texts of answers.
    """
    short, cuts = bool(arrays.recorded[i] < arrays.horizon), arrays.cuts
    if cuts:
        arrays, i = cascade(arrays.take(np.array([i]))), 0
    before = _end(arrays, i) if cuts else arrays.horizon
    made = arrays.made[i] & (np.arange(arrays.horizon) < before)[:, None]
    rounds, roles = np.nonzero(made)
    group, split = int(arrays.group[i]), int(arrays.split[i])
    calls = [_call(arrays, i, t, k) for t, k in zip(rounds.tolist(), roles.tolist(), strict=True)]
    if cuts and calls:
        calls[-1] = structs.replace(calls[-1], ended=not short)
    return Trace(
        id=str(arrays.ids[i]),
        question="" if arrays.question is None else arrays.question[i],
        calls=calls,
        group=None if group < 0 else arrays.group_names[group],
        split=None if split < 0 else SPLITS[split],  # type: ignore[arg-type]
        independent=bool(arrays.independent[i]),
        truncated=short,
    )


def _end(turns: TraceArrays, i: int) -> int:
    """Return after how many cuts a thought ended: those that follow add nothing to it."""
    added = turns.cost_nano[i, :, 0] > 0
    return int(np.flatnonzero(added)[-1]) + 1 if added.any() else turns.horizon


def _call(arrays: TraceArrays, i: int, t: int, k: int) -> Call:
    answer = int(arrays.answer[i, t, k])
    priced = arrays.unpriced.get(arrays.roles[k], 0) < 1
    signals = {n: float(v[i, t, k]) for n, v in arrays.signals.items() if v[i, t, k] == v[i, t, k]}
    known: dict[str, Any] = {name: signals[name] for name in _MEASURED if name in signals}
    known |= {name: int(signals[name]) for name in _COUNTED if name in signals}
    return Call(
        round=t + 1,
        role=arrays.roles[k],
        model=arrays.models[k] or None,
        answer=None if answer == NO_ANSWER else str(answer),
        correct=None if arrays.ungraded[i, t, k] else bool(arrays.correct[i, t, k]),
        cost_usd=usd_from_nano(int(arrays.cost_nano[i, t, k])) if priced else None,
        **known,
    )


def frame_of(arrays: TraceArrays, records: Sequence[Trace]) -> "pd.DataFrame":
    """Return one row a call; `correct` is as the question's task graded it, None where unknown.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - whoever asks for a frame has it
    except ModuleNotFoundError:
        raise InputError(
            "a data frame needs pandas, which is not installed: pip install pandas"
        ) from None
    rows = [
        _row(trace, call) | {"correct": _grade(arrays, i, *_place(arrays, call))}
        for i, trace in enumerate(records)
        for call in trace.calls
    ]
    frame = pd.DataFrame(rows)
    return frame.dropna(axis="columns", how="all")


def _place(arrays: TraceArrays, call: Call) -> tuple[int, int | None]:
    if arrays.cuts:
        return 0, call.round - 1
    found = arrays.roles.index(call.role) if call.role in arrays.roles else None
    return call.round - 1, found


def _grade(arrays: TraceArrays, i: int, t: int, k: int | None) -> bool | None:
    if k is None or t >= arrays.horizon or arrays.ungraded[i, t, k]:
        return None
    return bool(arrays.correct[i, t, k])


def _row(trace: Trace, call: Call) -> dict[str, Any]:
    about = {name: getattr(trace, name) for name in OF_QUESTION}
    about = {name: value for name, value in about.items() if value != _UNSAID[name]}
    said = msgspec.to_builtins(call)
    extra = said.pop("extra", {})
    return {"id": trace.id, **about, "model": call.role, **said, **extra}
