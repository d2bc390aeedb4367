"""Whether a reply with a good status failed all the same, and why: what failed is no answer.

It costs what it says that it used, and nothing where it does not say. Sources: the references of
OpenAI, Anthropic, OpenRouter, DeepSeek, Zhipu, Mistral and Gemini on errors and finish reasons.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from farthing.errors import (
    FilteredReplyError,
    IncompleteReplyError,
    ModelConnectionError,
    ModelError,
)
from farthing.models.base import Usage
from farthing.models.http_failures import ADVICE, EXCERPT, kind_of
from farthing.models.usage import read_usage

_BROKE = re.compile(
    r"error(?!_toxic).*|.*_error|abort(ed)?|(user_)?cancel(l?ed)?|failed|insufficient_.*|timeout"
    r"|interrupted|.*overloaded|(function_call_filter.*)?malformed_.*"
)
"""Finish reasons of a choice that its provider gave up."""
_FILTERED = re.compile(
    r"content_filter.*|blocklist|error_toxic|guardrail_intervened|(image_)?safety(_filter)?"
    r"|(image_)?(prohibited_content|recitation)|moderation|refusal|sensitive|spii|unsafe"
)
"""Finish reasons of a choice that a filter took away."""
_CUT = frozenset({"max_output_tokens", "max_tokens", "length"})
_SIGNS = re.compile(
    rb'"(errors?|detail|msg|status|base_resp)"|"(finish_reason|stop_reason|message)"\s*:\s*"'
    rb'|"response\.failed"'
)
"""Where none of these is, nothing failed."""
_REPLIES = ("choices", "output", "content", "data", "type")
"""Fields of replies and their events; what has none may say in plain words that it failed."""
_WORDS = ("message", "msg", "status_msg", "detail")
_NAMES = (
    (re.compile(r"[45]\d\d"), None),
    (re.compile(r"quota|billing|credit|auth|api_key|permission"), 401),
    (re.compile(r"rate.?limit|throttl|too_many"), 429),
    (re.compile(r"too_large"), 413),
    (re.compile(r"invalid|not_found|content_|_length|policy"), 400),
)
"""What an error's code or type says, to the status that goes with it; None: that is one."""


@dataclass(frozen=True)
class ReplyFailure:
    """Why a reply is no answer."""

    kind: type[ModelError]
    said: str
    """In its provider's words, where it has some."""
    used: Usage | None = None
    """What it says that it took; None: it does not say."""
    mild: bool = False
    """Whether it was only cut or filtered."""

    @property
    def passes(self) -> bool:
        """Whether a client is to have it, which is never evidence: it says what it used."""
        return self.mild and self.used is not None

    def error(self, place: str, cost_nano: int | None, hide: Callable[[str], str]) -> ModelError:
        """Return the error that it means, at what was billed, or else what `used` costs by list."""
        plain, words, used = f"{place}: {ADVICE[self.kind]}", hide(self.said), self.used
        billed = used.billed_nano if used else 0
        found = self.kind(f"{plain}: {words}", cost_nano=cost_nano if billed is None else billed)
        found.plain, found.said = plain, words
        found.used = (used.input_tokens, used.output_tokens) if used else None
        return found


def failure_in(body: bytes) -> ReplyFailure | None:
    """Return why JSON that came is no answer; raises one of `UNREADABLE` where it is none."""
    return reply_failure(msgspec.json.decode(body)) if _SIGNS.search(body) else None


def reply_failure(reply: Any) -> ReplyFailure | None:
    """Return why a decoded reply is no answer; None where nothing in it says so.

    Args:
        reply: a chat completion, a text completion, a response or a message, whole or as a log has
            it, or one chunk or event of a stream.

    >>> reply_failure({"choices": [{"finish_reason": "stop"}], "error": None})
    >>> reply_failure({"error": {"message": "slow down", "code": 429}}).kind.kind
    'rate_limit'
    >>> reply_failure({"choices": [{"finish_reason": "content_filter"}]}).kind.kind
    'filtered'
    """
    if isinstance(reply, list) and len(reply) == 1:  # as Gemini wraps its errors
        return reply_failure(reply[0])
    if not isinstance(reply, Mapping):
        return None
    if (kind := str(reply.get("type"))).startswith("response."):
        ended, inner = kind.removeprefix("response."), reply.get("response")
        whole = inner if isinstance(inner, Mapping) else {}
        ends = ended in {"completed", "incomplete", "failed", "cancelled"}
        return reply_failure({"status": ended, "output": [], **whole}) if ends else None
    found = _why(reply)
    if found is None:
        return None
    if (used := read_usage(said := reply.get("usage"), reply)) is not None:
        free = isinstance(said, Mapping) and said.get("cost") == 0 and not said.get("is_byok")
        used = replace(used, billed_nano=0 if free else used.billed_nano, unknown=())
    return replace(found, used=used)


def _why(reply: Mapping[str, Any]) -> ReplyFailure | None:
    listed = reply.get("choices")
    inner = [*(listed if isinstance(listed, list) else []), reply.get("delta")]
    ends = [reply, *(one for one in inner if isinstance(one, Mapping))]
    errors = [error for one in ends if (error := one.get("error"))]
    if not any(reply.get(name) for name in _REPLIES):  # FastAPI, MiniMax, Zhipu
        told = [reply.get(name) for name in ("errors", "base_resp", *_WORDS)]
        errors += [one for one in told if one and not isinstance(one, int | float)]
    if errors or "error" in (reply.get("type"), reply.get("object")):
        return _stated((errors or [reply])[0], reply)
    reasons = [str(one.get("finish_reason") or one.get("stop_reason")).lower() for one in ends]
    for reason in filter(_BROKE.fullmatch, reasons):
        return ReplyFailure(ModelConnectionError, f"it ended by {reason}")
    for reason in filter(_FILTERED.fullmatch, reasons):
        return ReplyFailure(FilteredReplyError, f"a filter ended it: {reason}", mild=True)
    response = reply.get("object") == "response" or "output" in reply
    return _by_status(reply) if response else None


def _stated(error: Any, beside: Mapping[str, Any]) -> ReplyFailure:
    inner = error.get("error") if isinstance(error, Mapping) else error
    if isinstance(inner, list | Mapping) and inner:
        return _stated(inner[0] if isinstance(inner, list) else inner, beside)
    fields = error if isinstance(error, Mapping) else {**beside, "message": inner}
    named = (fields.get(name) for name in ("code", "status", "type", "error_type"))
    names = [str(name).lower() for name in named if name]
    said = next((one for name in _WORDS if (one := fields.get(name))), inner)
    words = " ".join(str(said or " ".join(names)).split())
    found = [
        status or int(match[0])
        for name in names
        for pattern, status in _NAMES
        if (match := pattern.fullmatch(name) if status is None else pattern.search(name))
    ]
    kind = kind_of(next(iter(found), 500), f"{names} {words}".lower())
    return ReplyFailure(kind, words[:EXCERPT])


def _by_status(response: Mapping[str, Any]) -> ReplyFailure | None:
    status, details = str(response.get("status")), response.get("incomplete_details")
    if status in {"failed", "cancelled", "in_progress", "queued"}:
        return ReplyFailure(ModelConnectionError, f"its status is {status}")
    if status != "incomplete":
        return None
    reason = str(details.get("reason")) if isinstance(details, Mapping) else "no reason given"
    kind = FilteredReplyError if _FILTERED.fullmatch(reason) else IncompleteReplyError
    return ReplyFailure(kind, f"its status is incomplete: {reason}", mild=reason in _CUT)
