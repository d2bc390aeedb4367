"""Traces as arrays; a pool of models as one round, or as a cascade.

paper     [n, T, 2]   base and guide in each of T rounds
pool      [n, 1, L]   L models side by side, the cheapest first
cuts      [n, 1, L]   L cuts of one thought side by side, in the order of thinking
cascade   [n, L, 1]   the same models one after another, so that round-based policies apply
samples   [n, T, 1]   T samples of one role, none of which saw another
episodes  [n, T, L]   a controller and its experts in each of T turns, the cheapest first
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mode

import numpy as np

from farthing.errors import InputError, TraceFormatError
from farthing.money import nano_from_usd
from farthing.traces.arrays import (
    NO_ANSWER,
    NO_CONTEXT,
    NO_REASON,
    NO_SPLIT,
    SIGNALS,
    SPLITS,
    WHY_MISSING,
    IntArray,
    PolicyReplies,
    Signal,
    TraceArrays,
)
from farthing.traces.base import GRADES, Call, Trace
from farthing.traces.copies import contents_of
from farthing.traces.costs import charged_nano, counted_nano
from farthing.traces.grades.below_chance import with_gold_beside
from farthing.traces.grades.codes import answer_codes, grades, normaliser
from farthing.traces.jsonl import read_traces
from farthing.traces.pool import cheapest_first, in_order, side_by_side
from farthing.traces.system import context_of
from farthing.traces.text_signals import OF_ANSWER, OF_QUESTION, read_answer, read_question
from farthing.traces.trace_kind import (
    ANSWERING,
    PROTOCOL_ROLES,
    READ_AGAIN,
    Checker,
    answering,
    cut_name,
    is_reply,
    laid_out,
    recorded_rounds,
    rounds_of,
    shape_of,
)

_LARGEST = float(np.finfo(np.float32).max)


def load(path: str | Path) -> TraceArrays:
    """Read a file of traces (`.jsonl` or `.jsonl.gz`) into arrays."""
    if not str(path).endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"{path}: cannot tell its form; name it .jsonl or .jsonl.gz")
    return assemble(read_traces(path))


def assemble(traces: Sequence[Trace]) -> TraceArrays:
    """Lay traces of one shape out as arrays; what has no recorded grade is graded by its task.

    Returns:
        One row a question, in order. A pool's models stand in the order of their mean cost. What a
        call without a recorded cost counts as, `costs.counted_nano` says.
    """
    if not traces:
        raise InputError("there are no traces; give a file with at least one question")
    checker = Checker()
    for line, trace in enumerate(traces, start=1):
        for where, name, problem in checker.problems(trace, line):
            which = f"{problem} (question '{traces[where - 1].id}')"
            raise TraceFormatError("traces", where, name, which)
    arrays = _arrays(traces)
    paper = shape_of(traces[0]) == "paper"
    return arrays if paper else in_order(arrays, cheapest_first([arrays]))


def _arrays(traces: Sequence[Trace]) -> TraceArrays:
    kind = shape_of(traces[0])
    roles = tuple(sorted({call.role for trace in traces for call in answering(trace)}))
    if kind == "paper":
        roles = PROTOCOL_ROLES
    elif kind == "thinking":
        roles = tuple(cut_name(t) for t in range(1, max(map(rounds_of, traces)) + 1))
    column = {role: i for i, role in enumerate(roles)}
    # The order in the file means nothing: answers are numbered round by round, role by role.
    calls = [
        sorted(laid_out(trace), key=lambda call: (call.round, column[call.role]))
        for trace in traces
    ]
    shape = (len(traces), max(call.round for some in calls for call in some), len(roles))
    flat = [call for some in calls for call in some]
    places = [
        (i, call.round - 1, column[call.role]) for i, some in enumerate(calls) for call in some
    ]
    at = tuple(np.array(places, dtype=np.int64).T)  # of each call, into [n, T, L]
    models: dict[str, list[str]] = {role: [] for role in roles}
    for call in flat:
        models[call.role].append(call.model or "")
    normalise = {task: normaliser(task) for task in {trace.task for trace in traces}}
    answer = np.full(shape, NO_ANSWER, dtype=np.int16)
    correct, ungraded = np.zeros((2, *shape), dtype=bool)
    answer[at] = [
        code
        for trace, some in zip(traces, calls, strict=True)
        for code in answer_codes([call.answer for call in some], normalise[trace.task])
    ]
    graded = [
        right for trace, some in zip(traces, calls, strict=True) for right in grades(trace, some)
    ]
    correct[at] = [bool(right) for right in graded]
    ungraded[at] = [right is None for right in graded]
    cost_nano, largest_cost_nano = np.zeros((2, *shape), dtype=np.int64)
    cost_nano[at], unpriced = counted_nano(flat)
    largest_cost_nano[at] = [
        0 if (usd := call.largest_cost_usd) is None else nano_from_usd(usd) for call in flat
    ]
    made = np.zeros(shape, dtype=bool)
    made[at] = True
    asked_probability = np.full(shape, np.nan, dtype=np.float32)
    asked_probability[at] = [call.asked_probability for call in flat]  # None becomes NaN
    why_code = {None: NO_REASON} | {name: i for i, name in enumerate(WHY_MISSING)}
    contexts = [context_of(trace) for trace in traces]
    known = dict.fromkeys(one for one in contexts if any(said is not None for said in one))
    context_code = {one: i for i, one in enumerate(known)}
    groups = sorted({trace.group for trace in traces if trace.group is not None})
    group_code = {None: -1} | {name: i for i, name in enumerate(groups)}
    split_code = {None: NO_SPLIT} | {name: i for i, name in enumerate(SPLITS)}
    found = TraceArrays(
        ids=np.array([trace.id for trace in traces], dtype=np.str_),
        roles=roles,
        models=tuple(mode(sorted(models[role]) or [""]) for role in roles),  # the usual one
        answer=answer,
        correct=correct,
        cost_nano=cost_nano,
        largest_cost_nano=largest_cost_nano,
        unpriced=unpriced,
        ungraded=ungraded,
        made=made,
        asked_probability=asked_probability,
        missing_because=np.array([why_code[trace.missing_because] for trace in traces], np.int8),
        content=contents_of(traces),
        requests=np.array([trace.requests for trace in traces], dtype=np.int64),
        context=np.array([context_code.get(one, NO_CONTEXT) for one in contexts], np.int32),
        contexts=tuple(context_code),
        question=np.array([trace.question for trace in traces], dtype=object),
        signals=_signals(flat, at, shape) | _read(traces, calls, at, shape),
        group=np.array([group_code[trace.group] for trace in traces], dtype=np.int32),
        group_names=tuple(groups),
        split=np.array([split_code[trace.split] for trace in traces], dtype=np.int8),
        recorded=np.array([recorded_rounds(trace) for trace in traces], dtype=np.int16),
        independent=np.array([trace.independent or kind == "pool" for trace in traces], dtype=bool),
        replies=_replies(traces, roles, shape[1]),
    )
    found = with_gold_beside(found, traces)
    if kind != "thinking":
        return found
    ended = [any(call.ended for call in trace.calls) for trace in traces]
    of_answers, read_again = np.zeros((2, *shape), dtype=np.int64)
    of_answers[at] = [nano_from_usd(call.extra.get(ANSWERING, 0)) for call in flat]
    read_again[at] = [nano_from_usd(call.extra.get(READ_AGAIN, 0)) for call in flat]
    return side_by_side(found, np.array(ended, dtype=bool), of_answers, read_again)


def _signals(
    calls: Sequence[Call], at: tuple[IntArray, ...], shape: tuple[int, int, int]
) -> dict[str, Signal]:
    """Lay out every signal that some call has; the format's own first, then others by name."""
    columns: dict[str, list[float | None]] = {
        name: [getattr(call, name) for call in calls] for name in SIGNALS
    }
    others = {name for call in calls for name in call.extra}.difference(GRADES)
    columns |= {name: [call.extra.get(name) for call in calls] for name in sorted(others)}
    return _laid_out(columns, at, shape)


def _read(
    traces: Sequence[Trace],
    calls: Sequence[Sequence[Call]],
    at: tuple[IntArray, ...],
    shape: tuple[int, int, int],
) -> dict[str, Signal]:
    """Lay out what `text_signals` reads off questions and answers."""
    rows = [
        about + read_answer(call.answer)
        for about, some in zip((read_question(t.question) for t in traces), calls, strict=True)
        for call in some
    ]
    names = OF_QUESTION + OF_ANSWER
    return _laid_out(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), at, shape)


def _laid_out(
    columns: Mapping[str, list[float | None]],
    at: tuple[IntArray, ...],
    shape: tuple[int, int, int],
) -> dict[str, Signal]:
    signals = {}
    for name, column in columns.items():
        if any(value is not None for value in column):
            values = np.array(column, dtype=np.float64)  # None becomes NaN
            signals[name] = np.full(shape, np.nan, dtype=np.float32)
            signals[name][at] = np.clip(values, -_LARGEST, _LARGEST)
    return signals


def _replies(
    traces: Sequence[Trace], roles: Sequence[str], horizon: int
) -> dict[str, PolicyReplies]:
    shape, replies = (len(traces), horizon), dict[str, PolicyReplies]()
    for role in sorted({c.role for trace in traces for c in trace.calls if is_reply(c.role)}):
        action, cost_nano = np.full(shape, -1, dtype=np.int8), np.zeros(shape, dtype=np.int64)
        for i, trace in enumerate(traces):
            for call in (call for call in trace.calls if call.role == role):
                action[i, call.round - 1] = reply_action(call, roles)
                cost_nano[i, call.round - 1] = charged_nano(call)
        replies[role] = PolicyReplies(action, cost_nano)
    return replies


def reply_action(call: Call, roles: Sequence[str]) -> int:
    """Read what an LLM chose: the index of a role, L for `next`, -1 where none can be read."""
    said = (call.answer or "").strip().casefold()
    kind, _, name = call.role.partition("-")
    if kind == "policy":
        numbers = {str(i + 1): i for i in range(len(roles) + 1)}
        return numbers.get(said, NO_ANSWER)
    stop = roles.index(name) if name in roles else NO_ANSWER
    return {"exit": stop, "continue": len(roles)}.get(said, NO_ANSWER)
