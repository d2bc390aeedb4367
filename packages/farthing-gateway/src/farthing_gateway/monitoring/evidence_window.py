"""Since when the audits count: the period in which traffic is what it is now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farthing.bundle.versions import History
from farthing_gateway.monitoring.base import Alarm
from farthing_gateway.monitoring.statistics import PROMISE


@dataclass(frozen=True)
class Period:
    """A period that lasts until now."""

    since: datetime
    why: str
    """What began then."""
    notes: tuple[str, ...] = ()
    """Alarms that rang within it."""

    def __str__(self) -> str:
        return f"since {self.since:%Y-%m-%d %H:%M:%S} UTC, {self.why}"


def period_of(given: datetime | None, alarms: Sequence[Alarm], history: History) -> Period:
    """Return the period whose audits recalibrate a policy's mode.

    Traffic before an alarm about the promise was another. When it rang depends on what came before,
    and not on what came after, so a draw of the latter is fair; and so it is with when somebody
    closed it. Whoever closed one says by that that what was wrong is repaired, so that the traffic
    since then is what counts, and not what came between.

    An alarm about a signal does not say that the promise is broken, so it bounds no period. Whoever
    recalibrates is told of those that rang within it.

    Args:
        given: since when, if somebody says; else since the last alarm about the promise rang or,
            where it is closed, since that, and without one since the bundle came to decide.
        alarms: about the certificate that decides, open and closed.
        history: the versions of its bundle.
    """
    since, why = _begin(given, alarms, history)
    within = sorted((one for one in alarms if one.at > since), key=lambda one: one.at)
    return Period(since, why, tuple(map(_note, within)))


def _begin(
    given: datetime | None, alarms: Sequence[Alarm], history: History
) -> tuple[datetime, str]:
    if given is not None:
        return given, "as asked"
    rang = [one for one in alarms if one.signal == PROMISE]
    if rang:
        last = max(rang, key=lambda one: one.at)
        if last.closed_at is None:
            return last.at, "when the alarm about promise rang"
        return last.closed_at, "when the alarm about promise was closed"
    change = history.last_change(history.present) or history.changes[-1]
    return change.at, f"when version {history.present} of the bundle began to decide"


def _note(alarm: Alarm) -> str:
    return (
        f"an alarm about {alarm.signal} rang within the period, at {alarm.at:%Y-%m-%d %H:%M:%S} "
        "UTC; where the traffic before it was another, give a later --since"
    )
