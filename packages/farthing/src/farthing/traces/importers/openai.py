"""OpenAI's batch output, and stored chat completions.

A line of a batch's output has `custom_id`, and a `response` with its `body`, or an `error`. What
was asked stands in the batch's input file, under the same `custom_id`. Stored completions are
`chat.completion` objects, as a list of the interface or one a line; what was asked has to be put
beside each as `messages`. Source: the OpenAPI description of OpenAI's API (`BatchRequestOutput`,
`BatchRequestInput`, `ChatCompletionList`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from farthing.traces.base import CallError
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    ImportNote,
    LeftOut,
    Options,
    usages_of,
)
from farthing.traces.importers.chat import (
    OBJECTS,
    LoggedPrompt,
    failure_of,
    read_prompt,
    read_reply,
)
from farthing.traces.importers.row import FileRow, call_error
from farthing.traces.importers.source import Source
from farthing.traces.system import KNOWN, parameters_of

_NO_QUESTIONS = (
    "what was asked is not in the output, so that the questions' texts are not known; "
    "--requests FILE names the batch's input"
)
_BATCH_PRICE = "batches are billed below list price; --price MODEL=IN,OUT has what you paid"
Requests = Mapping[str, FileRow]
"""`custom_id` to the body of the request."""


def _sniff(source: Source) -> bool:
    batch = "custom_id" in source.fields and source.fields & {"response", "error", "body"}
    return bool(batch) or _kind(source.first) in OBJECTS


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
    requests = None if options.requests is None else _requests(Source(options.requests))
    if "custom_id" in source.fields:
        yield ImportNote(_BATCH_PRICE)
        if requests is None:
            yield ImportNote(_NO_QUESTIONS)
    for row in source.rows():
        batch = "custom_id" in row.values
        body = row.part("response").part("body") if batch and options.samples else row
        choices = body.values.get("choices") if options.samples else None
        if isinstance(choices, list) and len(choices) > 1:
            problem = f"are {len(choices)} in one reply, whose tokens are counted together"
            raise row.place.refusal(
                "choices", f"{problem}; as samples import replies of one choice"
            )
        yield _of_batch(row, requests) if batch else _stored(row)


OPENAI = Importer(
    name="openai",
    meaning="OpenAI's batch output, or stored chat completions",
    sniff=_sniff,
    read=_read,
    samples=True,
)


def _kind(row: FileRow | None) -> str | None:
    kind = row.values.get("object") if row else None
    return kind if isinstance(kind, str) else None


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
    if requests is not None and name not in requests:
        problem = f"'{name}' is not in the file of requests; give the input of this very batch"
        raise row.place.refusal("custom_id", problem)
    nothing = FileRow({}, row.place)
    request = nothing if requests is None else requests[name]
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
        kind = failure.text("code", "type") or (f"status {status}" if status else "error")
        error = call_error(failure.text("message"), kind)
        return _recorded(row, model, prompt, nothing, parameters, error)
    return _recorded(row, model, prompt, body, parameters)


def _stored(row: FileRow) -> ImportedCall | LeftOut:
    if _kind(row) not in OBJECTS:
        raise row.place.refusal("object", "is no completion and no response; nothing can be read")
    model = row.text("model")
    if model is None:
        raise row.place.refusal("model", "is missing; every completion has it")
    request, instructions = row.part("request"), row.values.get("instructions")
    prompt = read_prompt(dict(request.values)) if request.values else None
    for field in ("messages", "input_messages", "input", "prompt"):
        asked = row.values.get(field)
        if asked and instructions:  # a response keeps its system prompt beside it
            asked = {"input": asked, "instructions": instructions}
        prompt = prompt or read_prompt(asked)
    if prompt is None:
        return LeftOut("a completion without what was asked; put it beside as `messages`")
    said = request.values or (row.values if KNOWN & row.values.keys() else None)
    return _recorded(row, model, prompt, row, None if said is None else parameters_of(said))


def _recorded(
    row: FileRow,
    model: str,
    prompt: LoggedPrompt | None,
    body: FileRow,
    parameters: Mapping[str, Any] | None,
    error: CallError | None = None,
) -> ImportedCall:
    name = row.text("custom_id")
    return ImportedCall(
        place=row.place,
        model=model,
        id=None if prompt else name,
        also=name,
        **(vars(prompt) if prompt else {}),
        asked_at=body.when("created", "created_at"),
        parameters=parameters,
        text=read_reply(dict(body.values)),
        usages=usages_of(body.inner("usage"), body.values),
        error=error or failure_of(dict(body.values)),
        provider="openai",
    )
