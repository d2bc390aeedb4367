"""What a request is told that cannot be answered: OpenAI's form, with the status that fits."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from farthing.errors import (
    BadRequestError,
    BudgetError,
    ContentRefusedError,
    ContextTooLongError,
    FarthingError,
    InputError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    StoreError,
)
from farthing.models.chat_serving import problem
from farthing_gateway.deadline import Deadline
from farthing_gateway.request_schema import RequestError
from farthing_gateway.storage.ledger.base import LimitError

LOG = logging.getLogger("farthing_gateway")
INVALID = "invalid_request_error"


@dataclass
class ApiError(FarthingError):
    """A request that is not answered, and why."""

    status: int
    message: str
    kind: str = INVALID
    """OpenAI's `type`."""
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the body of the reply, or the data of the event once a stream has begun."""
        return problem(self.message, self.kind, self.code, self.param)


def unknown_key() -> ApiError:
    """Return the refusal of a key that is absent, wrong, revoked or expired; it says not which."""
    said = "this key opens nothing here; send a valid one as 'Authorization: Bearer KEY'"
    headers = {"WWW-Authenticate": "Bearer"}
    return ApiError(401, said, "authentication_error", "invalid_api_key", headers=headers)


def forbidden(what: str) -> ApiError:
    """Return the refusal of a key that may not do this."""
    return ApiError(403, f"this key may not {what}", "permission_error", "forbidden")


def unknown_model(name: str, known: list[str]) -> ApiError:
    """Return the refusal of a model that is not served.

    >>> unknown_model("gpt-9", ["large"]).status
    404
    """
    said = f"there is no model '{name:.80}' here, but: {', '.join(known)}"
    return ApiError(404, said, code="model_not_found", param="model")


def too_large(most: int) -> ApiError:
    """Return the refusal of a body of too many bytes."""
    said = f"the request is longer than {most:,} bytes; shorten it"
    return ApiError(413, said, code="too_large")


def too_slow(seconds: float) -> ApiError:
    """Return the refusal of a body that did not come in time; what is left of it is not read."""
    said = f"the request was not all there within {seconds:g} s; send it again"
    return ApiError(408, said, "timeout_error", "request_timeout", headers={"Connection": "close"})


def shutting_down() -> ApiError:
    """Return the refusal of a request that is cut off as the server ends."""
    said = "the gateway is restarting and could not finish this request; ask again in a moment"
    headers = {"Retry-After": "1", "Connection": "close"}
    return ApiError(503, said, "server_error", "shutting_down", headers=headers)


def too_late(seconds: float) -> ApiError:
    """Return the refusal of a request whose deadline passed."""
    said = f"there was no answer within the deadline of {seconds:g} s"
    return ApiError(504, said, "timeout_error", "deadline_exceeded")


def is_late(error: BaseException, deadline: Deadline) -> bool:
    """Return whether an error means that a request's time is over: a model's own may come first."""
    slow = isinstance(error, ModelTimeoutError) and deadline.passed
    return slow or isinstance(error, TimeoutError)


def in_progress(until: datetime, lease_s: float) -> ApiError:
    """Return the refusal of a request that another one under the same idempotency key answers.

    It may end at any moment, or its worker may be dead, which shows only when its lease ends. Who
    comes back after as long as it has taken so far asks seldom, and waits no more than twice.
    """
    left = (until - datetime.now(UTC)).total_seconds()
    again = math.ceil(min(max(1.0, lease_s - left), max(1.0, left)))
    said = (
        "this request is being answered already; ask again for the answer. If the worker that had "
        f"it is dead, it is free again at {until:%H:%M:%S} UTC at the latest, in "
        f"{max(0.0, left):.0f} s"
    )
    headers = {"Retry-After": str(again)}
    return ApiError(409, said, code="idempotency_in_progress", headers=headers)


def over_request_budget(why: str) -> ApiError:
    """Return the refusal of a request that may cost more than it allows."""
    return ApiError(402, why, "insufficient_quota", "request_budget_exceeded")


def refusal(error: Exception) -> ApiError:
    """Return what a client is told of an error; of an unexpected one only its kind.

    >>> refusal(RateLimitError("small: slow down", retry_after_s=1.2)).headers
    {'Retry-After': '2'}
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, LimitError):
        return _over_limit(error)
    if isinstance(error, BudgetError):
        return over_request_budget(str(error))
    if isinstance(error, ModelError):
        return _of_model(error)
    if isinstance(error, InputError):
        return _no_database() if isinstance(error, StoreError) else ApiError(422, str(error))
    said = f"unexpected {type(error).__name__}; the server's log says more"
    return ApiError(500, said, "server_error", "internal_error")


def _no_database() -> ApiError:
    """Say nothing of where it is."""
    said = "the gateway's database does not answer; ask again in a moment"
    headers = {"Retry-After": "1"}
    return ApiError(503, said, "server_error", "database_unavailable", headers=headers)


def logged(error: Exception) -> None:
    """Log what the operator must know of: of what nobody expected only where it came from.

    Its text, and that of a traceback, may hold what a client sent.
    """
    if isinstance(error, StoreError):
        LOG.error("%s", error)
    elif not isinstance(error, FarthingError):
        LOG.error("unexpected %s at %s", type(error).__name__, _place(error))


def _place(error: Exception) -> str:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "?" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"


def _over_limit(error: LimitError) -> ApiError:
    """A limit a minute is waited for; a larger period's money is gone, and no client waits so long.

    Clients wait for whatever `Retry-After` says before they show why.
    """
    headers = {}
    if error.resets_at is not None:
        headers["X-Farthing-Resets-At"] = f"{error.resets_at:%Y-%m-%dT%H:%M:%SZ}"
    if error.may_fit_soon:
        headers["Retry-After"] = "1"
    elif error.resets_at is not None and error.limit.period == "minute":
        left = (error.resets_at - datetime.now(UTC)).total_seconds()
        headers["Retry-After"] = str(max(1, math.ceil(left)))
    if error.limit.period == "minute":
        status, kind, code = 429, "rate_limit_error", "rate_limit_exceeded"
    else:
        status, kind, code = 402, "insufficient_quota", "budget_exceeded"
    return ApiError(status, str(error), kind, code, headers=headers)


def nobody_answered(failed: Mapping[str, str]) -> str:
    """Say which models failed, and how, as their clients may hear it.

    >>> nobody_answered({"large": "timeout", "small": "malformed"})
    "no model answered: large (no reply in time), small (its provider's reply could not be read)"
    """
    each = (f"{name} ({_HOW.get(kind, 'it failed')})" for name, kind in failed.items())
    return f"no model answered: {', '.join(each)}" if failed else "the model did not answer"


def _of_model(error: ModelError) -> ApiError:
    """Say nothing of where a provider is, or of what its operator should do: that is logged."""
    failed = dict(error.failed) or {"the model": error.kind}
    retry = {}
    if error.retry_after_s is not None or isinstance(error, RateLimitError):
        retry["Retry-After"] = str(max(1, math.ceil(error.retry_after_s or 0)))
    said = error.said or f"{next(reversed(failed))}: {_HOW.get(error.kind, 'it failed')}"
    match error:
        case RequestError():
            return ApiError(400, str(error), param=error.param)
        case BadRequestError():
            return ApiError(400, said)
        case ContextTooLongError():
            return ApiError(400, said, code="context_length_exceeded")
        case ContentRefusedError():
            return ApiError(400, said, code="content_filter")
    said = nobody_answered(failed)
    status, kind = _FAILED.get(type(error), (502, "api_error"))
    return ApiError(status, said, kind, f"upstream_{error.kind}", headers=retry)


_HOW = {
    "authentication": "the gateway's own key for it does not work; its operator must mend that",
    "bad_request": "its provider does not take this request",
    "connection": "its provider failed or could not be reached",
    "context_too_long": "the request does not fit its context",
    "cooling": "left alone for a while, since it failed again and again",
    "filtered": "its provider's filter took the reply away",
    "incomplete": "its provider's reply is not whole",
    "malformed": "its provider's reply could not be read",
    "rate_limit": "its provider takes no more requests just now",
    "redirected": "its provider is elsewhere; the operator must mend its address",
    "refused": "its provider will not answer this",
    "timeout": "no reply in time",
}
"""How a model failed, by the kind of the error."""
_FAILED: dict[type[ModelError], tuple[int, str]] = {
    RateLimitError: (429, "rate_limit_error"),
    ModelTimeoutError: (504, "timeout_error"),
}
"""Status and type of failures upstream; those of any other kind are a bad gateway's."""
