"""Langfuse's export of observations: JSON, JSON Lines, CSV or Parquet.

The columns are in snake case in exports to blob storage and in camel case in those from the user
interface and the API; both are read. Of observations, those of the type GENERATION are calls.
Source: Langfuse's "Blob storage export field reference" and the API's `ObservationsView`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farthing.models.base import Usage
from farthing.models.usage import read_usage
from farthing.traces.importers.base import ImportedCall, ImportEvent, LeftOut, Options
from farthing.traces.importers.chat import failure_of, read_prompt, read_reply
from farthing.traces.importers.row import (
    FileRow,
    RowPlace,
    call_error,
    seconds_between,
)
from farthing.traces.importers.source import Source
from farthing.traces.parameters import parameters_of

_MODEL = ("provided_model_name", "providedModelName", "model")
_START, _END = ("start_time", "startTime"), ("end_time", "endTime")
_TRACE = {"trace_id", "traceId"}
_COST = ("total_cost", "totalCost", "calculatedTotalCost", "calculated_total_cost")


@dataclass(frozen=True)
class Langfuse:
    """Reads one observation a record; those within a trace are looked up there."""

    name: str = "langfuse"
    meaning: str = "Langfuse's export of observations (generations)"

    def sniff(self, source: Source) -> bool:
        """Return whether records are observations, or traces that hold some."""
        fields = source.fields
        if source.first and isinstance(source.first.inner("observations"), list):
            return True
        start = fields & {*_START}
        return bool({"input", "output"} <= fields and start and fields & {*_MODEL, *_TRACE})

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield the generations; other observations are counted."""
        for row in source.rows():
            inside = row.inner("observations")
            if not isinstance(inside, list):
                yield _found(row, options)
                continue
            for i, values in enumerate(inside):
                path = ".".join(part for part in (row.place.path, f"observations[{i}]") if part)
                place = RowPlace(row.place.file, row.place.line, path)
                if not isinstance(values, dict):
                    raise place.refusal("observations", f"[{i}] is no object")
                yield _found(FileRow(values, place), options)


LANGFUSE = Langfuse()


def _found(row: FileRow, options: Options) -> ImportedCall | LeftOut:
    kind = row.text("type")
    if kind is not None and kind.upper() != "GENERATION":
        return LeftOut(f"an observation of the type {kind}, which is no call")
    model = row.text(*_MODEL)
    if model is None:
        return LeftOut("a generation that names no model")
    prompt = read_prompt(row.find("input")[1])
    if prompt is None:
        return LeftOut("a generation without its input; export the group of fields `io`")
    latency = seconds_between(*(row.find(*names)[1] for names in (_START, _END)))
    score = _score(row, options.score)
    used = _usage(row)
    output = row.find("output")[1]
    stated = row.text("statusMessage", "status_message")
    error = call_error(stated) if row.text("level") == "ERROR" else failure_of(output)
    return ImportedCall(
        place=row.place,
        model=model,
        **vars(prompt),
        asked_at=row.when(*_START),
        parameters=_parameters(row),
        text=read_reply(output),
        correct=options.grade(score),
        score=score,
        cost_usd=_cost(row),
        usages=() if used is None else (used,),
        latency_s=row.number("latency") if latency is None else latency,
        error=error,
    )


def _parameters(row: FileRow) -> dict[str, Any] | None:
    """Return what the client told Langfuse of its parameters; nothing is not known to be none.

    Tools stand beside the messages, where there are some.
    """
    said, beside = row.part("model_parameters", "modelParameters").values, row.part("input").values
    tools = {name: beside[name] for name in ("tools", "functions") if name in beside}
    return parameters_of({**tools, **said}) if said else None


def _usage(row: FileRow) -> Usage | None:
    details = row.inner("usage_details", "usageDetails", "usage")
    if (found := read_usage(details)) is not None:
        return found
    read = row.find("inputUsage", "promptTokens", "input_tokens")[1]
    return read_usage(
        {"input": read, "output": row.find("outputUsage", "completionTokens", "output_tokens")[1]}
    )


def _cost(row: FileRow) -> float | None:
    """Return what Langfuse says that it cost; the parts add up where there is no total."""
    parts = row.part("cost_details", "costDetails")
    summed = sum(filter(None, map(parts.paid, parts.values))) or None
    return row.paid(*_COST) or parts.paid("total") or summed


def _score(row: FileRow, name: str | None) -> float | None:
    if name is None:
        return None
    if row.find(name)[1] is not None:
        return row.score(name)
    scores = row.inner("scores")
    if isinstance(scores, list):
        named = (s for s in scores if isinstance(s, dict) and s.get("name") == name)
        return FileRow(next(named, {}), row.place).score("value")
    value = row.part("scores").find(name)[1]
    return FileRow(
        {name: value[0] if isinstance(value, list) and value else value}, row.place
    ).score(name)
