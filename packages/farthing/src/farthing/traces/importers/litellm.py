"""LiteLLM's spend log: rows of the table `LiteLLM_SpendLogs`, as JSON, JSON Lines or CSV.

So is what its callbacks write, a `StandardLoggingPayload` a call.

Prompts, parameters and replies are in it where the proxy was told to keep them
(`store_prompts_in_spend_logs`); long ones are cut there. Source: `schema.prisma` and the page on
spend logs of BerriAI/litellm.
"""

from collections.abc import Iterator
from typing import Any

from farthing.models.base import Usage
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
from farthing.traces.importers.chat import LoggedPrompt, failure_of, read_prompt, read_reply
from farthing.traces.importers.row import FileRow, call_error, seconds_between
from farthing.traces.importers.source import Source
from farthing.traces.system import parameters_of

_PAYLOAD = "standard_logging_object"
_FIELDS = (
    {"request_id", "spend", "model"}, {"response_cost", "call_type", "model"}, {_PAYLOAD}
)  # fmt: skip
"""What tells a row of the table, a callback's payload, and what callbacks get, which holds one."""
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
CUT = "litellm_truncated"
"""Stands where the proxy cut a long text."""
_CHAT = ("completion", "responses", "anthropic_messages", "generate_content")
"""What the names of calls end in that answer a question."""
_NO_TEXTS = "no prompt is stored; set store_prompts_in_spend_logs in the proxy's general_settings"


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
    """Yield the calls that answered a question, or failed to.

    Calls of one prompt are of one question, or those of one id, where a column is named so.
    """
    for outer in source.rows():
        row = outer.part(_PAYLOAD) if outer.part(_PAYLOAD).values else outer
        found = _found(row, options.columns.get("id"))
        yield found
        if isinstance(found, ImportedCall) and CUT in f"{found.key}{found.text}":
            yield ImportNote(
                "LiteLLM cut long texts, so that different questions may look alike; raise "
                "MAX_STRING_LENGTH_PROMPT_IN_DB where the proxy runs"
            )


LITELLM = Importer(
    name="litellm",
    meaning="LiteLLM's spend log (LiteLLM_SpendLogs)",
    sniff=lambda source: any(some <= source.fields for some in _FIELDS),
    read=_read,
    columns=("id",),
)


def _found(row: FileRow, names: str | None) -> ImportedCall | LeftOut:
    kind = row.text("call_type")
    if kind is not None and not kind.endswith(_CHAT):
        return LeftOut(f"a call of the type {kind}, which answers no question")
    prompt = _prompt(row)
    if prompt is None:
        return LeftOut(_NO_TEXTS)
    model = row.text("model", "model_group")
    if model is None:
        return LeftOut("a call that names no model")
    if names is not None and row.text(names) is None:
        raise row.place.refusal(names, "is missing; --column id names it as the question's id")
    answer = row.find("response")[1]
    return ImportedCall(
        place=row.place,
        model=model,
        id=None if names is None else row.text(names),
        question=prompt.question,
        key=prompt.key,
        system=None if CUT in (prompt.system or "") else prompt.system,
        history=None if CUT in (prompt.history or "") else prompt.history,
        messages=None if CUT in prompt.key else prompt.messages,
        asked_at=row.when("startTime"),
        parameters=_parameters(row),
        text=read_reply(answer) if answer not in ({}, "{}") else None,
        cost_usd=row.paid("spend", "response_cost"),
        usages=_usages(row),
        latency_s=_seconds(row),
        error=_error(row) or failure_of(answer),
        provider=row.text("custom_llm_provider"),
    )


def _prompt(row: FileRow) -> LoggedPrompt | None:
    """Return what was asked: the messages, or those of the request as the proxy got it.

    Anthropic's requests have their system prompt beside the messages, where these do not show it.
    """
    found: list[LoggedPrompt] = []
    for field in ("messages", "proxy_server_request"):
        value = row.find(field)[1]
        if value not in (None, {}, [], "{}", "[]"):
            inside = row.inner(field)
            body = inside.get("body", inside) if isinstance(inside, dict) else inside
            prompt = read_prompt(value if inside is None else body)
            found += [] if prompt is None else [prompt]
    return next((prompt for prompt in found if prompt.system), found[0] if found else None)


def _parameters(row: FileRow) -> dict[str, Any] | None:
    for field in ("proxy_server_request", "model_parameters", "optional_params"):
        inside = row.inner(field)
        body = inside.get("body", inside) if isinstance(inside, dict) else None
        if isinstance(body, dict) and body:
            found = parameters_of(body)
            return {name: None if CUT in str(value) else value for name, value in found.items()}
    return None


def _seconds(row: FileRow) -> float | None:
    """Return how long the model took; of a reply from the proxy's cache that is not known."""
    if (row.text("cache_hit") or "").casefold() == "true":
        return None
    if (taken := row.seconds("request_duration_ms")) is not None:
        return taken
    taken = seconds_between(row.when("startTime"), row.when("endTime"))
    return row.number("response_time") if taken is None else taken


def _usages(row: FileRow) -> tuple[Usage, ...]:
    reply = row.part("response")
    own = {name: n for name in _COUNTED if (n := row.find(name)[1]) is not None}
    parts = reply.part("usage").values, row.part("metadata").part("usage_object").values
    return usages_of({**parts[0], **parts[1], **own}, reply.values)


def _error(row: FileRow) -> CallError | None:
    if row.text("status") != "failure":
        return None
    failure = row.part("metadata").part("error_information")
    failure = failure if failure.values else row.part("error_information")
    kind = failure.text("error_class", "error_code") or "error"
    return call_error(failure.text("error_message") or row.text("error_str"), kind)
