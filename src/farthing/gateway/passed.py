"""What passed through the gateway: one request, what answered it, and what was promised."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from farthing.traces.base import Trace
from farthing.traces.system import System

FALLBACK = "fallback"
"""A number that a trace's call has which was made in place of a model that had failed."""


@dataclass(frozen=True)
class Passed:
    """One request that was answered."""

    id: str
    """That of its trace."""
    at: datetime
    """When it came, with a time zone."""
    key: str | None
    """The public id of the key that asked; None where no keys are needed."""
    conversation: str
    """What it has in common with the other requests of its conversation."""
    policy: str | None
    """Name of the policy whose task it was; None: nobody's."""
    model: str
    """Name of the model that the client asked for."""
    messages: list[Any] | None
    """As the client sent them; None where prompts are not kept."""
    trace: Trace
    """The question, and every call that was made for it."""
    promise: str
    """What the reply promised, such as `agreement`, or `none`."""
    saved_nano: int | None
    """What it cost less than always asking the strongest model, in nano-dollars, if known."""
    latency_s: float
    """From the request to the end of the reply, in seconds."""
    system: System | None = None
    """What the models of the policy's pool were at that moment: a certificate is about it."""
