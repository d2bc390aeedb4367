"""OpenAI's batch output, and stored chat completions.

A line of a batch's output has `custom_id`, and a `response` with its `body`, or an `error`. What
was asked stands in the batch's input file, under the same `custom_id`. Stored completions are
`chat.completion` objects, as a list of the interface or one a line; what was asked has to be put
beside each as `messages`. Source: the OpenAPI description of OpenAI's API (`BatchRequestOutput`,
`BatchRequestInput`, `ChatCompletionList`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.models.usage import read_usage
from farthing.traces.base import CallError
from farthing.traces.importers.base import ImportedCall, ImportEvent, ImportNote, LeftOut, Options
from farthing.traces.importers.chat import (
    OBJECTS,
    LoggedPrompt,
    failure_of,
    read_prompt,
    read_reply,
)
from farthing.traces.importers.row import FileRow, call_error
from farthing.traces.importers.source import Source
from farthing.traces.parameters import KNOWN, parameters_of

_NO_QUESTIONS = (
    "what was asked is not in the output, so that the questions' texts are not known; "
    "--requests FILE names the batch's input"
)
_BATCH_PRICE = "batches are billed below list price; --price MODEL=IN,OUT has what you paid"
Requests = Mapping[str, FileRow]
"""`custom_id` to the body of the request."""


@dataclass(frozen=True)
class OpenAI:
    """Reads one call a line, or an element of a list."""

    name: str = "openai"
    meaning: str = "OpenAI's batch output, or stored chat completions"
    samples: bool = True

    def sniff(self, source: Source) -> bool:
        """Return whether records are lines of a batch, or completions."""
        batch = "custom_id" in source.fields and source.fields & {"response", "error", "body"}
        return bool(batch) or _kind(source.first) in OBJECTS

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield a call for each reply and each failure whose model is known."""
        requests = None if options.requests is None else _requests(Source(options.requests))
        if "custom_id" in source.fields:
            yield ImportNote(_BATCH_PRICE)
            if requests is None:
                yield ImportNote(_NO_QUESTIONS)
        for row in source.rows():
            if options.samples:
                _refuse_choices(row)
            yield _of_batch(row, requests) if "custom_id" in row.values else _stored(row)


OPENAI = OpenAI()


def _kind(row: FileRow | None) -> str | None:
    kind = row.values.get("object") if row else None
    return kind if isinstance(kind, str) else None


def _refuse_choices(row: FileRow) -> None:
    """Refuse samples that came together: what each of them cost is not known."""
    response = row.part("response").part("body") if "custom_id" in row.values else row
    choices = response.values.get("choices")
    if isinstance(choices, list) and len(choices) > 1:
        problem = f"are {len(choices)} in one reply, whose tokens are counted together"
        raise row.place.refusal("choices", f"{problem}; as samples import replies of one choice")


def _requests(source: Source) -> Requests:
    found: dict[str, FileRow] = {}
    for row in source.rows():
        name, body = row.text("custom_id"), row.part("body")
        if name is None or not body.values:
            field = "body" if name else "custom_id"
            raise row.place.refusal(field, "is missing; this is no line of a batch's input")
        found[name] = body
    return found


def _of_batch(row: FileRow, requests: Requests | None) -> ImportedCall | LeftOut:
    name = row.text("custom_id")
    if name is None:
        raise row.place.refusal("custom_id", "is missing; this is no line of a batch's output")
    if "method" in row.values and "response" not in row.values:
        raise row.place.refusal(
            "method", "belongs to a batch's input; import its output, and give this as --requests"
        )
    request = _request(row, name, requests)
    response = row.part("response")
    body = response.part("body")
    model = request.text("model") or body.text("model")
    if model is None:
        return LeftOut("a failed call of a model that is not named; --requests FILE names it")
    prompt = read_prompt(dict(request.values)) if request.values else None
    status = response.count("status_code")
    failure = row.part("error") if row.part("error").values else body.part("error")
    parameters = parameters_of(request.values) if request.values else None
    if failure.values or (status is not None and status >= 400):
        error = _error(failure, status)
        return _recorded(row, model, prompt, FileRow({}, row.place), parameters, error)
    return _recorded(row, model, prompt, body, parameters)


def _request(row: FileRow, name: str, requests: Requests | None) -> FileRow:
    if requests is None:
        return FileRow({}, row.place)
    if name not in requests:
        problem = f"'{name}' is not in the file of requests; give the input of this very batch"
        raise row.place.refusal("custom_id", problem)
    return requests[name]


def _stored(row: FileRow) -> ImportedCall | LeftOut:
    kind = _kind(row)
    if kind not in OBJECTS:
        raise row.place.refusal("object", "is no completion and no response; nothing can be read")
    model = row.text("model")
    if model is None:
        raise row.place.refusal("model", "is missing; every completion has it")
    request = row.part("request")
    prompt = read_prompt(dict(request.values)) if request.values else None
    for field in ("messages", "input_messages", "input", "prompt"):
        prompt = prompt or read_prompt(_with_instructions(row, field))
    if prompt is None:
        return LeftOut("a completion without what was asked; put it beside as `messages`")
    said = request.values or (row.values if KNOWN & row.values.keys() else None)
    return _recorded(row, model, prompt, row, None if said is None else parameters_of(said))


def _with_instructions(row: FileRow, field: str) -> Any:
    """Return what was asked; a response keeps its system prompt beside it."""
    value, instructions = row.values.get(field), row.values.get("instructions")
    return {"input": value, "instructions": instructions} if value and instructions else value


def _recorded(
    row: FileRow,
    model: str,
    prompt: LoggedPrompt | None,
    body: FileRow,
    parameters: Mapping[str, Any] | None,
    error: CallError | None = None,
) -> ImportedCall:
    name = row.text("custom_id")
    used = read_usage(body.inner("usage"), body.values)
    return ImportedCall(
        place=row.place,
        model=model,
        id=None if prompt else name,
        also=name,
        **(vars(prompt) if prompt else {}),
        asked_at=body.when("created", "created_at"),
        parameters=parameters,
        text=read_reply(dict(body.values)),
        usages=() if used is None else (used,),
        error=error or failure_of(dict(body.values)),
        provider="openai",
    )


def _error(failure: FileRow, status: int | None) -> CallError:
    kind = failure.text("code", "type") or (f"status {status}" if status else "error")
    return call_error(failure.text("message"), kind)
