"""Foreign files as traces: which importer reads a file, and what the traces then lack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import msgspec

from farthing import plugins
from farthing.errors import InputError, MissingExtraError
from farthing.models.prices import Price, list_price
from farthing.traces.base import Trace
from farthing.traces.importers.base import ImportedCall, Importer, ImportEvent, Options
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.gather import group_calls, trace_of
from farthing.traces.importers.missing_fields import (
    AcceptedAnswers,
    TokenCosts,
    notes_on,
    read_gold,
    with_gold,
)
from farthing.traces.importers.row import RowPlace
from farthing.traces.importers.source import Source
from farthing.traces.importers.table import columns_of, known
from farthing.traces.jsonl import LINES
from farthing.traces.trace_kind import Checker

OWN = "jsonl"
"""What `--from` calls our own form, which no importer reads: see `traces/jsonl.py`."""
_LAST = "table"
"""Any table may look like one of calls; so other importers are asked first."""


@dataclass(frozen=True, kw_only=True)
class Supplied:
    """What the user says of the files."""

    task: str = "text"
    """How answers are read and compared."""
    gold: Path | None = None
    """A file of accepted answers."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """What models cost, for calls without a recorded cost."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Name of a model in the files to the one that it is to have."""
    requests: tuple[Path, ...] = ()
    """The input files of OpenAI's batches: one, or one for each file."""
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Imported:
    """Traces, where each stands in its file, and what they lack."""

    traces: list[Trace]
    places: list[RowPlace]
    """Of each trace's first call."""
    notes: list[str]
    """A line for each thing that was left out, worked out, or is not known."""
    messages: Mapping[str, Messages | None] = field(default_factory=dict)
    """What was sent, whole, by question; None where it was more than texts."""
    period: tuple[datetime, datetime] | None = None
    """When the first and the last call was made; None where no file says."""


def names() -> list[str]:
    """Return what `--from` takes, our own form included.

    >>> names()
    ['inspect', 'jsonl', 'langfuse', 'litellm', 'llm', 'llmrouterbench', 'openai', 'promptfoo', \
'routerarena', 'routerbench', 'table']
    """
    return sorted({OWN, *plugins.names("importers")})


def importer(name: str) -> Importer:
    """Return the importer of a format."""
    found: Importer = plugins.load("importers", name)
    return found


def sniffed(path: str | Path, options: Options | None = None) -> str:
    """Return the format of a file, going by its first record; one with mapped columns is a table.

    A file that is named as traces are, and looks like nothing else, is taken for traces, whose
    reader says best what is wrong with it.
    """
    return _sniffed(Source(path), options or Options())


def _sniffed(source: Source, options: Options) -> str:
    named_so = source.path.name.endswith(LINES)
    try:
        first = source.first
    except InputError:
        if named_so:
            return OWN
        raise
    if first is None and named_so:
        return OWN
    if first is None:
        raise InputError(f"{source.name}: holds no records")
    if isinstance(first.values.get("calls"), list):
        return OWN
    found = [name for name in plugins.names("importers") if importer(name).sniff(source)]
    found = [name for name in found if name != _LAST] or found
    if not found and options.columns:
        return _LAST
    if len(found) == 1 or (named_so and not found):
        return found[0] if found else OWN
    columns = "" if found or source.kind != "csv" else _lacking(source)
    what = f"may be {' or '.join(found)}" if found else "looks like none of the known formats"
    raise InputError(
        f"{source.name}: {what}; name its format with --from ({', '.join(names())}){columns}"
    )


def _lacking(source: Source) -> str:
    """Return how to name the columns of a table none of which is known."""
    if known(source.fields):
        columns_of(source, Options())
    return ", or the columns of a table of calls with --column model=COLUMN and so on"


def read_foreign(
    paths: Sequence[str | Path | Source], form: str | None = None, supplied: Supplied | None = None
) -> Imported:
    """Read files of other tools as one pool of traces; calls of one question come together.

    Args:
        paths: the files; often one a model. Or sources, such as records in memory.
        form: the name of their format; None: each is looked at.
        supplied: what the files do not say.
    """
    supplied = supplied or Supplied()
    plugins.load("tasks", supplied.task)
    if len(supplied.requests) not in {0, 1, len(paths)}:
        given = len(supplied.requests)
        raise InputError(f"{len(paths)} files and {given} of requests; give one, or one for each")
    gold = None if supplied.gold is None else read_gold(supplied.gold)
    found = (
        _aliased(call, supplied.aliases)
        for i, path in enumerate(paths)
        for call in _found(
            path if isinstance(path, Source) else Source(path), form, _options(supplied, i)
        )
    )
    gathered = group_calls(found, samples=supplied.options.samples)
    questions = gathered.questions
    if not questions:
        why = "; ".join(f"{n} rows: {why}" for why, n in gathered.left_out.items())
        raise InputError(f"{', '.join(map(str, paths))}: holds no calls{why and f' ({why})'}")
    priced = TokenCosts(supplied.prices, published)
    traces = []
    for name, question in questions.items():
        trace = trace_of(name, question, supplied.task)
        also = [call.also for call in question.recorded]
        calls = [priced.fill(call, question.calls[call.role, call.round]) for call in trace.calls]
        traces.append(msgspec.structs.replace(with_gold(trace, gold, also), calls=calls))
    _refuse_unmatched(gold)
    places = [question.first.place for question in questions.values()]
    notes = notes_on(traces, gathered, priced, supplied.options)
    return Imported(traces, places, notes, gathered.messages, gathered.period)


def check(imported: Imported, checker: Checker) -> None:
    """Refuse traces that break the form, or do not fit those that they are to stand beside."""
    for place, trace in zip(imported.places, imported.traces, strict=True):
        for _, where, problem in checker.problems(trace, place.line or 1):
            raise place.refusal(where, problem)


def _found(source: Source, form: str | None, options: Options) -> Iterator[ImportEvent]:
    form = form or _sniffed(source, options)
    if form == OWN:
        raise InputError(f"{source.name}: is in the form of traces already; import it by itself")
    reader = importer(form)
    if options.samples and not getattr(reader, "samples", False):
        every = sorted(plugins.names("importers"))
        readers = ", ".join(name for name in every if getattr(importer(name), "samples", False))
        raise InputError(
            f"{source.name}: {form} does not say which of its calls are samples of their own; "
            f"--samples reads {readers}"
        )
    _refuse_unread(source, form, options.columns, getattr(reader, "columns", ()))
    yield from reader.read(source, options)


def _aliased(found: ImportEvent, aliases: Mapping[str, str]) -> ImportEvent:
    """Return a call under its model's new name, at the price that the old one has."""
    if not isinstance(found, ImportedCall) or found.model not in aliases:
        return found
    return replace(found, model=aliases[found.model], priced_as=found.priced_as or found.model)


def _refuse_unread(
    source: Source, form: str, mapped: Mapping[str, str], read: Sequence[str]
) -> None:
    """Refuse columns that nobody would read, so that no mapping is ignored."""
    if form == _LAST:  # which says itself what is wrong with a name
        return
    for meaning, column in mapped.items():
        if meaning not in read:
            raise InputError(
                f"{source.name}: {form} reads no --column {meaning}={column}; leave it out, or "
                f"read the file as a table of calls (--from {_LAST})"
            )
        if column not in source.fields:
            there = ", ".join(sorted(source.fields))
            raise InputError(f"{source.name}: has no column {column}; there are {there}")


def _options(supplied: Supplied, i: int) -> Options:
    if not supplied.requests:
        return supplied.options
    several = len(supplied.requests) > 1
    return replace(supplied.options, requests=supplied.requests[i if several else 0])


def published(model: str, provider: str | None) -> Price | None:
    """Return a list price; without the library that has them, none is known."""
    try:
        return list_price(model.removeprefix(f"{provider}/"), provider)
    except MissingExtraError:
        return None


def _refuse_unmatched(gold: AcceptedAnswers | None) -> None:
    if gold is not None and not gold.used:
        raise InputError(
            f"{gold.path}: none of its questions is in the imported files, by id or by text; "
            "check how they are named"
        )
