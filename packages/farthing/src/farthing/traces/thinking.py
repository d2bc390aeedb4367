"""The cuts of one thought: as ways to answer that stand side by side, and in turn.

Thinking up to a cut and answering there is a way to answer with a price of its own, that of the
whole thought so far. So the cuts of a question stand side by side, [n, 1, L], as the models of a
pool do, and the last one is the full thought. In turn, [n, L, 1], a cut costs what it adds. A
thought that ended before others says the same at every later cut, for nothing.

Who stops a thought at each cut, to see what it would answer, pays for these answers, and for
reading the thought again. Who thinks straight on pays for neither, so side by side they are left
out where calls say how much that is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing.traces.trace_kind import cut_name

N = TypeVar("N", np.int64, np.float32)
ADDED_UP = ("input_tokens", "output_tokens", "tool_calls", "latency_s")
"""Signals of which a file has what a cut adds."""
THOUGHT = ("thought",)
"""The role of cuts in turn."""


def is_thought(roles: Sequence[str]) -> bool:
    """Return whether roles are one thought: its cuts in turn, or side by side.

    >>> is_thought(["thought"]), is_thought(["cut-1", "cut-2"]), is_thought(["base", "guide"])
    (True, True, False)
    """
    cuts = [cut_name(number) for number in range(1, len(roles) + 1)]
    return tuple(roles) == THOUGHT or list(roles) == cuts


def of_thought(role: str) -> bool:
    """Return whether calls of a role think before they answer, so that their text is a thought.

    >>> of_thought("thought"), of_thought("cut-3"), of_thought("small")
    (True, True, False)
    """
    number = role.rpartition("-")[2]
    return role in THOUGHT or (number.isdecimal() and role == cut_name(int(number)))


def side_by_side(
    cuts: TraceArrays, ended: BoolArray, answering: IntArray, read_again: IntArray
) -> TraceArrays:
    """Return cuts that hold what each adds, [n, 1, L], with what each comes to.

    Args:
        cuts: in the order of thinking, as a file has them.
        ended: [n] whether the last recorded cut of a question is its thought's own end.
        answering: [n, 1, L] what of its price each cut took for its answer, in nano-dollars.
        read_again: [n, 1, L] what it took for reading what was thought before.
    """
    made = cuts.made[:, 0]
    last = made.sum(axis=1) - 1
    after = ended[:, None] & (np.arange(cuts.n_roles) > last[:, None])
    place = np.where(after, last[:, None], np.arange(cuts.n_roles))[:, None]
    known: dict[str, Any] = {
        name: np.take_along_axis(getattr(cuts, name), place, axis=2)
        for name in ("answer", "correct", "ungraded", "made", "asked_probability")
    }
    later = after[:, None]
    paid = cuts.cost_nano.cumsum(axis=2)
    stopping = np.minimum((answering + read_again).cumsum(axis=2) - answering, paid)
    stopping = np.take_along_axis(stopping, place, axis=2)
    signals = {
        name: np.where(later, 0, values).cumsum(axis=2, dtype=np.float64).astype(np.float32)
        if name in ADDED_UP
        else np.take_along_axis(values, place, axis=2)
        for name, values in cuts.signals.items()
    }
    return replace(
        cuts,
        cuts=True,
        independent=np.ones(len(cuts), dtype=bool),
        cost_nano=paid - stopping,
        stopping_nano=stopping,
        largest_cost_nano=_known_so_far(cuts.largest_cost_nano, later),
        signals=signals,
        **known,
    )


def in_turn(cuts: TraceArrays) -> TraceArrays:
    """Return cuts side by side, [n, 1, L], one after another, [n, L, 1], with what each adds."""
    swapped: dict[str, Any] = {
        name: getattr(cuts, name).swapaxes(1, 2)
        for name in ("answer", "correct", "ungraded", "made", "asked_probability")
    }
    largest = cuts.largest_cost_nano
    return replace(
        cuts,
        roles=THOUGHT,
        models=cuts.models[-1:],
        independent=np.zeros(len(cuts), dtype=bool),
        cost_nano=_added(cuts.cost_nano + cuts.stopping_nano),
        stopping_nano=np.zeros_like(cuts.cost_nano).swapaxes(1, 2),
        largest_cost_nano=np.where(largest.swapaxes(1, 2) > 0, _added(largest), 0),
        signals={
            name: _added(values) if name in ADDED_UP else values.swapaxes(1, 2)
            for name, values in cuts.signals.items()
        },
        recorded=rounds_in_turn(cuts),
        replies={},
        **swapped,
    )


def rounds_in_turn(calls: TraceArrays) -> NDArray[np.int16]:
    """Return how many of the calls of round 1 are recorded as rounds, one after another, [n].

    Rounds end before the first call that was not made. Where more was to come than was recorded it
    is one less than all, even where all were made: what was cut short is never complete.
    """
    made = np.logical_and.accumulate(calls.made[:, 0], axis=1).sum(axis=1)
    short = np.minimum(made, calls.n_roles - 1)
    return np.where(calls.complete, calls.n_roles, short).astype(np.int16)


def spent_nano(calls: TraceArrays, made: BoolArray) -> IntArray:
    """Return what calls that were made cost together, [...], in nano-dollars.

    Of cuts side by side the furthest is paid for, and those before it with it.

    Args:
        calls: the questions, [n, T, L].
        made: [n, ..., T * L] which of their calls.
    """
    cost = calls.cost_nano.reshape(len(calls), *[1] * (made.ndim - 2), -1)
    paid = np.where(made, cost, 0)
    together = calls.cuts and calls.horizon == 1
    found: IntArray = paid.max(axis=-1) if together else paid.sum(axis=-1)
    return found


def _known_so_far(largest: IntArray, later: BoolArray) -> IntArray:
    """Add up what cuts can cost at most; 0, and unknown, from the first that does not say it."""
    known = np.logical_and.accumulate((largest > 0) | later, axis=2)
    return np.where(known, largest.cumsum(axis=2), 0)


def _added(values: NDArray[N]) -> NDArray[N]:
    """Return what each of the values [n, 1, L] adds to the one before it, [n, L, 1]."""
    return np.diff(values, axis=2, prepend=values.dtype.type(0)).swapaxes(1, 2)
