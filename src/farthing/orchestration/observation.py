"""What a policy sees of a question under way: the rounds so far, laid out like its traces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from farthing.policies.bundle import Origin
from farthing.traces.arrays import NO_ANSWER, SIGNALS, Replies, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace

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
        signals={name: turned(values) for name, values in pool.signals.items()},
        replies={},
    )


def _later(values: Array, horizon: int, empty: float) -> Array:
    """Extend [1, t, ...] to [1, horizon, ...]."""
    out = np.full((1, horizon, *values.shape[2:]), empty, dtype=values.dtype)
    out[:, : values.shape[1]] = values
    return out  # type: ignore[return-value]
