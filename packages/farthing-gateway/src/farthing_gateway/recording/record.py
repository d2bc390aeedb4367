"""What passed through the gateway: one request, what answered it, and what was promised."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from farthing.traces.base import Call, Trace
from farthing.traces.system import System

FALLBACK = "fallback"
"""A number that a trace's call has which was made in place of a model that had failed."""

EMBEDDING = "embedding"
"""A number that a trace's call has whose model was asked for vectors, and so says no answer."""
STOPPED = "stopped"
"""The failure of a call whose end the client did not wait for."""
COOLING = "cooling"
"""The failure of a model that was left alone: it was not asked."""

GradedBy = Literal["reference", "feedback"]
"""What says whether a promise was kept: another model's answer, or somebody who knows."""


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What else is known of a reply that a bundle with a promise decided."""

    kind: str
    """The kind of its promise, such as `agreement`."""
    graded_by: GradedBy
    promised: float | None = None
    """The least share of replies that keep it; None where it is no such share."""
    reference: str | None = None
    """The model that it compares with; None: it compares with none."""
    pooled: bool = True
    """Whether every model answers by itself, so that an audit can ask those that were not."""
    pool: tuple[str, ...] = ()
    """The models that the promise is about; none named: all that answered."""
    returned: tuple[str | None, ...] = ()
    """The answers that the client got; None in the place of one that could not be kept."""
    agreement: float | None = None
    """Share of the calls whose answer is the first that was returned."""
    confidence: float | None = None
    """What the policy thinks of that answer, in [0, 1]."""
    ended_by: str = "policy"
    """What ended the asking: the policy, a budget, or a failure."""
    explore: float = 0.0
    """With which probability it was to be explored, beside the audits."""
    explored: bool = False
    """Whether chance drew it for that."""


@dataclass(frozen=True)
class RequestRecord:
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
    certificate: str | None = None
    """The mark of the certificate that it was decided under; None: no promise decided."""
    mode: str | None = None
    """The mode of the policy that decided."""
    answered_by: str | None = None
    """The model whose reply the client got."""
    group: str | None = None
    """To which group of requests the client says that it belongs."""
    audit: float | None = None
    """With which probability it was up for an audit; None: it was not."""
    audited: bool = False
    """Whether chance drew it for one."""
    decided: PolicyDecision | None = None
    """None where no promise decided."""


def answered_directly(call: Call) -> bool:
    """Return whether a call says what its model does where it is asked a question by itself.

    One in the place of another was asked because that one had failed; one that was left alone was
    not asked; one that a client stopped might have gone on; and one for vectors has no answer. A
    trial or an audit may ask those.

    >>> answered_directly(Call(round=1, role="m", answer="4", extra={FALLBACK: 1.0}))
    False
    """
    error = None if call.error is None else call.error.type
    return not {FALLBACK, EMBEDDING} & call.extra.keys() and error not in {STOPPED, COOLING}
