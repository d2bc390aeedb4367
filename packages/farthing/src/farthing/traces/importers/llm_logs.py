"""The logs of Simon Willison's `llm`, as `llm logs --json -n 0` writes them: one call a record.

Turns of one conversation follow one another. Source: `log_rows_as_json` in llm's `cli.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farthing.models.usage import read_usage
from farthing.traces.importers.base import ImportedCall, ImportEvent, LeftOut, Options
from farthing.traces.importers.chat import failure_of, read_prompt
from farthing.traces.importers.row import FileRow
from farthing.traces.importers.source import Source
from farthing.traces.parameters import LIMIT, parameters_of

_FIELDS = {"conversation_id", "prompt", "response", "model", "duration_ms", "datetime_utc"}
_NO_SYSTEM = {"role": "system", "content": ""}
_NAMED = 20
"""Characters of a conversation's name that are sure to be those of its first prompt."""


@dataclass(frozen=True)
class LlmLogs:
    """Reads one call a record, with the turns before it."""

    name: str = "llm"
    meaning: str = "the logs of the command llm, as JSON"

    def sniff(self, source: Source) -> bool:
        """Return whether the fields are those that the command writes."""
        return source.fields >= _FIELDS

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:  # noqa: ARG002 - the protocol's
        """Yield the calls in the order in which they were made."""
        said: dict[str, list[dict[str, Any]]] = {}
        for row in sorted(source.rows(), key=lambda row: str(row.values.get("datetime_utc"))):
            talk = row.text("conversation_id") or ""
            asked = _asked(row)
            before = said.get(talk, [])
            name = " ".join((row.text("conversation_name") or "").split())[:_NAMED]
            if not before and not " ".join((row.text("prompt") or "").split()).startswith(name):
                yield LeftOut("a turn whose conversation began before; `-n 0` writes all of it")
                continue
            turns = [_system(row) or (before or [_NO_SYSTEM])[0], *before[1:], asked]
            yield _recorded(row, turns)
            reply = {"role": "assistant", "content": row.text("response") or ""}
            said[talk] = [*turns, reply]


LLM_LOGS = LlmLogs()


def _asked(row: FileRow) -> dict[str, Any]:
    """Return what a turn said to the model: fragments, prompt, files, results of tools."""
    beside = [*_list(row, "attachments"), *_list(row, "tool_results")]
    texts = [*_texts(row, "prompt_fragments"), row.text("prompt") or ""]
    return {"role": "user", "content": ["\n".join(filter(None, texts)), *beside]}


def _system(row: FileRow) -> dict[str, Any] | None:
    """Return the system prompt; a turn without one has that of the turn before."""
    texts = [*_texts(row, "system_fragments"), row.text("system")]
    said = "\n".join(filter(None, texts))
    return {"role": "system", "content": said} if said else None


def _recorded(row: FileRow, turns: list[dict[str, Any]]) -> ImportedCall | LeftOut:
    model = row.text("model")
    prompt = read_prompt(turns)
    if prompt is None or model is None:
        return LeftOut("a call without its prompt or its model")
    counted = {name: row.find(name)[1] for name in ("input_tokens", "output_tokens")}
    used = read_usage({**counted, **row.part("token_details").values})
    milliseconds = row.number("duration_ms")
    schema = row.inner("schema_json")
    said = {**row.part("options_json").values, "response_format": schema}
    return ImportedCall(
        place=row.place,
        model=model,
        **vars(prompt),
        asked_at=row.when("datetime_utc"),
        parameters=parameters_of(said, LIMIT),
        text=row.text("response"),
        usages=() if used is None else (used,),
        latency_s=None if milliseconds is None else milliseconds / 1_000,
        error=failure_of(row.inner("response_json")),
        priced_as=row.text("resolved_model"),
    )


def _list(row: FileRow, name: str) -> list[Any]:
    found = row.inner(name)
    return found if isinstance(found, list) else []


def _texts(row: FileRow, name: str) -> list[str]:
    return [str(one.get("content", one)) for one in _list(row, name) if isinstance(one, dict)]
