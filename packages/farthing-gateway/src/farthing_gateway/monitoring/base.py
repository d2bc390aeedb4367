"""What is known of promises in live traffic: how they are kept, which alarms rang, what decided."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Change = Literal["loaded", "recalibrated", "rolled back"]
"""How a bundle came to decide: it was found at its place, made of live traffic, or put back."""


@dataclass(frozen=True)
class StatusSinceAlarm:
    """How a promise is kept since its alarm was raised or closed, whichever was last."""

    since: datetime
    closed: bool
    """Whether the alarm was closed then; else it was raised, and is open."""
    graded: int
    """Audits that were graded since."""
    share: float | None
    """Of them, as in `PromiseStatus`; None without any."""
    low: float | None
    """The interval since then alone: each such one holds at every moment at once, at confidence 1 -
    `PromiseStatus.delta`, where the share stays the same since then; None without a graded audit,
    or where no one share fits them either."""
    high: float | None


@dataclass(frozen=True)
class PromiseStatus:
    """How a certificate's promise is kept by the replies that were given under it."""

    policy: str
    mode: str
    certificate: str
    """Its mark, as replies name it."""
    kind: str
    """The kind of its promise, such as `agreement`."""
    promised: float | None
    """The least share of replies that keep it; None where the promise is no such share."""
    group: str | None
    """Of which group of requests this is; None: of all."""
    replies: int
    """Requests that were answered under it."""
    drawn: int
    """How many of them an audit drew at random."""
    graded: int
    """How many of those have a grade by now: these alone make the interval."""
    share: float | None
    """The share that kept it among graded audits, weighted; None without any. Of parity: by how
    much the replies' accuracy is above the reference's, in [-1, 1]."""
    low: float | None
    """The interval of the share: it holds at every moment at once, at confidence 1 - `delta`; None
    without a graded audit."""
    high: float | None
    delta: float
    volunteered: int
    """Grades that users sent and that no audit waits for: they never enter the interval."""
    volunteered_share: float | None
    """Their mean: how right users call the answers of which they say something."""
    failed: int = 0
    """Audits that cannot be graded any more: a model could not be asked. Of all, not of groups."""
    explored: int = 0
    """Requests that were drawn to be completed beyond the audits. Of all, not of groups."""
    audits_nano: int = 0
    """What audits cost, in nano-dollars. Of all, not of groups."""
    explored_nano: int = 0
    """What exploration cost, in nano-dollars. Of all, not of groups."""
    changed: bool = False
    """Whether no one share fits all graded audits: something changed on the way, and the interval
    says nothing any more."""
    recent: StatusSinceAlarm | None = None
    """How it is kept since the last alarm about the promise; None: none ever rang."""


@dataclass(frozen=True)
class Alarm:
    """A signal that drifted: evidence that its stream is no longer what it was."""

    id: str
    policy: str
    mode: str
    certificate: str
    signal: str
    """`promise`, or a signal that needs no grades: agreement, confidence, cost, latency."""
    at: datetime
    says: str
    """What drifted and what to do, in a sentence."""
    evidence: float
    """The e-value at that moment: how many times the stake a bet against "no drift" had won."""
    closed_at: datetime | None
    """When somebody saw to it; None: it is open."""
    closed_by: str | None


@dataclass(frozen=True)
class Deployed:
    """A bundle that began to decide."""

    policy: str
    mode: str
    at: datetime
    certificate: str | None
    says: str
    """The certificate's sentence, or that nothing was proved; empty without a certificate."""
    how: Change
    by: str | None
    """Who did it: the name of a key, or a user of the machine; None: the gateway itself."""


class Watch(Protocol):
    """What the page and the commands ask; every worker sees the same."""

    async def kept(self) -> list[PromiseStatus]:
        """Return how promises are kept, the certificates in force first, all before groups."""
        ...

    async def alarms(self, *, only_open: bool = False) -> list[Alarm]:
        """Return alarms, the newest first."""
        ...

    async def close_alarm(self, id: str, by: str) -> bool:  # noqa: A002
        """Mark an alarm as seen to; return whether it was open."""
        ...

    async def deployed(self, policy: str | None = None) -> list[Deployed]:
        """Return which bundles decided since when, the newest first."""
        ...
