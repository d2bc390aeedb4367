"""Traces from files and from memory, and logs of requests.

Files are in our own form, which the suffix says, or as another tool recorded them. Of several files
the calls of a question come together. In memory traces are dictionaries in the interchange form, or
one row a call. A log says what was asked, what one model answered, and what was paid for it.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import structs

from farthing.errors import InputError
from farthing.models.prices import Price
from farthing.money import nano_from_usd
from farthing.traces import jsonl
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Call, Trace
from farthing.traces.copies import contradiction, repetition
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.read import (
    ALONE,
    OWN,
    Supplied,
    check,
    proposals,
    read_foreign,
    renamed,
    sniffed,
)
from farthing.traces.importers.row import FileRow, RowPlace, shown
from farthing.traces.importers.table import dollars, known
from farthing.traces.jsonl import LINES, decode_all
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


def read_all_with_records(
    paths: Sequence[Path], supplied: Supplied | None = None
) -> tuple[TraceArrays, list[Trace], list[str]]:
    """Read one file or several, joined by question, with a line for each thing that they lack.

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
    """Read one file or several into records, joined by question; raises as for arrays.

    Returns:
        The records, a line for each thing that they lack, and the first and last time of each file
        that has times.
    """
    files: dict[str, list[Trace]] = {}
    notes: dict[str, None] = {}
    times: list[datetime] = []
    for path in paths:
        if str(path) in files:
            raise InputError(f"{path}: is given twice; give each file once")
        form = form_of(path, supplied)
        if form is None:
            traces = renamed(read_records(path), supplied.aliases if supplied else {})
        else:
            imported = read_foreign([path], form, supplied)
            check(imported, Checker())
            traces = imported.traces
            times += imported.period or ()
            alone = len(paths) == 1
            notes |= dict.fromkeys(note for note in imported.notes if alone or note != ALONE)
        if len(paths) == 1:
            return traces, list(notes), times
        if not traces:
            raise InputError(f"{path}: holds no traces; leave it out")
        files[str(path)] = traces
    return join(files), list(notes), times


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
    for field in (*ABOUT, "task"):
        mine, other = getattr(ours, field), getattr(theirs, field)
        if mine and other and mine != other:
            raise _contradiction(both, field, mine, other)
    known = {field: getattr(ours, field) or getattr(theirs, field) for field in ABOUT}
    calls = {(call.round, call.role): call for call in ours.calls}
    for call in theirs.calls:
        before = calls.setdefault((call.round, call.role), call)
        for field in Call.__struct_fields__:
            mine, other = getattr(before, field), getattr(call, field)
            if mine != other:
                where = f"{field} of the call of {call.role} in round {call.round}"
                raise _contradiction(both, where, mine, other)
    return structs.replace(
        ours,
        calls=list(calls.values()),
        independent=ours.independent and theirs.independent,
        truncated=ours.truncated or theirs.truncated,
        parameters=ours.parameters if ours.parameters == theirs.parameters else None,
        missing_because=ours.missing_because or theirs.missing_because,
        requests=max(ours.requests, theirs.requests),
        **known,
    )


def _contradiction(both: str, field: str, ours: Any, theirs: Any) -> InputError:
    said = f"{field} is {shown(ours)} in the one and {shown(theirs)} in the other"
    return InputError(f"{both}: {said}; leave one out, or mend it")


DIGEST = "sha256:"
"""What begins a text that a trace keeps as a digest alone."""


@dataclass(frozen=True)
class LoggedRequest:
    """One question of a log, as it was sent, with the calls that were made for it."""

    trace: Trace
    messages: Messages | None
    """What was sent, whole; None where it was more than texts, or the log does not hold it."""

    def call(self, model: str) -> Call | None:
        """Return what a model answered; None where it was not asked."""
        return next((call for call in self.trace.calls if call.role == model), None)

    @property
    def kind(self) -> str:
        """What it is grouped by: its own group, else how its system prompt begins."""
        prompt = self.trace.system_prompt or ""
        return self.trace.group or " ".join(prompt.split())[:48] or "no system prompt"


@dataclass(frozen=True)
class Spent:
    """What some requests cost."""

    requests: int
    usd: float
    unpriced: int = 0
    """Requests whose cost is not known, which add nothing to it."""


@dataclass(frozen=True)
class RequestLog:
    """All requests of one log or several."""

    requests: Sequence[LoggedRequest]
    notes: Sequence[str]
    """What the files lack, a line each."""
    period: tuple[datetime, datetime] | None
    """When the first and the last call was made; None where no file says."""

    @property
    def days(self) -> float | None:
        """Days from the first call to the last; None where nobody knows, or it is one moment."""
        if self.period is None or self.period[0] == self.period[1]:
            return None
        return (self.period[1] - self.period[0]).total_seconds() / DAY.total_seconds()

    @property
    def models(self) -> dict[str, Spent]:
        """What each model was paid, the most first."""
        return _most_first(
            [(call.role, request) for request in self.requests for call in request.trace.calls]
        )

    @property
    def kinds(self) -> dict[str, Spent]:
        """What each kind of request cost, the most first."""
        return _most_first([(request.kind, request) for request in self.requests])


def read_log(paths: Sequence[Path], prices: Mapping[str, Price] | None = None) -> RequestLog:
    """Read logs of other tools, or traces, as requests; prices stand in for costs that lack."""
    traces: list[Trace] = []
    notes: dict[str, None] = {}
    messages: dict[str, Messages | None] = {}
    times: list[datetime] = []
    for path in paths:
        form = form_of(path)
        if form is None:
            own = read_records(path)
            messages |= {trace.id: _own_messages(trace) for trace in own}
            traces += own
            continue
        imported = read_foreign([path], form, Supplied(prices=prices or {}))
        check(imported, Checker())
        messages |= imported.messages
        notes |= dict.fromkeys(imported.notes)
        times += imported.period or ()
        traces += imported.traces
    ids = Counter(trace.id for trace in traces)
    if twice := [name for name, n in ids.items() if n > 1]:
        raise InputError(
            f"question '{twice[0]}' is in several of {', '.join(map(str, paths))}; import them "
            "into one store first: farthing traces import FILE --store traces.db"
        )
    requests = [LoggedRequest(trace, messages[trace.id]) for trace in traces]
    return RequestLog(requests, list(notes), (min(times), max(times)) if times else None)


def _own_messages(trace: Trace) -> Messages | None:
    """Return what was sent, where a trace holds it: an instruction at most, and one question."""
    prompt = trace.system_prompt or ""
    if not trace.question or prompt.startswith(DIGEST) or trace.history or trace.options:
        return None
    system = (("system", prompt),) if prompt else ()
    return (*system, ("user", trace.question))


def _most_first(parts: Sequence[tuple[str, LoggedRequest]]) -> dict[str, Spent]:
    """Add up by name; a question that was asked several times counts as often."""
    nano: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    by_name: dict[tuple[str, str], LoggedRequest] = {(n, r.trace.id): r for n, r in parts}
    for (name, _), request in by_name.items():
        times = request.trace.requests
        asked[name] += times
        costs = [call.cost_usd for call in request.trace.calls if name in (call.role, request.kind)]
        known = [cost for cost in costs if cost is not None]
        nano[name] += times * sum(map(nano_from_usd, known))
        unknown[name] += times * (len(known) < len(costs))
    found = {n: Spent(asked[n], nano[n] / 1e9, unknown[n]) for n in asked}
    return dict(sorted(found.items(), key=lambda item: (-item[1].usd, -item[1].requests)))


OF_QUESTION = (
    "task", "question", "gold", "group", "split", "independent", "truncated",
    "system_prompt", "history", "options", "parameters", "missing_because", "requests",
    "cluster",
)  # fmt: skip
"""What rows say of their question rather than of their call; one of its rows at least says it."""
_COLUMNS = frozenset({"id", *OF_QUESTION, *Call.__struct_fields__}) - {"extra"}
"""Names of columns in the interchange form; numbers may stand in others."""
COSTS = ("cost_usd", "largest_cost_usd")
"""What may be an amount in words."""
COUNTS = ("round", "input_tokens", "output_tokens", "tool_calls")
"""Whole numbers, which a data frame holds as floats where some are unknown."""
FLAGS = ("independent", "truncated")
"""Of these the first row of a question decides."""
Row = Mapping[str, Any]


@runtime_checkable
class Frame(Protocol):
    """A data frame, as pandas and polars have it."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        ...

    def to_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the content as dictionaries."""
        ...


def from_records(records: "Iterable[Row] | Frame") -> list[Trace]:
    """Read traces from dictionaries, or from a data frame of one row a call.

    Args:
        records: a dictionary a question, as a line of the interchange form; or a dictionary, or row
            of a data frame, a call: `id` and `model` (or `role`), with `answer`, `correct`,
            `cost_usd` and whatever else a call may have; `question`, `gold` and the like in any
            row of a question. An amount may be text, as in a table: "$0.0001525".

    >>> rows = [
    ...     {"id": "q1", "model": "small", "answer": "5", "correct": False, "cost_usd": 0.00001},
    ...     {"id": "q1", "model": "large", "answer": "4", "correct": True, "cost_usd": 0.0004},
    ... ]
    >>> [call.role for call in from_records(rows)[0].calls]
    ['small', 'large']
    """
    rows = rows_of(records)
    rows = [
        _with_amounts(row, RowPlace("records", place)) for place, row in enumerate(rows, start=1)
    ]
    if not any("calls" in row for row in rows):
        rows = _gathered(rows)
    lines: list[bytes] = []
    for place, row in enumerate(rows, start=1):
        try:
            lines.append(msgspec.json.encode(_plain(row)))
        except (TypeError, ValueError, OverflowError, RecursionError) as problem:
            raise InputError(
                f"record {place} holds what is no JSON ({problem}); give text, numbers, lists and "
                "None"
            ) from None
    return list(decode_all("records", lines))


def _with_amounts(row: Row, place: RowPlace, path: str = "") -> Row:
    amounts: dict[str, Any] = {
        name: dollars(FileRow({path + name: row[name]}, place), path + name)
        for name in COSTS
        if isinstance(row.get(name), str)
    }
    if isinstance(calls := row.get("calls"), list):
        amounts["calls"] = [
            _with_amounts(call, place, f"calls[{i}].") if isinstance(call, Mapping) else call
            for i, call in enumerate(calls)
        ]
    return {**row, **amounts} if amounts else row


def rows_of(records: "Iterable[Row] | Frame") -> list[Row]:
    """Return records, or the rows of a data frame, as dictionaries.

    Raises:
        InputError: they are none, or something else.
    """
    rows: list[Any]
    if isinstance(records, Frame) and not isinstance(records, Mapping):
        columns = {str(name): list(records[name]) for name in records.columns}  # type: ignore[index]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    elif isinstance(records, Mapping | str | bytes) or not isinstance(records, Iterable):
        kind = type(records).__name__
        raise InputError(
            f"the records are of type {kind}; give a list of dictionaries, or a data frame"
        )
    else:
        rows = list(records)
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise InputError(f"record {place} is of type {kind}; give a dictionary a question")
    if not rows:
        raise InputError("there are no records; give at least one question")
    return rows


def is_foreign(rows: Sequence[Row]) -> bool:
    """Return whether rows, one a call, have other names than the interchange form.

    >>> is_foreign([{"id": "q1", "model": "small", "answer": "4", "length": 1}])
    False
    >>> is_foreign([{"id": "q1", "model": "small", "answer": "4", "latency_ms": 900}])
    True
    """
    fields = {str(name) for name in rows[0]}
    if any("calls" in row for row in rows):
        return False
    return bool(known(fields - _COLUMNS)) or "id" not in fields or not fields & {"model", "role"}


def _gathered(rows: Sequence[Row]) -> list[Row]:
    questions: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(rows, start=1):
        if "id" not in row:
            raise InputError(f"record {place} has no `id`; name the question that the call is of")
        known = _plain(row)
        name = str(known["id"])
        about = {key: known[key] for key in OF_QUESTION if key in known}
        question = questions.setdefault(name, {"id": name, "gold": [], **about, "calls": []})
        for key, value in about.items():
            if key in FLAGS or not value:
                continue
            if (question.get(key) or value) != value:
                raise InputError(
                    f"record {place}: question '{name}' has another {key} in a record before; one "
                    "id is one question"
                )
            question[key] = value
        call = {key: v for key, v in known.items() if key != "id" and key not in OF_QUESTION}
        role = call.get("role") or call.get("model")
        floats = {n: call[n] for n in COUNTS if isinstance(call.get(n), float)}
        call |= {n: int(some) for n, some in floats.items() if some.is_integer()}
        question["calls"].append({"round": 1, **call, "role": role})
    return list(questions.values())


def _plain(value: Any) -> Any:
    if value is getattr(sys.modules.get("pandas"), "NA", ...):
        return None
    if isinstance(value, Mapping):
        items = {str(key): _plain(each) for key, each in value.items()}
        return {key: each for key, each in items.items() if each is not None or key == "answer"}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise InputError("a record holds an infinite number; every number must be finite")
    return value
