"""Files of traces: in our own form, which the suffix says, or as another tool recorded them.

Of several files the calls of a question come together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import structs

from farthing.errors import InputError
from farthing.traces import jsonl
from farthing.traces.aliases import proposals, renamed
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Call, Trace
from farthing.traces.copies import contradiction, repetition
from farthing.traces.importers.missing_fields import ALONE
from farthing.traces.importers.read import OWN, Supplied, check, read_foreign, sniffed
from farthing.traces.importers.row import shown
from farthing.traces.jsonl import LINES
from farthing.traces.store import STORES, Store
from farthing.traces.trace_kind import Checker, shape_of

DAY = timedelta(days=1)


def read_arrays(path: Path) -> TraceArrays:
    """Read a trace file or a store into arrays."""
    if path.suffix in STORES:
        return assemble(read_records(path))
    return load(path)


def read_records(path: Path) -> list[Trace]:
    """Read a trace file or a store into records."""
    if path.suffix in STORES:
        with Store.read(path) as store:
            return list(store.traces())
    return jsonl.read_traces(path)


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write records in the form that the suffix names."""
    check_suffix(path)
    jsonl.write_traces(path, traces)


def check_suffix(path: Path, *others: str) -> None:
    """Refuse a name that says nothing about the form; `others` may be written here as well."""
    known = (*others, *LINES)
    if not path.name.endswith(known):
        names = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(f"{path}: cannot tell its form; name it {names}")


def form_of(path: Path, supplied: Supplied | None = None) -> str | None:
    """Return the format of another tool's file; None for traces, and for a folder."""
    if path.is_dir() or path.suffix in STORES:
        return None
    form = sniffed(path, supplied.options if supplied else None)
    return None if form == OWN else form


def read_all(
    paths: Sequence[Path], supplied: Supplied | None = None
) -> tuple[TraceArrays, list[str]]:
    """Read one file or several, joined by question, with a line for each thing that they lack."""
    arrays, _, notes = read_all_with_records(paths, supplied)
    return arrays, notes


def read_all_with_records(
    paths: Sequence[Path], supplied: Supplied | None = None
) -> tuple[TraceArrays, list[Trace], list[str]]:
    """Read as `read_all` does, and return the records as well.

    Args:
        paths: the files.
        supplied: what other tools' files do not say.
    """
    path, *others = paths
    named = path.name.endswith((*LINES, *STORES))
    if not others and not named and form_of(path, supplied) is None:
        check_suffix(path)
    records, notes, times = read_all_records(paths, supplied)
    notes = list(dict.fromkeys([*notes, *proposals(records)]))
    arrays = assemble(records)
    if times and (span := max(times) - min(times)) >= DAY:
        arrays = replace(arrays, requests_per_day=float(arrays.requests.sum()) / (span / DAY))
    notes += filter(None, [repetition(arrays, records), contradiction(arrays, records)])
    return arrays, records, notes


def read_all_records(
    paths: Sequence[Path], supplied: Supplied | None = None
) -> tuple[list[Trace], list[str], list[datetime]]:
    """Read one file or several into records, joined by question; raises as `read_all`."""
    if len(paths) == 1:
        return read_any_records(paths[0], supplied)
    files: dict[str, list[Trace]] = {}
    notes: dict[str, None] = {}
    times: list[datetime] = []
    for path in paths:
        if str(path) in files:
            raise InputError(f"{path}: is given twice; give each file once")
        files[str(path)], said, period = read_any_records(path, supplied)
        times += period
        if not files[str(path)]:
            raise InputError(f"{path}: holds no traces; leave it out")
        notes |= dict.fromkeys(note for note in said if note != ALONE)
    return join(files), list(notes), times


def read_any_records(
    path: Path, supplied: Supplied | None = None
) -> tuple[list[Trace], list[str], list[datetime]]:
    """Read a file into records, a line for each thing that it lacks, and its first and last time.

    There are no times where the file has none; it raises as `read_all`.
    """
    form = form_of(path, supplied)
    if form is None:
        return renamed(read_records(path), supplied.aliases if supplied else {}), [], []
    imported = read_foreign([path], form, supplied)
    check(imported, Checker())
    return imported.traces, imported.notes, [*(imported.period or ())]


ABOUT = ("question", "gold", "group", "split", "system_prompt", "history", "options", "cluster")
"""What a file may leave unsaid of a question, and two must not say otherwise."""


def join(files: Mapping[str, Sequence[Trace]]) -> list[Trace]:
    """Return the questions of several files, in the order in which they are first met.

    A question that stands in two files has the calls of both. A call that stands in both, word for
    word, is one call. What a file does not say of a question another may.

    Args:
        files: name to traces, at least one in each; ids are unique within a file.

    >>> small, large = (Call(round=1, role=role, answer="4") for role in ("small", "large"))
    >>> one, two = Trace(id="q", calls=[small]), Trace(id="q", question="2 + 2?", calls=[large])
    >>> (trace,) = join({"small.jsonl": [one], "large.jsonl": [two]})
    >>> trace.question, [call.role for call in trace.calls]
    ('2 + 2?', ['small', 'large'])
    """
    shapes = [(name, traces[0].id, shape_of(traces[0])) for name, traces in files.items()]
    first, *others = shapes
    for name, question, shape in others:
        if shape != first[2]:
            raise InputError(
                f"question '{first[1]}' of {first[0]} and '{question}' of {name}: calls have the "
                f"shapes '{first[2]}' and '{shape}'; give files of one shape"
            )
    joined: dict[str, Trace] = {}
    whence: dict[str, str] = {}
    for name, traces in files.items():
        for trace in traces:
            before = joined.get(trace.id)
            both = f"question '{trace.id}' of {whence.setdefault(trace.id, name)} and {name}"
            joined[trace.id] = trace if before is None else _merged(before, trace, both)
    return list(joined.values())


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
