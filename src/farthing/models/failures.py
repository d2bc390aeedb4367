"""Whether a reply with a good status failed all the same, and why: what failed is no answer.

A failed reply costs what it says that it used, and nothing where it does not say that. Sources:
OpenAI's references (chat completions, responses), Anthropic's (errors, stop reasons), OpenRouter's
(errors and debugging), DeepSeek's, Zhipu's and Mistral's lists of finish reasons.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.errors import (
    ContentRefusedError,
    IncompleteReplyError,
    ModelConnectionError,
    ModelError,
)
from farthing.models.http_failures import EXCERPT, REFUSED, kind_of

_BROKE = re.compile(
    r"error(ed)?|abort(ed)?|cancell?ed|failed|insufficient_system_resource|(model|network)_error"
    r"|timeout"
)
"""Finish reasons of a choice that its provider gave up."""
_FILTERED = re.compile(
    r"content_filter.*|blocklist|error_toxic|guardrail_intervened|(image_)?safety"
    r"|prohibited_content|recitation|refusal|sensitive|spii"
)
"""Finish reasons of a choice that a filter took away."""
_CUT = frozenset({"max_output_tokens", "max_tokens", "length"})
_UNFINISHED = frozenset({"failed", "cancelled", "in_progress", "queued"})
_STATUS = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "rate_limited": 429,
    "request_too_large": 413,
    "timeout_error": 504,
} | dict.fromkeys(REFUSED, 400)
"""The statuses that go with an error's `code` or `type`."""


@dataclass(frozen=True)
class ReplyFailure:
    """Why a reply is no answer."""

    kind: type[ModelError]
    said: str
    """In its provider's words, where it has some."""
    usage: Mapping[str, Any] | None = None
    """What it says that it used, as it came; None: it does not say."""
    passes: bool = False
    """Whether a client is to have it: it was cut or filtered, and says what it used."""


def reply_failure(reply: Any) -> ReplyFailure | None:
    """Return why a decoded reply is no answer; None where nothing in it says so.

    Args:
        reply: a chat completion, a text completion, a response or a message, whole or as a log has
            it, or one chunk or event of a stream.

    >>> reply_failure({"choices": [{"finish_reason": "stop"}], "error": None})
    >>> reply_failure({"error": {"message": "slow down", "code": 429}}).kind.kind
    'rate_limit'
    >>> found = reply_failure({"choices": [{"finish_reason": "content_filter"}], "usage": {"n": 1}})
    >>> found.kind.kind, found.passes
    ('refused', True)
    >>> cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    >>> reply_failure({"type": "response.incomplete", "response": cut}).kind.kind
    'incomplete'
    """
    if not isinstance(reply, Mapping):
        return None
    kind = str(reply.get("type"))
    if kind.startswith("response."):
        ended, inner = kind.removeprefix("response."), reply.get("response")
        whole = inner if isinstance(inner, Mapping) else {}
        ends = ended in {"completed", "incomplete", "failed", "cancelled"}
        return reply_failure({"status": ended, "output": [], **whole}) if ends else None
    listed = reply.get("choices")
    choices = [c for c in (listed if isinstance(listed, list) else ()) if isinstance(c, Mapping)]
    said = reply.get("usage")
    usage = said if isinstance(said, Mapping) and said else None
    errors = [error for one in (reply, *choices) if (error := one.get("error"))]
    if not errors and "error" in (kind, reply.get("object")):
        errors = [reply]
    if errors:
        return _stated(errors[0], usage)
    return next(_by_finish([reply, *choices], usage), None) or _by_status(reply, usage)


def _stated(error: Any, usage: Mapping[str, Any] | None) -> ReplyFailure:
    fields = error if isinstance(error, Mapping) else {"message": error}
    names = [fields.get(name) for name in ("code", "status", "type", "error_type")]
    known = (_status(name) for name in names)
    status = next((one for one in known if one is not None), 500)
    words = " ".join(str(fields.get("message") or next(filter(None, names), "")).split())
    return ReplyFailure(kind_of(status, f"{names} {words}".lower()), words[:EXCERPT], usage)


def _status(name: Any) -> int | None:
    """Return the status that an error's code or type names.

    >>> _status("429"), _status(503), _status("rate_limit_exceeded"), _status("odd"), _status(7)
    (429, 503, 429, None, None)
    """
    said = str(name).lower()
    number = int(said) if said.isdecimal() and len(said) == len("503") else _STATUS.get(said)
    return number if number is not None and 400 <= number < 600 else None


def _by_finish(
    ends: list[Mapping[str, Any]], usage: Mapping[str, Any] | None
) -> Iterator[ReplyFailure]:
    reasons = [str(one.get("finish_reason") or one.get("stop_reason")).lower() for one in ends]
    for reason in reasons:
        if _BROKE.fullmatch(reason):
            yield ReplyFailure(ModelConnectionError, f"it ended by {reason}", usage)
    for reason in reasons:
        if _FILTERED.fullmatch(reason):
            words = f"a filter ended it: {reason}"
            yield ReplyFailure(ContentRefusedError, words, usage, usage is not None)


def _by_status(reply: Mapping[str, Any], usage: Mapping[str, Any] | None) -> ReplyFailure | None:
    """Return why a response is none that is completed."""
    status = str(reply.get("status"))
    if reply.get("object") != "response" and "output" not in reply:
        return None
    if status in _UNFINISHED:
        return ReplyFailure(ModelConnectionError, f"its status is {status}", usage)
    if status != "incomplete":
        return None
    details = reply.get("incomplete_details")
    reason = str(details.get("reason")) if isinstance(details, Mapping) else "no reason given"
    kind = ContentRefusedError if _FILTERED.fullmatch(reason) else IncompleteReplyError
    passes = reason in _CUT and usage is not None
    return ReplyFailure(kind, f"its status is incomplete: {reason}", usage, passes)
