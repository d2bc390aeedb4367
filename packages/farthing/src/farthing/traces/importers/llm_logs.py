"""The logs of Simon Willison's `llm`, as `llm logs --json -n 0` writes them: one call a record.

Turns of one conversation follow one another. Source: `log_rows_as_json` in llm's `cli.py`.
"""

from collections.abc import Iterator
from typing import Any

from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    LeftOut,
    Options,
    usages_of,
)
from farthing.traces.importers.chat import failure_of, read_prompt
from farthing.traces.importers.row import FileRow
from farthing.traces.importers.source import Source
from farthing.traces.system import LIMIT, parameters_of

_FIELDS = {"conversation_id", "prompt", "response", "model", "duration_ms", "datetime_utc"}
_NO_SYSTEM = {"role": "system", "content": ""}
_NAMED = 20
"""Characters of a conversation's name that are sure to be those of its first prompt."""


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:  # noqa: ARG001 - every importer's
    said: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(source.rows(), key=lambda row: str(row.values.get("datetime_utc"))):
        talk, prompt = row.text("conversation_id") or "", row.text("prompt") or ""
        before = said.get(talk, [])
        name = " ".join((row.text("conversation_name") or "").split())[:_NAMED]
        if not before and not " ".join(prompt.split()).startswith(name):
            yield LeftOut("a turn whose conversation began before; `-n 0` writes all of it")
            continue
        # A turn without a system prompt has that of the turn before.
        system = "\n".join(filter(None, [*_texts(row, "system_fragments"), row.text("system")]))
        first = {"role": "system", "content": system} if system else (before or [_NO_SYSTEM])[0]
        asked = "\n".join(filter(None, [*_texts(row, "prompt_fragments"), prompt]))
        beside = [*_list(row, "attachments"), *_list(row, "tool_results")]
        turns = [first, *before[1:], {"role": "user", "content": [asked, *beside]}]
        yield _recorded(row, turns)
        said[talk] = [*turns, {"role": "assistant", "content": row.text("response") or ""}]


LLM_LOGS = Importer(
    name="llm",
    meaning="the logs of the command llm, as JSON",
    sniff=lambda source: source.fields >= _FIELDS,
    read=_read,
)


def _recorded(row: FileRow, turns: list[dict[str, Any]]) -> ImportedCall | LeftOut:
    model, prompt = row.text("model"), read_prompt(turns)
    if prompt is None or model is None:
        return LeftOut("a call without its prompt or its model")
    counted = {name: row.find(name)[1] for name in ("input_tokens", "output_tokens")}
    schema = row.inner("schema_json")
    said = {**row.part("options_json").values, "response_format": schema}
    return ImportedCall(
        place=row.place,
        model=model,
        **vars(prompt),
        asked_at=row.when("datetime_utc"),
        parameters=parameters_of(said, LIMIT),
        text=row.text("response"),
        usages=usages_of({**counted, **row.part("token_details").values}),
        latency_s=row.seconds("duration_ms"),
        error=failure_of(row.inner("response_json")),
        priced_as=row.text("resolved_model"),
    )


def _list(row: FileRow, name: str) -> list[Any]:
    found = row.inner(name)
    return found if isinstance(found, list) else []


def _texts(row: FileRow, name: str) -> list[str]:
    return [str(one.get("content", one)) for one in _list(row, name) if isinstance(one, dict)]
