"""Whether a reply with a good status failed all the same, and why: what failed is no answer.

A failed reply costs what it says that it used, and nothing where it does not say that. Sources:
OpenAI's references (chat completions, responses), Anthropic's (errors, stop reasons), OpenRouter's
(errors and debugging), DeepSeek's, Zhipu's and Mistral's lists of finish reasons.
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
from farthing.models.http_failures import ADVICE, EXCERPT, REFUSED, kind_of
from farthing.models.usage import read_usage

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
_SIGNS = re.compile(
    rb'"error"|"finish_reason"\s*:\s*"|"stop_reason"\s*:\s*"|"status"|"response.failed"'
)
"""Where none of these is, nothing failed."""
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
    used: Usage | None = None
    """What it says that it took; None: it does not say."""
    mild: bool = False
    """Whether it was only cut or filtered."""

    @property
    def passes(self) -> bool:
        """Whether a client is to have it, which is never evidence: it says what it used."""
        return self.mild and self.used is not None

    def error(
        self, place: str, cost_nano: int | None, hide: Callable[[str], str] = str
    ) -> ModelError:
        """Return the error that it means.

        Args:
            place: the model and its endpoint, for the message.
            cost_nano: what it took in all; 0 where it does not say.
            hide: takes a key out of a text.
        """
        plain, words, used = f"{place}: {ADVICE[self.kind]}", hide(self.said), self.used
        found = self.kind(f"{plain}: {words}", cost_nano=cost_nano if used else 0)
        found.plain, found.said = plain, words
        found.used = used and (used.input_tokens, used.output_tokens)
        return found


def failure_in(body: bytes) -> ReplyFailure | None:
    """Return why JSON that came is no answer; raises one of `UNREADABLE` where it is none.

    Of most pieces of a stream, and of vectors, a look at the bytes is enough.
    """
    return reply_failure(msgspec.json.decode(body)) if _SIGNS.search(body) else None


def reply_failure(reply: Any) -> ReplyFailure | None:
    """Return why a decoded reply is no answer; None where nothing in it says so.

    Args:
        reply: a chat completion, a text completion, a response or a message, whole or as a log has
            it, or one chunk or event of a stream.

    >>> reply_failure({"choices": [{"finish_reason": "stop"}], "error": None})
    >>> reply_failure({"error": {"message": "slow down", "code": 429}}).kind.kind
    'rate_limit'
    >>> U = {"prompt_tokens": 3, "completion_tokens": 0}
    >>> found = reply_failure({"choices": [{"finish_reason": "content_filter"}], "usage": U})
    >>> found.kind.kind, found.passes
    ('filtered', True)
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
    found = _why(reply)
    if found is None:
        return None
    used = read_usage(said := reply.get("usage"), reply)
    if used and isinstance(said, Mapping) and said.get("cost") == 0 and not said.get("is_byok"):
        used = replace(used, billed_nano=0)
    return replace(found, used=used)


def _why(reply: Mapping[str, Any]) -> ReplyFailure | None:
    listed = reply.get("choices")
    choices = [c for c in (listed if isinstance(listed, list) else ()) if isinstance(c, Mapping)]
    delta = reply.get("delta")
    ends = [reply, *choices, *([delta] if isinstance(delta, Mapping) else [])]
    errors = [error for one in ends if (error := one.get("error"))]
    if errors or "error" in (reply.get("type"), reply.get("object")):
        return _stated((errors or [reply])[0])
    reasons = [str(one.get("finish_reason") or one.get("stop_reason")).lower() for one in ends]
    for reason in filter(_BROKE.fullmatch, reasons):
        return ReplyFailure(ModelConnectionError, f"it ended by {reason}")
    for reason in filter(_FILTERED.fullmatch, reasons):
        return ReplyFailure(FilteredReplyError, f"a filter ended it: {reason}", mild=True)
    return _by_status(reply)


def _stated(error: Any) -> ReplyFailure:
    fields = error if isinstance(error, Mapping) else {"message": error}
    names = [fields.get(name) for name in ("code", "status", "type", "error_type")]
    known = (_status(name) for name in names)
    status = next((one for one in known if one is not None), 500)
    words = " ".join(str(fields.get("message") or next(filter(None, names), "")).split())
    return ReplyFailure(kind_of(status, f"{names} {words}".lower()), words[:EXCERPT])


def _status(name: Any) -> int | None:
    """Return the status that an error's code or type names.

    >>> _status("429"), _status(503), _status("rate_limit_exceeded"), _status("odd"), _status(7)
    (429, 503, 429, None, None)
    """
    said = str(name).lower()
    number = int(said) if said.isdecimal() and len(said) == len("503") else _STATUS.get(said)
    return number if number is not None and 400 <= number < 600 else None


def _by_status(reply: Mapping[str, Any]) -> ReplyFailure | None:
    """Return why a response is none that is completed."""
    status = reply.get("status")
    if reply.get("object") != "response" and "output" not in reply:
        return None
    if status in _UNFINISHED:
        return ReplyFailure(ModelConnectionError, f"its status is {status}")
    if status != "incomplete":
        return None
    details = reply.get("incomplete_details")
    reason = str(details.get("reason")) if isinstance(details, Mapping) else "no reason given"
    kind = FilteredReplyError if _FILTERED.fullmatch(reason) else IncompleteReplyError
    return ReplyFailure(kind, f"its status is incomplete: {reason}", mild=reason in _CUT)
