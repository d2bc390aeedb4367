"""What is watched, read from the database: for the page, the commands and the metrics."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from farthing.promises.statistics.confidence_sequence import MeanState, estimate, interval
from farthing_gateway.monitoring.base import Alarm, Deployed, PromiseStatus, StatusSinceAlarm
from farthing_gateway.monitoring.deployments import deployments
from farthing_gateway.monitoring.events import Closed, Under, event_row, inserted
from farthing_gateway.monitoring.promises import is_difference
from farthing_gateway.monitoring.recent_window import percent
from farthing_gateway.monitoring.statistics import PROMISE, CertificateStats, StreamStats
from farthing_gateway.storage.database import (
    Database,
    Row,
    Step,
    microseconds,
    moment,
    open_database,
)

_STATES = """
SELECT policy, mode, certificate, part, state FROM watch_states
WHERE part = '' OR CAST($1 AS BIGINT) = 1 ORDER BY policy, mode, certificate, part"""
_ALARMS = """
SELECT id, policy, mode, certificate, signal, at_us, says, evidence, closed_at_us, closed_by
FROM alarms WHERE CAST($1 AS BIGINT) = 0 OR closed_at_us IS NULL
ORDER BY at_us DESC, id"""
_ALARM = "SELECT policy, mode, certificate, signal FROM alarms WHERE id = $1"
_CLOSE = """
UPDATE alarms SET closed_at_us = $2, closed_by = $3 WHERE id = $1 AND closed_at_us IS NULL"""
_OPEN = "WHERE EXISTS (SELECT 1 FROM alarms WHERE id = $1 AND closed_at_us IS NULL)"
_UNGRADED = """
SELECT id, policy, mode, certificate, at_us FROM audits
WHERE value IS NULL AND purpose = 'audit' AND graded_by = 'feedback' AND state <> 'failed'
ORDER BY at_us, id LIMIT $1"""
_FORGET_FEEDBACK = "DELETE FROM feedback WHERE at_us < $1"
_FORGET_AUDITS = "DELETE FROM audits WHERE at_us < $1 AND state <> 'waiting'"
MOST_UNGRADED = 100
ALARM = "what was promised is not kept any more"
UNGRADED = "No audit has a grade yet: neither the interval nor the threshold is updated."


@dataclass(frozen=True)
class Ungraded:
    """An audit that waits for a grade, as `/v1/feedback` takes it."""

    trace_id: str
    policy: str
    mode: str
    certificate: str
    at: datetime


class StoredWatch:
    """What is watched, in a database; see `Watch`."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def kept(self, *, groups: bool = True) -> list[PromiseStatus]:
        """Return how promises are kept, the certificates in force first, all before groups.

        Args:
            groups: whether groups are wanted beside the whole.
        """
        rows = await self.database.read(_STATES, int(groups))
        wholes = {
            row[:3]: msgspec.json.decode(row[4], type=CertificateStats)
            for row in rows
            if not row[3]
        }
        rang = {
            (one.policy, one.mode, one.certificate): one
            for one in reversed(await self.alarms())
            if one.signal == PROMISE
        }
        found = []
        for *row, part, text in rows:
            under = Under(*row)
            whole = wholes[under.row]
            own = msgspec.json.decode(text, type=StreamStats) if part else whole.all
            kept = _kept(under, whole, own, part or None)
            alarm = rang.get((under.policy, under.mode, under.certificate))
            found.append(
                kept if alarm is None else replace(kept, recent=_recent(whole, own, alarm))
            )
        latest = await self._in_force()
        return sorted(found, key=lambda one: (one.policy, one.mode, one.certificate) not in latest)

    async def alarms(self, *, only_open: bool = False) -> list[Alarm]:
        rows = await self.database.read(_ALARMS, int(only_open))
        return [_alarm(row) for row in rows]

    async def close_alarm(self, id: str, by: str) -> bool:  # noqa: A002
        """Mark an alarm as seen to, and have its signal tested anew; return whether it was open."""
        rows = await self.database.read(_ALARM, id)
        if not rows:
            return False
        *row, signal = rows[0]
        now = datetime.now(UTC)
        begun_anew = inserted(event_row(id, Under(*row), Closed(signal=signal), now), _OPEN)
        close = Step(_CLOSE, [(id, microseconds(now), by)])
        return bool(await self.database.write(begun_anew, close))

    async def deployed(self, policy: str | None = None) -> list[Deployed]:
        return await deployments(self.database, policy)

    async def ungraded(self, most: int = MOST_UNGRADED) -> list[Ungraded]:
        """Return audits that wait for somebody's grade, the oldest first."""
        rows = await self.database.read(_UNGRADED, most)
        return [Ungraded(row[0], row[1], row[2], row[3], moment(row[4])) for row in rows]

    async def ended(self) -> dict[Under, str]:
        return {
            Under(one.policy, one.mode, one.certificate): ended_by(one)
            for one in await self.alarms(only_open=True)
            if one.signal == PROMISE
        }

    async def forget_before(self, at: datetime) -> None:
        """Delete feedback and audits that are too old; what they came to stays.

        Each in a transaction of its own, so that no lock on one is held while the other's is
        waited for.
        """
        for sql in (_FORGET_FEEDBACK, _FORGET_AUDITS):
            await self.database.write(Step(sql, [(microseconds(at),)]))

    async def aclose(self) -> None:
        await self.database.aclose()

    async def _in_force(self) -> set[Row]:
        newest: dict[tuple[str, str], Row] = {}
        for one in await self.deployed():
            row = (one.policy, one.mode, one.certificate)
            newest.setdefault((one.policy, one.mode), row)
        return set(newest.values())


async def open_watch(where: str) -> StoredWatch:
    """Open what is watched; no gateway has to run. See `open_database`."""
    return StoredWatch(await open_database(where))


async def described(watch: StoredWatch) -> dict[str, Any]:
    """Return what is watched, as JSON values."""
    return {
        "kept": [msgspec.to_builtins(one) | {"says": meaning(one)} for one in await watch.kept()],
        "alarms": msgspec.to_builtins(await watch.alarms()),
        "deployments": msgspec.to_builtins(await watch.deployed()),
        "ungraded": msgspec.to_builtins(await watch.ungraded()),
    }


def ended_by(alarm: Alarm) -> str:
    """Say why nothing is promised any more, as a part of a sentence."""
    return f"since {alarm.at:%Y-%m-%d %H:%M} UTC an alarm says that {ALARM}"


def meaning(kept: PromiseStatus) -> str:
    """Say in a sentence what is known.

    >>> grades = (9, 0, 0, None, None, None, 0.05, 0, None)
    >>> print(meaning(PromiseStatus("p", "default", "c", "agreement", 0.95, None, *grades)))
    No audit has a grade yet: neither the interval nor the threshold is updated.
    """
    if kept.share is None or kept.low is None or kept.high is None:
        return UNGRADED
    said = f"{percent(kept.share)} of {kept.graded:,} graded audits kept it"
    if is_difference(kept.kind):
        said = f"the accuracy is {kept.share:+.3g} beside the reference's"
    if kept.changed:
        said = f"{said}. No one share fits all of them: something changed on the way."
        return f"{said}{_since(kept)}"
    said = f"{said}; {'' if is_difference(kept.kind) else 'of all replies '}{_sure(kept, kept)}"
    if kept.promised is None:
        return f"{said}.{_since(kept)}"
    if kept.high < kept.promised:
        return f"{said}: less than the {100 * kept.promised:g} % that was promised.{_since(kept)}"
    return f"{said}; {100 * kept.promised:g} % was promised.{_since(kept)}"


def _since(kept: PromiseStatus) -> str:
    recent = kept.recent
    if recent is None:
        return ""
    what = "closed" if recent.closed else "raised"
    since = f" Since the alarm was {what} ({recent.since:%Y-%m-%d %H:%M} UTC)"
    if recent.share is None:
        return f"{since} no audit was graded."
    of = f"{recent.graded:,} graded audits"
    said = f"{since} {percent(recent.share)} of {of} kept it"
    if is_difference(kept.kind):
        said = f"{since} it is {recent.share:+.3g}, by {of}"
    if recent.low is None or recent.high is None:
        return f"{said}; no one share fits them either."
    return f"{said}: {_sure(kept, recent)}."


def _sure(kept: PromiseStatus, of: PromiseStatus | StatusSinceAlarm) -> str:
    """Say an interval: of a difference as it is, of a share in percent."""
    low, high = of.low or 0.0, of.high or 0.0
    ends = f"{low:.3g} to {high:.3g}"
    if not is_difference(kept.kind):
        ends = f"{percent(low)} to {percent(high)}"
    return f"{ends} at confidence {1 - kept.delta:g}"


def _kept(
    under: Under, whole: CertificateStats, part: StreamStats, group: str | None
) -> PromiseStatus:
    parity = is_difference(whole.kind)
    share, low, high = _shown(part.mean, parity=parity)
    users = part.volunteered_sum / part.volunteered if part.volunteered else None
    return PromiseStatus(
        policy=under.policy,
        mode=under.mode,
        certificate=under.certificate,
        kind=whole.kind,
        promised=None if parity else whole.promised,
        group=group,
        replies=part.replies,
        drawn=part.drawn,
        graded=part.mean.n,
        share=share,
        low=low,
        high=high,
        delta=whole.delta,
        volunteered=part.volunteered,
        volunteered_share=users,
        failed=0 if group else whole.failed,
        explored=0 if group else whole.explored,
        audits_nano=0 if group else whole.audits_nano,
        explored_nano=0 if group else whole.explored_nano,
        changed=_is_dead(part.mean),
    )


def _recent(whole: CertificateStats, part: StreamStats, alarm: Alarm) -> StatusSinceAlarm | None:
    """Return how it is kept since the last alarm about it was raised or, counted so, closed."""
    if not whole.stretch:  # it was raised, and the state that says so is about to be read
        return None
    closed_at = None if PROMISE in whole.open else alarm.closed_at
    mean = part.recent if part.stretch == whole.stretch else None
    share, low, high = (None, None, None)
    if mean is not None:
        share, low, high = _shown(mean, parity=is_difference(whole.kind))
        low, high = (None, None) if _is_dead(mean) else (low, high)
    return StatusSinceAlarm(
        since=closed_at or alarm.at,
        closed=closed_at is not None,
        graded=0 if mean is None else mean.n,
        share=share,
        low=low,
        high=high,
    )


def _shown(mean: MeanState, *, parity: bool) -> tuple[float | None, float | None, float | None]:
    share, (low, high) = estimate(mean), interval(mean)
    if share is None:
        return None, None, None
    if parity:  # a difference, which was watched as a number in [0, 1]
        share, low, high = (2 * one - 1 for one in (share, low, high))
    return share, low, high


def _is_dead(mean: MeanState) -> bool:
    """Return whether observations do not have one mean: the interval misses their own."""
    share, (low, high) = estimate(mean), interval(mean)
    return mean.refuted or (share is not None and not low <= share <= high)


def _alarm(row: Row) -> Alarm:
    name, policy, mode, certificate, signal, at, says, evidence, closed_at, by = row
    closed = None if closed_at is None else moment(closed_at)
    return Alarm(name, policy, mode, certificate, signal, moment(at), says, evidence, closed, by)
