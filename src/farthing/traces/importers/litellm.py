"""LiteLLM's spend log: rows of the table `LiteLLM_SpendLogs`, as JSON, JSON Lines or CSV.

Prompts and replies are in it where the proxy was told to keep them (`store_prompts_in_spend_logs`);
long ones are cut there. Source: `schema.prisma` and the page on spend logs of BerriAI/litellm.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from farthing.traces.base import CallError
from farthing.traces.importers.base import Found, LeftOut, Options, Recorded, Remark
from farthing.traces.importers.chat import Asked, asked, replied
from farthing.traces.importers.row import Row, seconds_between, without_keys
from farthing.traces.importers.source import Source

CUT = "litellm_truncated"
"""Stands where the proxy cut a long text."""
_CHAT = ("completion", "responses", "anthropic_messages", "generate_content")
"""What the names of calls end in that answer a question."""
_NO_TEXTS = "no prompt is stored; set store_prompts_in_spend_logs in the proxy's general_settings"


@dataclass(frozen=True)
class LiteLLM:
    """Reads one call a row."""

    name: str = "litellm"
    meaning: str = "LiteLLM's spend log (LiteLLM_SpendLogs)"

    def sniff(self, source: Source) -> bool:
        """Return whether the columns are those of the table."""
        return {"request_id", "spend", "model"} <= source.fields

    def read(self, source: Source, options: Options) -> Iterator[Found]:  # noqa: ARG002 - protocol
        """Yield the calls that answered a question, or failed to."""
        for row in source.rows():
            found = _found(row)
            yield found
            if isinstance(found, Recorded) and CUT in f"{found.key}{found.text}":
                yield Remark(
                    "LiteLLM cut long texts, so that different questions may look alike; raise "
                    "MAX_STRING_LENGTH_PROMPT_IN_DB where the proxy runs"
                )


LITELLM = LiteLLM()


def _found(row: Row) -> Recorded | LeftOut:
    kind = row.text("call_type")
    if kind is not None and not kind.endswith(_CHAT):
        return LeftOut(f"a call of the type {kind}, which answers no question")
    prompt = _prompt(row)
    if prompt is None:
        return LeftOut(_NO_TEXTS)
    model = row.text("model", "model_group")
    if model is None:
        return LeftOut("a call that names no model")
    answer = row.find("response")[1]
    milliseconds = row.number("request_duration_ms")
    return Recorded(
        place=row.place,
        model=model,
        question=prompt.question,
        key=prompt.key,
        text=replied(answer) if answer not in ({}, "{}") else None,
        cost_usd=row.paid("spend"),
        input_tokens=row.count("prompt_tokens"),
        output_tokens=row.count("completion_tokens"),
        latency_s=_seconds(row) if milliseconds is None else milliseconds / 1_000,
        error=_error(row),
        provider=row.text("custom_llm_provider"),
    )


def _prompt(row: Row) -> Asked | None:
    """Return what was asked: the messages, or those of the request as the proxy got it."""
    for field in ("messages", "proxy_server_request"):
        value = row.find(field)[1]
        if value not in (None, {}, [], "{}", "[]"):
            inside = row.inner(field)
            body = inside.get("body", inside) if isinstance(inside, dict) else inside
            prompt = asked(value if inside is None else body)
            if prompt is not None:
                return prompt
    return None


def _seconds(row: Row) -> float | None:
    return seconds_between(row.values.get("startTime"), row.values.get("endTime"))


def _error(row: Row) -> CallError | None:
    if row.text("status") != "failure":
        return None
    failure = row.part("metadata").part("error_information")
    kind = failure.text("error_class", "error_code") or "error"
    message = failure.text("error_message") or "no message"
    return CallError(type=kind, message=without_keys(message)[:300])
