"""Whether a call has begun to reach its provider: who writes it says so, who pays for it asks."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Sending:
    """A call that is about to be sent."""

    begun: bool = False
    """Whether anything of it was written; once it was, its outcome may be unknown."""


_SENDING: ContextVar[Sending | None] = ContextVar("_SENDING", default=None)


def watched() -> Sending:
    """Return what the next call of this task is noted in."""
    sending = Sending()
    _SENDING.set(sending)
    return sending


def current() -> Sending | None:
    """Return what the call of this task is noted in; None where nobody asks."""
    return _SENDING.get()
