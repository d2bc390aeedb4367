"""Langfuse's export of observations: JSON, JSON Lines, CSV or Parquet.

The columns are in snake case in exports to blob storage and in camel case in those from the user
interface and the API; both are read. Of observations, those of the type GENERATION are calls.
Source: Langfuse's "Blob storage export field reference" and the API's `ObservationsView`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from farthing.models.usage import count
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    LeftOut,
    Options,
    usages_of,
)
from farthing.traces.importers.chat import failure_of, read_prompt, read_reply
from farthing.traces.importers.row import FileRow, RowPlace, call_error, seconds_between
from farthing.traces.importers.source import Source
from farthing.traces.system import parameters_of

_MODEL = ("provided_model_name", "providedModelName", "model")
_START, _END = ("start_time", "startTime"), ("end_time", "endTime")
_TRACE = {"trace_id", "traceId"}
_COST = ("total_cost", "totalCost", "calculatedTotalCost", "calculated_total_cost")
_TIERED = re.compile(
    r"(?P<side>input|output)_(?P<tier>flex|priority)(_(?P<kind>cache_read|reasoning))?"
)
_WITHIN = {"cache_read": "cached_tokens", "reasoning": "reasoning_tokens"}


def _sniff(source: Source) -> bool:
    fields = source.fields
    if source.first and isinstance(source.first.inner("observations"), list):
        return True
    start = fields & {*_START}
    return bool({"input", "output"} <= fields and start and fields & {*_MODEL, *_TRACE})


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
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


LANGFUSE = Importer("langfuse", "Langfuse's export of observations (generations)", _sniff, _read)


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
    # What the client told Langfuse of its parameters; nothing is not known to be none. Tools stand
    # beside the messages, where there are some.
    said, beside = row.part("model_parameters", "modelParameters").values, row.part("input").values
    tools = {name: beside[name] for name in ("tools", "functions") if name in beside}
    score = _score(row, options.score)
    latency = seconds_between(row.find(*_START)[1], row.find(*_END)[1])
    counted = {
        "input": row.find("inputUsage", "promptTokens", "input_tokens")[1],
        "output": row.find("outputUsage", "completionTokens", "output_tokens")[1],
    }
    costs = row.part("cost_details", "costDetails")
    summed = sum(filter(None, map(costs.paid, costs.values))) or None
    output, stated = row.find("output")[1], row.text("statusMessage", "status_message")
    return ImportedCall(
        place=row.place,
        model=model,
        **vars(prompt),
        asked_at=row.when(*_START),
        parameters=parameters_of({**tools, **said}) if said else None,
        text=read_reply(output),
        correct=options.grade(score),
        score=score,
        cost_usd=row.paid(*_COST) or costs.paid("total") or summed,
        usages=usages_of(_by_tier(row.part("usage_details", "usageDetails", "usage")))
        or usages_of(counted),
        latency_s=row.number("latency") if latency is None else latency,
        error=call_error(stated) if row.text("level") == "ERROR" else failure_of(output),
    )


def _by_tier(counts: FileRow) -> Mapping[str, Any]:
    """Return counts under OpenAI's names where LangChain's callback wrote a tier into theirs.

    Each leaves the others of its side out, and at flex the whole side is said to be 0.
    """
    named = filter(None, map(_TIERED.fullmatch, counts.values))
    found = [(match, count(counts.values[match[0]]) or 0) for match in named]
    if not found:
        return counts.values
    usage: dict[str, Any] = {"service_tier": found[0][0]["tier"]}
    for side, name in (("input", "prompt_tokens"), ("output", "completion_tokens")):
        own = {match["kind"]: number for match, number in found if match["side"] == side}
        usage[name] = sum(own.values())
        usage[f"{name}_details"] = {_WITHIN[kind]: n for kind, n in own.items() if kind}
    return usage


def _score(row: FileRow, name: str | None) -> float | None:
    if name is None:
        return None
    if row.find(name)[1] is not None:
        return row.score(name)
    if isinstance(scores := row.inner("scores"), list):
        named = (s for s in scores if isinstance(s, dict) and s.get("name") == name)
        return FileRow(next(named, {}), row.place).score("value")
    value = row.part("scores").find(name)[1]
    value = value[0] if isinstance(value, list) and value else value
    return FileRow({name: value}, row.place).score(name)
