"""Since when the audits count: the period in which traffic is what it is now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farthing.bundle.versions import History
from farthing.gateway.watching.base import Alarm


@dataclass(frozen=True)
class Period:
    """A period that lasts until now."""

    since: datetime
    why: str
    """What began then."""

    def __str__(self) -> str:
        """Say both."""
        return f"since {self.since:%Y-%m-%d %H:%M:%S} UTC, {self.why}"


def period_of(given: datetime | None, alarms: Sequence[Alarm], history: History) -> Period:
    """Return the period whose audits recalibrate a policy's mode.

    Where an alarm is open, traffic before it was another. When it rang depends on what came before,
    and not on what came after, so a draw of the latter is fair.

    Args:
        given: since when, if somebody says; else since the last open alarm, and without one since
            the bundle came to decide.
        alarms: about the certificate that decides.
        history: the versions of its bundle.
    """
    if given is not None:
        return Period(given, "as asked")
    rang = [one for one in alarms if one.closed_at is None]
    if rang:
        last = max(rang, key=lambda one: one.at)
        return Period(last.at, f"when the alarm about {last.signal} rang")
    change = history.last_change(history.present) or history.changes[-1]
    return Period(change.at, f"when version {history.present} of the bundle began to decide")
