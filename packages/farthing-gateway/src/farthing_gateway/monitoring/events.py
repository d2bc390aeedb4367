"""What happens to replies under a promise, each written once and counted once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.storage.database import Row, Step, microseconds


@dataclass(frozen=True)
class Under:
    """The certificate that a policy's mode decided under."""

    policy: str
    mode: str
    certificate: str

    @property
    def row(self) -> Row:
        """As columns."""
        return self.policy, self.mode, self.certificate


class RequestEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="what", omit_defaults=True):
    """What happened to one request."""

    group: str | None = None


class Replied(RequestEvent, frozen=True, kw_only=True, tag="replied"):
    """A reply was given under the certificate."""

    kind: str
    promised: float | None = None
    tested: bool = True
    """Whether what the audits find can be tested against what is promised."""
    audited: bool = False
    explored: bool = False
    agreement: float | None = None
    confidence: float | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    half_hour: int | None = None
    """In which it was asked, since 1970."""


class AuditAsked(RequestEvent, frozen=True, kw_only=True, tag="asked"):
    """The models that had not been asked were, for an audit or to explore."""

    purpose: str
    cost_nano: int = 0
    ended: bool = True
    """Whether no model is left to be asked."""
    failed: bool = False
    """Whether some could not be asked, so that nobody will grade it."""


class AuditGraded(RequestEvent, frozen=True, kw_only=True, tag="graded"):
    """An audit got its grade."""

    value: float
    """In [0, 1]: how the promise was kept; of parity, the difference as `of_difference` has it."""
    probability: float
    """With which it was drawn."""


class Volunteered(RequestEvent, frozen=True, kw_only=True, tag="volunteered"):
    """A user sent a grade that no interval takes."""

    value: float
    was: float | None = None
    """The same user's grade before; None: it is the first."""


class Closed(RequestEvent, frozen=True, kw_only=True, tag="closed"):
    """Somebody saw to an alarm."""

    signal: str


AnyEvent = Replied | AuditAsked | AuditGraded | Volunteered | Closed

INSERT = """
INSERT INTO watch_events (id, what, policy, mode, certificate, at_us, body)
SELECT $1, $2, $3, $4, $5, CAST($6 AS BIGINT), $7
"""
NEW_REQUEST = "WHERE NOT EXISTS (SELECT 1 FROM traffic_requests WHERE id = $1)"


def event_row(
    id: str,  # noqa: A002
    under: Under,
    event: AnyEvent,
    at: datetime,
    which: str = "",
) -> Row:
    """Return what `INSERT` takes.

    Args:
        id: of the request, or of the alarm.
        under: the certificate.
        event: what happened.
        at: when.
        which: tells those of one kind apart that may happen to a request several times.
    """
    what = type(event).__struct_config__.tag
    body = msgspec.json.encode(event).decode()
    return id, f"{what} {which}".strip(), *under.row, microseconds(at), body


def read_event(body: str) -> AnyEvent:
    """Return an event as it was written."""
    event: AnyEvent = msgspec.json.decode(body, type=AnyEvent)
    return event


def under(passed: RequestRecord) -> Under | None:
    """Return which certificate decided a request; None: none."""
    if passed.policy is None or passed.certificate is None:
        return None
    return Under(passed.policy, passed.mode or "", passed.certificate)


def inserted(row: Row, condition: str, *values: Any) -> Step:
    """Return the step that writes an event, if it is not there and a condition holds.

    Args:
        row: of `event_row`; `$1` is the id.
        condition: a WHERE clause.
        values: what it names from `$8` on.
    """
    return Step(f"{INSERT}{condition} ON CONFLICT DO NOTHING", [(*row, *values)])
