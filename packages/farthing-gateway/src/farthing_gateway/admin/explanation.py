"""What is told of one request beside its calls: why nothing was promised, and what users say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farthing_gateway.completions import NONE
from farthing_gateway.monitoring.base import Alarm
from farthing_gateway.monitoring.statistics import PROMISE
from farthing_gateway.monitoring.status import ended_by
from farthing_gateway.recording.record import FALLBACK, STOPPED, RequestRecord
from farthing_gateway.storage.database import Database, moment

_FEEDBACK = "SELECT at_us, key_id, grade, gold, comment FROM feedback WHERE id = $1"
_ENDED = {
    "budget": "the money that it could spend ended the asking before the policy did",
    "failure": "a model failed, and the asking ended before the policy had ended it",
}


@dataclass(frozen=True)
class Said:
    """What somebody said of a reply, the newest."""

    at: datetime
    key: str | None
    """The public id of the key that sent it; None where no keys are needed."""
    grade: float | None
    """In [0, 1]; None: an accepted answer came, and what was returned was not kept."""
    gold: str | None
    comment: str | None


async def feedback_on(database: Database, id: str) -> Said | None:  # noqa: A002
    """Return what was said of a request; None where nobody did."""
    rows = await database.read(_FEEDBACK, id)
    return Said(moment(rows[0][0]), *rows[0][1:]) if rows else None


def why_nothing(one: RequestRecord, alarms: Sequence[Alarm]) -> str:
    """Say why nothing was promised of a reply, as a part of a sentence; empty where something was.

    Args:
        one: the request.
        alarms: all that ever rang, of which one may have ended the promise.
    """
    if one.promise != NONE:
        return ""
    if one.policy is None:
        return "a model was asked by its name, or the request was outside every task"
    if why := _unusual(one):
        return why
    if one.mode is None:
        return "no bundle decided it"
    if one.certificate is None:
        return "the bundle that decided promises nothing"
    ended = (ended_by(alarm) for alarm in alarms if _ended(one, alarm))
    return next(ended, "the certificate did not hold for it; the reply itself said why")


def _unusual(one: RequestRecord) -> str:
    calls = one.trace.calls
    if any(call.error is not None and call.error.type == STOPPED for call in calls):
        return "the client stopped the stream, or its time ran out"
    if any(FALLBACK in call.extra and call.error is None for call in calls):
        return f"{one.answered_by} answered in the place of a model that had failed"
    return _ENDED.get(one.decided.ended_by, "") if one.decided is not None else ""


def _ended(one: RequestRecord, alarm: Alarm) -> bool:
    under = (alarm.policy, alarm.mode, alarm.certificate)
    was_open = alarm.at <= one.at and (alarm.closed_at is None or one.at < alarm.closed_at)
    return alarm.signal == PROMISE and was_open and under == (one.policy, one.mode, one.certificate)
