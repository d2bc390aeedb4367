"""What a policy sees of a question under way: the rounds so far, laid out like its traces."""

from collections.abc import Sequence

import numpy as np

from farthing.models.money import nano_from_usd
from farthing.policies.bundle import Origin
from farthing.traces.arrays import NO_ANSWER, SIGNALS, Replies, TraceArrays
from farthing.traces.assemble import reply_action
from farthing.traces.base import Call
from farthing.traces.grading import answer_codes, normaliser
from farthing.traces.shapes import is_reply

CASCADE = ("model",)
"""The roles of a pool that is played one model after another."""
_LARGEST = float(np.finfo(np.float32).max)


def observed(rounds: Sequence[Sequence[Call]], origin: Origin, task: str) -> TraceArrays:
    """Lay the rounds so far out as one question of the full horizon; what is to come is empty.

    Decisions of round t depend on rounds 1..t alone, so a policy scores these as it scores the
    whole recorded trace.

    Args:
        rounds: the calls of each round so far; in a cascade one model's call each.
        origin: the shape of the traces that the policy was trained on.
        task: decides when two answers are the same.

    Returns:
        Arrays of one question, [1, T, L].
    """
    shape = (1, origin.horizon, len(origin.roles))
    answer = np.full(shape, NO_ANSWER, dtype=np.int16)
    cost_nano = np.zeros(shape, dtype=np.int64)
    names = SIGNALS if origin.signals is None else origin.signals
    signals = {name: np.full(shape, np.nan, dtype=np.float32) for name in names}
    placed = [
        ((0, t, _column(call, origin)), call)
        for t, calls in enumerate(rounds)
        for call in calls
        if not is_reply(call.role)
    ]
    codes = answer_codes([call.answer for _, call in placed], normaliser(task))
    for (at, call), code in zip(placed, codes, strict=True):
        answer[at] = code
        cost_nano[at] = _cost_nano(call)
        for name in names:
            value = getattr(call, name) if name in SIGNALS else call.extra.get(name)
            if value is not None:
                signals[name][at] = np.clip(np.float64(value), -_LARGEST, _LARGEST)
    return TraceArrays(
        ids=np.array([""]),
        roles=origin.roles,
        models=origin.models,
        answer=answer,
        correct=np.zeros(shape, dtype=bool),
        cost_nano=cost_nano,
        signals=signals,
        group=np.array([-1], dtype=np.int32),
        group_names=(),
        split=np.array([-1], dtype=np.int8),
        recorded=np.array([len(rounds)], dtype=np.int16),
        independent=np.array([False]),
        replies=_replies(rounds, origin),
    )


def _column(call: Call, origin: Origin) -> int:
    return 0 if origin.roles == CASCADE else origin.roles.index(call.role)


def _replies(rounds: Sequence[Sequence[Call]], origin: Origin) -> dict[str, Replies]:
    shape = (1, origin.horizon)
    said = [(t, call) for t, calls in enumerate(rounds) for call in calls if is_reply(call.role)]
    replies = {
        call.role: Replies(np.full(shape, -1, dtype=np.int8), np.zeros(shape, dtype=np.int64))
        for _, call in said
    }
    for t, call in said:
        replies[call.role].action[0, t] = reply_action(call, origin.roles)
        replies[call.role].cost_nano[0, t] = _cost_nano(call)
    return replies


def _cost_nano(call: Call) -> int:
    return 0 if call.cost_usd is None else nano_from_usd(call.cost_usd)
