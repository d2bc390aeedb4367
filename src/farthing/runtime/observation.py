"""What a policy sees of a question under way: the calls so far, laid out like its traces."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from farthing.bundle import Origin
from farthing.traces.arrays import NO_ANSWER, NO_SPLIT, SIGNALS, Replies, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.grading import answer_codes
from farthing.traces.text_signals import OF_ANSWER, OF_QUESTION, read_answer, read_question

Array = TypeVar("Array", bound=NDArray[Any])

CASCADE = ("model",)
"""The roles of a pool that is played one model after another."""


def observed(trace: Trace, origin: Origin) -> TraceArrays:
    """Lay the rounds so far out as one question of the full horizon; what is to come is empty.

    Decisions of round t depend on rounds 1..t alone, so a policy scores these as it scores the
    whole recorded trace. Grades are left out.

    Args:
        trace: the calls so far, at least one; of a pool in the order in which they were made.
        origin: the shape of the traces that the policy was trained on.

    Returns:
        Arrays of one question, [1, T, L]; `recorded` counts the rounds so far.
    """
    calls = [structs.replace(call, correct=False) for call in trace.calls]
    arrays = assemble([structs.replace(trace, calls=calls, truncated=True)])
    if origin.roles == CASCADE:
        arrays = _in_turn(arrays, [call.role for call in calls])
    names = {*SIGNALS, *arrays.signals} if origin.signals is None else origin.signals
    unknown = np.full(arrays.answer.shape, np.nan, dtype=np.float32)
    horizon = origin.horizon
    return replace(
        arrays,
        models=origin.models,
        answer=_later(arrays.answer, horizon, NO_ANSWER),
        correct=_later(arrays.correct, horizon, 0),
        cost_nano=_later(arrays.cost_nano, horizon, 0),
        largest_cost_nano=_later(arrays.largest_cost_nano, horizon, 0),
        signals={
            name: _later(arrays.signals.get(name, unknown), horizon, np.nan) for name in names
        },
        recorded=np.array([arrays.horizon], dtype=np.int16),
        replies={
            role: Replies(_later(r.action, horizon, -1), _later(r.cost_nano, horizon, 0))
            for role, r in arrays.replies.items()
        },
    )


def _in_turn(pool: TraceArrays, order: Sequence[str]) -> TraceArrays:
    """Lay the models of a pool out as rounds, [1, 1, L] to [1, L, 1], in the order of asking."""
    index = [pool.roles.index(role) for role in order]

    def turned(values: Array) -> Array:
        return values[:, :, index].swapaxes(1, 2)  # type: ignore[return-value]

    return replace(
        pool,
        roles=CASCADE,
        answer=turned(pool.answer),
        correct=turned(pool.correct),
        cost_nano=turned(pool.cost_nano),
        largest_cost_nano=turned(pool.largest_cost_nano),
        signals={name: turned(values) for name, values in pool.signals.items()},
        replies={},
    )


def _later(values: Array, horizon: int, empty: float) -> Array:
    """Extend [1, t, ...] to [1, horizon, ...]."""
    out = np.full((1, horizon, *values.shape[2:]), empty, dtype=values.dtype)
    out[:, : values.shape[1]] = values
    return out  # type: ignore[return-value]


@dataclass(frozen=True)
class Notes:
    """What single decisions about one question are based on, whatever is bought of it."""

    question: str
    roles: tuple[str, ...]
    horizon: int
    signals: tuple[str, ...]
    """The recorded numbers that the policy was trained on."""
    normalise: Callable[[str], str]
    """As the question's task normalises answers."""


def notes_of(question: str, origin: Origin, normalise: Callable[[str], str]) -> Notes:
    """Return the notes on a question that a policy of this origin is asked about."""
    names = (*SIGNALS, *OF_QUESTION, *OF_ANSWER) if origin.signals is None else origin.signals
    return Notes(question, origin.roles, origin.horizon, names, normalise)


def noted(
    notes: Notes, at: Sequence[int], calls: Sequence[Call]
) -> tuple[list[int], dict[str, list[float]]]:
    """Lay calls out as `Decider` reads them: as `observed` does, but in plain lists.

    Args:
        notes: about the question.
        at: [R] the place of each call, t * L + l for round t and role l.
        calls: [R]

    Returns:
        [T * L] codes of the answers, and signals by name; -1 and NaN where there is no call.
    """
    places = notes.horizon * len(notes.roles)
    answers = [NO_ANSWER] * places
    for place, code in zip(
        at, answer_codes([c.answer for c in calls], notes.normalise), strict=True
    ):
        answers[place] = code
    own = {name: [_signal(call, name) for call in calls] for name in notes.signals}
    signals = {}
    for name, values in zip(own, _as_stored(list(own.values())), strict=True):
        signals[name] = [math.nan] * places
        for place, value in zip(at, values, strict=True):
            signals[name][place] = value
    for name, number in zip(OF_QUESTION, read_question(notes.question), strict=True):
        if name in signals and number is not None:
            signals[name] = [number] * places
    return answers, signals


def on_offer(
    notes: Notes, answers: Sequence[int], signals: Mapping[str, Sequence[float]]
) -> TraceArrays:
    """Return what was noted as one question, [1, T, L], of which every call could still be made."""
    shape = (1, notes.horizon, len(notes.roles))
    return TraceArrays(
        ids=np.array([""]),
        roles=notes.roles,
        models=("",) * len(notes.roles),
        answer=np.array(answers, dtype=np.int16).reshape(shape),
        correct=np.zeros(shape, dtype=bool),
        cost_nano=np.ones(shape, dtype=np.int64),  # a call that costs nothing was never on offer
        signals={
            name: np.array(values, dtype=np.float32).reshape(shape)
            for name, values in signals.items()
        },
        group=np.array([-1], dtype=np.int32),
        group_names=(),
        split=np.array([NO_SPLIT], dtype=np.int8),
        recorded=np.array([notes.horizon], dtype=np.int16),
        independent=np.array([True]),
    )


def _signal(call: Call, name: str) -> float | None:
    if name in OF_ANSWER:
        return read_answer(call.answer)[OF_ANSWER.index(name)]
    if name in SIGNALS:
        value: float | None = getattr(call, name)
        return value
    return call.extra.get(name)


def _as_stored(rows: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Return numbers as `TraceArrays` has them: in single precision, NaN for none."""
    largest = np.finfo(np.float32).max
    values = np.clip(np.array(rows, dtype=np.float64), -largest, largest)
    stored: list[list[float]] = values.astype(np.float32).tolist()
    return stored
