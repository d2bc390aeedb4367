"""What a request is told that cannot be answered: OpenAI's form, with the status that fits."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from farthing.budgets.accounts.base import LimitError
from farthing.errors import (
    AuthenticationError,
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

LOG = logging.getLogger("farthing.gateway")
INVALID = "invalid_request_error"


@dataclass
class RefusedError(FarthingError):
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


def unknown_key() -> RefusedError:
    """Return the refusal of a key that is absent, wrong, revoked or expired; it says not which."""
    said = "this key opens nothing here; send a valid one as 'Authorization: Bearer KEY'"
    headers = {"WWW-Authenticate": "Bearer"}
    return RefusedError(401, said, "authentication_error", "invalid_api_key", headers=headers)


def forbidden(what: str) -> RefusedError:
    """Return the refusal of a key that may not do this."""
    return RefusedError(403, f"this key may not {what}", "permission_error", "forbidden")


def unknown_model(name: str, known: list[str]) -> RefusedError:
    """Return the refusal of a model that is not served.

    >>> unknown_model("gpt-9", ["large"]).status
    404
    """
    said = f"there is no model '{name:.80}' here, but: {', '.join(known)}"
    return RefusedError(404, said, code="model_not_found", param="model")


def too_large(most: int) -> RefusedError:
    """Return the refusal of a body of too many bytes."""
    said = f"the request is longer than {most:,} bytes; shorten it"
    return RefusedError(413, said, code="too_large")


def too_late(seconds: float) -> RefusedError:
    """Return the refusal of a request whose deadline passed."""
    said = f"there was no answer within the deadline of {seconds:g} s"
    return RefusedError(504, said, "timeout_error", "deadline_exceeded")


def over_request_budget(why: str) -> RefusedError:
    """Return the refusal of a request that may cost more than it allows."""
    return RefusedError(402, why, "insufficient_quota", "request_budget_exceeded")


def refusal(error: Exception) -> RefusedError:
    """Return what a client is told of an error; of an unexpected one only its kind.

    >>> refusal(RateLimitError("small: slow down", retry_after_s=1.2)).headers
    {'Retry-After': '2'}
    """
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, LimitError):
        return _over_limit(error)
    if isinstance(error, BudgetError):
        return over_request_budget(str(error))
    if isinstance(error, ModelError):
        return _of_model(error)
    if isinstance(error, InputError):
        return _no_database() if isinstance(error, StoreError) else RefusedError(422, str(error))
    said = f"unexpected {type(error).__name__}; the server's log says more"
    return RefusedError(500, said, "server_error", "internal_error")


def _no_database() -> RefusedError:
    """Say nothing of where it is."""
    said = "the gateway's database does not answer; ask again in a moment"
    headers = {"Retry-After": "1"}
    return RefusedError(503, said, "server_error", "database_unavailable", headers=headers)


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


def _over_limit(error: LimitError) -> RefusedError:
    """A limit a minute is waited for; a larger period's money is gone."""
    headers = {}
    if error.resets_at is not None:
        left = (error.resets_at - datetime.now(UTC)).total_seconds()
        headers["Retry-After"] = str(max(1, math.ceil(left)))
    if error.limit.period == "minute":
        status, kind, code = 429, "rate_limit_error", "rate_limit_exceeded"
    else:
        status, kind, code = 402, "insufficient_quota", "budget_exceeded"
    return RefusedError(status, str(error), kind, code, headers=headers)


def _of_model(error: ModelError) -> RefusedError:
    said, retry = str(error), {}
    if error.retry_after_s is not None or isinstance(error, RateLimitError):
        retry["Retry-After"] = str(max(1, math.ceil(error.retry_after_s or 0)))
    match error:
        case BadRequestError():
            return RefusedError(400, said, param=getattr(error, "param", None))
        case ContextTooLongError():
            return RefusedError(400, said, code="context_length_exceeded")
        case ContentRefusedError():
            return RefusedError(400, said, code="content_filter")
        case AuthenticationError():
            said = "the gateway's own key for this model does not work; its operator must mend it"
    status, kind = _FAILED.get(type(error), (502, "api_error"))
    return RefusedError(status, said, kind, f"upstream_{error.kind}", headers=retry)


_FAILED: dict[type[ModelError], tuple[int, str]] = {
    RateLimitError: (429, "rate_limit_error"),
    ModelTimeoutError: (504, "timeout_error"),
}
"""Status and type of failures upstream; those of any other kind are a bad gateway's."""
