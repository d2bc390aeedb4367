"""What tests of watching put into traffic: replies under a promise, audited or not."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count

import msgspec
from made_traffic import NOW, call, passed

from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.base import Agent
from farthing.tasks.base import Task
from farthing.tasks.text import TEXT
from farthing_gateway.monitoring.events import AnyEvent
from farthing_gateway.recording.record import PolicyDecision, RequestRecord

_NUMBERS = count(1)

AGREEMENT = PolicyDecision(kind="agreement", graded_by="reference", promised=0.9, reference="large")
RIGHT = PolicyDecision(kind="selective", graded_by="feedback", promised=0.9)


def reply(
    name: str,
    decided: PolicyDecision = AGREEMENT,
    *,
    answer: str = "4",
    audit: float | None = 0.5,
    audited: bool = False,
    group: str | None = None,
    at: datetime = NOW,
    certificate: str = "c",
) -> RequestRecord:
    """Return a request that `small` answered under a promise of the policy `sums`."""
    request = passed(name, at=at, policy="sums", calls=[call("small", answer=answer)])
    return replace(
        request,
        certificate=certificate,
        mode="default",
        answered_by="small",
        promise=decided.kind,
        group=group,
        audit=audit,
        audited=audited,
        decided=msgspec.structs.replace(decided, returned=(answer,), agreement=1.0),
    )


def later(seconds: float) -> datetime:
    """Return a moment after the first."""
    return NOW + timedelta(seconds=seconds)


def event(one: AnyEvent) -> tuple[str, AnyEvent]:
    """Return an event with the id of a request of its own."""
    return f"q{next(_NUMBERS)}", one


@dataclass(frozen=True)
class Pool:
    """A policy's models, by their names alone, as audits ask them."""

    names: tuple[str, ...]
    task: Task = TEXT

    @property
    def to_audit(self) -> tuple[Agent, ...]:
        """Whom audits ask."""
        models = {name: ScriptedModel({}, name=name) for name in self.names}
        return tuple(BaseAgent(model, role=name) for name, model in models.items())

    @property
    def to_explore(self) -> tuple[Agent, ...]:
        """Whom exploration asks."""
        return self.to_audit
