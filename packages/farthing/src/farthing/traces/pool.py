"""A pool of models: in the order of their cost, and as a cascade, one model after another.

Samples are several independent calls of one model, which voting is measured on.

Thinking up to a cut of a thought and answering there is a way to answer with a price of its own,
that of the whole thought so far. So the cuts of a question stand side by side, [n, 1, L], as the
models of a pool do, and the last one is the full thought. In turn, [n, L, 1], a cut costs what it
adds. A thought that ended before others says the same at every later cut, for nothing.

Who stops a thought at each cut, to see what it would answer, pays for these answers, and for
reading the thought again. Who thinks straight on pays for neither, so side by side they are left
out where calls say how much that is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.models.thinking import EFFORT
from farthing.traces.arrays import AS_MADE, NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.trace_kind import CONTROLLER, PROTOCOL_ROLES, cut_name


def is_pool(arrays: TraceArrays) -> bool:
    """Return whether these are models side by side: one round, of no protocol and no controller."""
    return arrays.horizon == 1 and arrays.roles != PROTOCOL_ROLES and CONTROLLER not in arrays.roles


def one_model_each(arrays: TraceArrays) -> bool:
    """Return whether one model was asked each question, so that none can be compared with another.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> calls = [Call(round=1, role=role, answer="4") for role in ("small", "large")]
    >>> traces = [Trace(id=call.role, calls=[call]) for call in calls]
    >>> one_model_each(assemble(traces))
    True
    >>> one_model_each(assemble([Trace(id="q", calls=calls)]))
    False
    """
    return is_pool(arrays) and bool((arrays.made.sum(axis=(1, 2)) <= 1).all())


def cascade(arrays: TraceArrays, order: Sequence[int] | None = None) -> TraceArrays:
    """Lay a pool out as rounds: one model each, in order of mean cost, all in the role `model`.

    A question's rounds end before the first model that was not asked there. Replies of LLM policies
    are left out: they chose among all models at once. The cuts of a thought are in the role
    `thought`, and a round costs what is thought since the cut before.

    Args:
        arrays: a pool, [n, 1, L].
        order: the places of its roles from first to last; None: by mean cost over these questions.

    Returns:
        The same answers as [n, L, 1].
    """
    if not is_pool(arrays):
        raise InputError("only a pool, all of whose calls are in round 1, can become a cascade")
    if arrays.cuts:
        return in_turn(arrays)
    pool = in_order(arrays, cheapest_first([arrays]) if order is None else order)
    return replace(
        pool,
        roles=("model",),
        models=(" -> ".join(names_in_turn(pool)),),
        **pool.per_call(lambda calls: calls.swapaxes(1, 2)),
        recorded=rounds_in_turn(pool),
        replies={},
    )


def names_in_turn(pool: TraceArrays) -> list[str]:
    """Return what a cascade calls the models of a pool: each by its name, told apart.

    Where it has none, or is a model at an effort, or two would be called alike, it is the role.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> calls = [Call(round=1, role=role, model=model, answer="4", correct=True) for role, model in
    ...          (("o4@low", "o4"), ("o4@high", "o4"), ("a", "nano"), ("b", None))]
    >>> names_in_turn(assemble([Trace(id="q", calls=calls)]))
    ['nano', 'b', 'o4@high', 'o4@low']
    """
    both = zip(pool.models, pool.roles, strict=True)
    names = [role if not model or EFFORT in role else model for model, role in both]
    return names if len(set(names)) == len(names) else list(pool.roles)


def cheapest_first(pools: Iterable[TraceArrays]) -> tuple[int, ...]:
    """Return the places of roles by their mean cost over the calls that have one, then by name.

    Args:
        pools: pieces of one pool, of the same roles; at least one. Cuts of a thought keep the order
            of thinking.
    """
    roles: tuple[str, ...] = ()
    made = spent = np.zeros((), dtype=np.int64)
    for pool in pools:
        roles = pool.roles
        if pool.cuts:
            return tuple(range(len(roles)))
        made = made + (pool.cost_nano > 0).sum(axis=(0, 1))
        spent = spent + pool.cost_nano.sum(axis=(0, 1))
    mean = spent / np.maximum(made, 1)
    return tuple(sorted(range(len(roles)), key=lambda i: (mean[i], roles[i])))


def missing(arrays: TraceArrays) -> dict[str, int]:
    """Return, of a pool, each model that some questions lack, and how many do; it may be empty.

    A call that was made and failed is not lacking: that it failed is known.
    """
    if not is_pool(arrays):
        return {}
    lack = (~arrays.made).sum(axis=(0, 1)).tolist()
    return {role: n for role, n in zip(arrays.roles, lack, strict=True) if n}


def check_complete(pool: TraceArrays) -> None:
    """Refuse to play questions that lack a model's call: what it would have said is unknown."""
    if pool.at_worst or pool.made.all():
        return
    lacking = int((~pool.made.all(axis=(1, 2))).sum())
    role, most = max(missing(pool).items(), key=lambda item: item[1])
    raise InputError(
        f"{lacking:,} of {len(pool):,} questions lack calls ({most:,} that of {role}), and what "
        "was not asked is unknown; take those that were asked of every model (`eligible`)"
    )


def in_order(pool: TraceArrays, places: Sequence[int]) -> TraceArrays:
    """Return a pool with the roles at these places, in that order; replies that name others: -1."""
    order = np.array(places)
    if order.tolist() == list(range(pool.n_roles)):
        return pool
    to = np.full(pool.n_roles + 2, NO_ANSWER, dtype=np.int8)  # the last place is that of -1
    to[order], to[pool.n_roles] = np.arange(len(order)), len(order)
    return replace(
        pool,
        roles=tuple(pool.roles[i] for i in order),
        models=tuple(pool.models[i] for i in order),
        **pool.per_call(lambda calls: calls[:, :, order]),
        unpriced={
            role: share
            for role, share in pool.unpriced.items()
            if role in {pool.roles[i] for i in places}
        },
        replies={
            role: replace(reply, action=to[reply.action]) for role, reply in pool.replies.items()
        },
    )


NOT_SAMPLES = (
    "these traces are samples of one model: `farthing study samples` says how many to take, and "
    "`farthing traces info` describes them; this needs several models, or base and guide"
)


def is_samples(arrays: TraceArrays) -> bool:
    """Return whether these are several independent calls of one role a question."""
    alone = arrays.n_roles == 1 and arrays.horizon > 1 and arrays.roles != (CONTROLLER,)
    return alone and bool(arrays.independent.all())


def refuse_samples(arrays: TraceArrays) -> None:
    """Refuse samples where several models are needed."""
    if is_samples(arrays):
        raise InputError(NOT_SAMPLES)


def leaders(answer: IntArray) -> IntArray:
    """Return the vote of the first k samples, k = 1 to K, [n, K]; of a tie, who led before.

    Args:
        answer: [n, K] codes of answers in the order of sampling; -1 is no answer and has no vote.

    >>> leaders(np.array([[0, 1, 1, 0, 1], [-1, 2, 0, 0, -1]]))
    array([[ 0,  0,  1,  1,  1],
           [-1,  2,  2,  0,  0]])
    """
    n, most = answer.shape
    rows, codes = np.arange(n), int(answer.max(initial=0)) + 2
    counts, found = np.zeros((n, codes), dtype=np.int64), np.zeros((n, most), dtype=np.int64)
    lead = np.full(n, NO_ANSWER)
    for k in range(most):
        given = answer[:, k]
        counts[rows, given] += 1
        counts[:, NO_ANSWER] = 0
        ahead = (given != NO_ANSWER) & (counts[rows, given] > counts[rows, lead])
        lead = np.where(ahead, given, lead)
        found[:, k] = lead
    return found


def sampled(arrays: TraceArrays) -> tuple[IntArray, BoolArray, IntArray]:
    """Return the answer, grade and cost in nano-dollars of each sample, three of [n, k]."""
    if not is_samples(arrays):
        raise InputError(
            "these traces are no samples; record several independent answers of one model to each "
            'question: one role, rounds from 1 on, and "independent": true'
        )
    return (
        arrays.answer[:, :, 0].astype(np.int64),
        arrays.correct[:, :, 0],
        arrays.cost_nano[:, :, 0],
    )


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
        for name in ("answer", "correct", *AS_MADE)
    }
    later = after[:, None]
    known_so_far = np.logical_and.accumulate((cuts.largest_cost_nano > 0) | later, axis=2)
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
        largest_cost_nano=np.where(known_so_far, cuts.largest_cost_nano.cumsum(axis=2), 0),
        signals=signals,
        **known,
    )


def in_turn(cuts: TraceArrays) -> TraceArrays:
    """Return cuts side by side, [n, 1, L], one after another, [n, L, 1], with what each adds."""
    swapped = cuts.per_call(lambda calls: calls.swapaxes(1, 2))
    largest = swapped["largest_cost_nano"]
    swapped["cost_nano"] = _added(cuts.cost_nano + cuts.stopping_nano)
    swapped["largest_cost_nano"] = np.where(largest > 0, _added(cuts.largest_cost_nano), 0)
    swapped["signals"] |= {
        name: _added(values) for name, values in cuts.signals.items() if name in ADDED_UP
    }
    return replace(
        cuts,
        roles=THOUGHT,
        models=cuts.models[-1:],
        independent=np.zeros(len(cuts), dtype=bool),
        stopping_nano=np.zeros_like(cuts.cost_nano).swapaxes(1, 2),
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


def _added(values: NDArray[N]) -> NDArray[N]:
    """Return what each of the values [n, 1, L] adds to the one before it, [n, L, 1]."""
    return np.diff(values, axis=2, prepend=values.dtype.type(0)).swapaxes(1, 2)
