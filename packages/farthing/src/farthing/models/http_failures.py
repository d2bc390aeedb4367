"""From what an HTTP endpoint says to the error that it means.

An answer with an error status costs nothing, except where the endpoint gave up waiting for a
model that may have worked all the same.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from farthing.errors import (
    AuthenticationError,
    BadRequestError,
    ContentRefusedError,
    ContextTooLongError,
    FilteredReplyError,
    IncompleteReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    RedirectedError,
)

EXCERPT = 300
"""Most characters of a reply that an error repeats."""

_TOO_LONG = (
    "context_length_exceeded",  # OpenAI and most gateways
    "exceed_context_size",  # llama.cpp
    "maximum context length",  # vLLM
    "prompt is too long",  # Anthropic
    "context window",
)
_REFUSED = ("content_filter", "content_policy_violation", "responsibleaipolicy")
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached")

_BY_STATUS: dict[int, type[ModelError]] = {
    401: AuthenticationError,
    402: AuthenticationError,
    403: AuthenticationError,
    408: ModelTimeoutError,
    409: ModelConnectionError,
    413: ContextTooLongError,
    425: ModelConnectionError,
    429: RateLimitError,
    504: ModelTimeoutError,
    524: ModelTimeoutError,
}
ADVICE: dict[type[ModelError], str] = {
    AuthenticationError: "check the key, what it is allowed to do, and the account's credit",
    RateLimitError: "lower the limits of this model in the configuration",
    ContextTooLongError: "the prompt does not fit the model: shorten it",
    ContentRefusedError: "the provider will not answer this prompt",
    BadRequestError: "check the model's name, its url and its parameters",
    RedirectedError: "the endpoint is elsewhere: correct the model's url",
    ModelTimeoutError: "the endpoint waited for the model in vain",
    ModelConnectionError: "the endpoint failed",
    FilteredReplyError: "a filter of the provider took the reply away",
    IncompleteReplyError: "the provider says that its reply is not whole",
}
"""What to say of each error."""


def failure(
    place: str, status: int, headers: Mapping[str, str], body: str, largest_nano: int | None
) -> ModelError:
    """Return the error that an HTTP reply means whose status is anything but 2xx.

    `place` is the model and its endpoint, for the message; the body has no secrets in it. The call
    can have cost at most `largest_nano` nano-dollars.
    """
    kind = kind_of(status, body.lower())
    cost = largest_nano if kind is ModelTimeoutError else 0
    excerpt = " ".join(body.split())[:EXCERPT]
    plain = f"{place}: HTTP {status}: {ADVICE[kind]}"
    found = kind(
        f"{plain}: {excerpt}",
        retry_after_s=retry_after_s(headers, datetime.now(UTC)),
        cost_nano=cost,
    )
    found.plain, found.said = plain, _said(body)
    return found


def _said(body: str) -> str:
    """Return the sentence in an error's body; of a page, or of any other JSON, nothing.

    >>> _said('{"error": {"message": "no such model"}}'), _said("<html>"), _said("Too long.")
    ('no such model', '', 'Too long.')
    """
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        said = "" if "<" in body else body
    if isinstance(said, dict):
        said = said.get("error", said)
    if isinstance(said, dict):
        said = said.get("message")
    return " ".join(said.split())[:EXCERPT] if isinstance(said, str) else ""


def kind_of(status: int, body: str) -> type[ModelError]:
    """Return the error that a status means; `body` is what was said, in lower case."""
    if status in {400, 413, 422} and any(mark in body for mark in _TOO_LONG):
        return ContextTooLongError
    if status in {400, 403, 422} and any(mark in body for mark in _REFUSED):
        return ContentRefusedError
    if status == 429 and any(mark in body for mark in _NO_MONEY):
        return AuthenticationError
    if 300 <= status < 400:
        return RedirectedError
    return _BY_STATUS.get(status, ModelConnectionError if status >= 500 else BadRequestError)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a reply asks to wait, as a number or as a date (RFC 9110, 10.2.3).

    >>> retry_after_s({"Retry-After": "2.5"}, datetime(2026, 1, 1, tzinfo=UTC))
    2.5
    >>> at = {"Retry-After": "Thu, 01 Jan 2026 00:01:00 GMT"}
    >>> retry_after_s(at, datetime(2026, 1, 1, tzinfo=UTC))
    60.0
    """
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return math.nan
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
