"""Several files of traces as one: calls of the same question come together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from farthing.errors import InputError
from farthing.traces.base import Call, Trace
from farthing.traces.importers.row import shown
from farthing.traces.trace_kind import shape_of

ABOUT = ("question", "gold", "group", "split", "system_prompt", "history", "options")
"""What a file may leave unsaid of a question, and two must not say otherwise."""


def join(files: Mapping[str, Sequence[Trace]]) -> list[Trace]:
    """Return the questions of several files, in the order in which they are first met.

    A question that stands in two files has the calls of both. A call that stands in both, word for
    word, is one call. What a file does not say of a question another may.

    Args:
        files: name to traces, at least one in each; ids are unique within a file.

    Raises:
        InputError: two files contradict each other on a question or on a call, or have other
            shapes; the message names both, the question and the field.

    >>> small, large = (Call(round=1, role=role, answer="4") for role in ("small", "large"))
    >>> one, two = Trace(id="q", calls=[small]), Trace(id="q", question="2 + 2?", calls=[large])
    >>> (trace,) = join({"small.jsonl": [one], "large.jsonl": [two]})
    >>> trace.question, [call.role for call in trace.calls]
    ('2 + 2?', ['small', 'large'])
    """
    _refuse_other_shapes(files)
    joined: dict[str, Trace] = {}
    whence: dict[str, str] = {}
    for name, traces in files.items():
        for trace in traces:
            before = joined.get(trace.id)
            both = f"question '{trace.id}' of {whence.setdefault(trace.id, name)} and {name}"
            joined[trace.id] = trace if before is None else _merged(before, trace, both)
    return list(joined.values())


def _refuse_other_shapes(files: Mapping[str, Sequence[Trace]]) -> None:
    shapes = [(name, traces[0].id, shape_of(traces[0])) for name, traces in files.items()]
    first, *others = shapes
    for name, question, shape in others:
        if shape != first[2]:
            raise InputError(
                f"question '{first[1]}' of {first[0]} and '{question}' of {name}: calls have the "
                f"shapes '{first[2]}' and '{shape}'; give files of one shape"
            )


def _merged(ours: Trace, theirs: Trace, both: str) -> Trace:
    """Return one question of two files, which `both` names."""
    for field in (*ABOUT, "task"):
        mine, other = getattr(ours, field), getattr(theirs, field)
        if mine and other and mine != other:
            raise _contradiction(both, field, mine, other)
    known = {field: getattr(ours, field) or getattr(theirs, field) for field in ABOUT}
    return structs.replace(
        ours,
        calls=_calls(ours.calls, theirs.calls, both),
        independent=ours.independent and theirs.independent,
        truncated=ours.truncated or theirs.truncated,
        parameters=ours.parameters if ours.parameters == theirs.parameters else None,
        missing_because=ours.missing_because or theirs.missing_because,
        requests=max(ours.requests, theirs.requests),
        **known,
    )


def _calls(ours: Iterable[Call], theirs: Iterable[Call], both: str) -> list[Call]:
    calls = {(call.round, call.role): call for call in ours}
    for call in theirs:
        before = calls.setdefault((call.round, call.role), call)
        for field in Call.__struct_fields__:
            mine, other = getattr(before, field), getattr(call, field)
            if mine != other:
                where = f"{field} of the call of {call.role} in round {call.round}"
                raise _contradiction(both, where, mine, other)
    return list(calls.values())


def _contradiction(both: str, field: str, ours: Any, theirs: Any) -> InputError:
    said = f"{field} is {shown(ours)} in the one and {shown(theirs)} in the other"
    return InputError(f"{both}: {said}; leave one out, or mend it")
