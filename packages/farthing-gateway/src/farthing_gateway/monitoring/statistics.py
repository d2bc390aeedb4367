"""What is known of a certificate's replies, event by event: counts, intervals, tests for drift.

All of it is a function of the state before and the events, so that whoever counts them comes to the
same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.confidence_sequence import MeanState, observe
from farthing.promises.statistics.drift import ExchangeabilityTest, PromiseTest
from farthing_gateway.monitoring.events import (
    AnyEvent,
    AuditAsked,
    AuditGraded,
    Closed,
    Replied,
    Volunteered,
)
from farthing_gateway.monitoring.latency import LATENCY, LatencyStats, Timed
from farthing_gateway.monitoring.recent_window import (
    Window,
    promise_said,
    signal_said,
    values_said,
    with_last,
)
from farthing_gateway.recording.audit_sampling import lot

PROMISE = "promise"
IN_NO_ORDER = ("agreement", "confidence", "cost")
SIGNALS = (*IN_NO_ORDER, LATENCY)
"""What replies show without a grade; latency has a daily rhythm, and resembles its neighbours."""
SHARES = 1 + len(SIGNALS)
"""Tests that share the probability of a false alarm."""
MOST_GROUPS = 50
"""Groups of a certificate that are watched apart; requests of others are watched together."""
OTHERS = "(others)"


class StreamStats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of all replies under a certificate, or of those of a group."""

    mean: MeanState
    replies: int = 0
    drawn: int = 0
    volunteered: int = 0
    volunteered_sum: float = 0.0
    stretch: int = 0
    """The stretch of time that `recent` is of; see `CertificateStats.stretch`."""
    recent: MeanState | None = None
    """Of the audits graded in that stretch; None: of none."""
    floor: float | None = None
    """The least probability with which one of the graded audits was drawn: a weight of 1."""


class CertificateStats(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of a certificate, but for its groups."""

    kind: str
    promised: float | None
    tested: bool
    delta: float
    all: StreamStats
    promise: PromiseTest | None = None
    signals: dict[str, ExchangeabilityTest] = {}
    """Of those that come in no particular order."""
    latency: LatencyStats | None = None
    """None: no reply came yet, or none since its alarm was closed."""
    rung: dict[str, int] = {}
    """How many alarms each signal raised."""
    open: tuple[str, ...] = ()
    """Signals whose last alarm is open: they raise no other."""
    explored: int = 0
    failed: int = 0
    audits_nano: int = 0
    explored_nano: int = 0
    groups: tuple[str, ...] = ()
    stretch: int = 0
    """How often the promise's alarm was raised or closed: a stretch of time begins with each. When
    it begins depends on what came before alone, so that, whatever that was, the interval of what
    is graded in it misses a mean that stays the same, ever, with probability at most `delta`. That
    is of each stretch and not of all of them together, and beside the interval of the life."""
    lately: dict[str, Window] = {}
    """The last grades (`promise`) and the last values of each signal; nothing of before its alarm
    was closed."""


@dataclass(frozen=True)
class MonitorState:
    """A certificate's state: the whole, and such groups as are needed."""

    whole: CertificateStats
    groups: Mapping[str, StreamStats]


@dataclass(frozen=True)
class Raised:
    """An alarm that was raised."""

    signal: str
    number: int
    """The how-manieth of its signal, from 1."""
    evidence: float
    says: str


def begin(first: Replied, delta: float) -> CertificateStats:
    """Return what is known of a certificate before its first reply.

    Args:
        first: that reply, which says what is promised.
        delta: the probability of a false alarm, ever, of all signals together; and with which each
            interval ever misses.
    """
    tests = first.tested and first.promised is not None and 0 < first.promised < 1
    return CertificateStats(
        kind=first.kind,
        promised=first.promised,
        tested=tests,
        delta=delta,
        all=StreamStats(MeanState.begin(delta)),
        promise=PromiseTest.begin(1 - (first.promised or 0.0)) if tests else None,
        signals={name: ExchangeabilityTest.begin() for name in IN_NO_ORDER},
    )


def group_of(whole: CertificateStats, event: AnyEvent) -> str | None:
    """Return under which group an event is counted; None: under none.

    Clients name groups, so that there could be as many as they like: from `MOST_GROUPS` on new ones
    are one.
    """
    name = event.group
    if name is None or name in whole.groups or len(whole.groups) < MOST_GROUPS:
        return name
    return OTHERS


def after(
    state: MonitorState, events: Sequence[tuple[str, AnyEvent]]
) -> tuple[MonitorState, list[Raised]]:
    """Return what is known after events, and the alarms that they raise.

    What comes before an alarm is closed is counted as if it had come by itself.

    Args:
        state: before; with those groups that it has seen and the events name.
        events: each with the id of its request, in their order.
    """
    if (at := _closing(events)) > 0:
        between, first = after(state, events[:at])
        last, then = after(between, events[at:])
        return last, [*first, *then]
    whole, groups = state.whole, dict(state.groups)
    if events and isinstance(closed := events[0][1], Closed):
        whole = _reopened(whole, closed.signal)
    named: dict[str, list[AnyEvent]] = {}
    for _, event in events:
        name = group_of(whole, event)
        if name is not None:
            named.setdefault(name, []).append(event)
            if name not in whole.groups:
                whole = msgspec.structs.replace(whole, groups=(*whole.groups, name))
    whole = _asked(whole, events)
    own = [event for _, event in events]
    whole = msgspec.structs.replace(whole, all=_part(whole.all, own, whole))
    for name, some in named.items():
        before = groups.get(name) or StreamStats(MeanState.begin(whole.delta))
        groups[name] = _part(before, some, whole)
    whole, raised = _tested(whole, events, state.whole.all.floor)
    return MonitorState(whole, groups), raised


def _closing(events: Sequence[tuple[str, AnyEvent]]) -> int:
    """Return where the last alarm is closed; 0 also where none is."""
    places = (k for k, (_, event) in enumerate(events) if isinstance(event, Closed))
    return max(places, default=0)


def _part(part: StreamStats, events: Sequence[AnyEvent], whole: CertificateStats) -> StreamStats:
    """Count events; audits alone make the intervals."""
    replies = [one for one in events if isinstance(one, Replied)]
    users = [one for one in events if isinstance(one, Volunteered)]
    values, weights, floor = _graded(events, part.floor)
    recent = part.recent if part.stretch == whole.stretch else None
    if whole.stretch and len(values):
        recent = observe(recent or MeanState.begin(whole.delta), values, weights)
    return StreamStats(
        mean=observe(part.mean, values, weights) if len(values) else part.mean,
        replies=part.replies + len(replies),
        drawn=part.drawn + sum(one.audited for one in replies),
        volunteered=part.volunteered + sum(one.was is None for one in users),
        volunteered_sum=part.volunteered_sum + sum(one.value - (one.was or 0.0) for one in users),
        stretch=whole.stretch,
        recent=recent,
        floor=floor,
    )


def _graded(
    events: Sequence[AnyEvent], floor: float | None
) -> tuple[FloatArray, FloatArray, float | None]:
    """Return the grades of audits, their weights, [k] each, and the least probability so far.

    What was drawn twice as often counts half. A probability below all before it, as where `audit`
    was lowered, is the floor from then on: were the floor to stay, requests of low probability
    would count too little beside others for as long as both come.
    """
    grades = [one for one in events if isinstance(one, AuditGraded)]
    if not grades:
        return np.zeros(0), np.zeros(0), floor
    likely = np.array([one.probability for one in grades])
    least = np.minimum.accumulate(likely if floor is None else np.minimum(likely, floor))
    return np.array([one.value for one in grades]), least / likely, float(least[-1])


def _asked(whole: CertificateStats, events: Sequence[tuple[str, AnyEvent]]) -> CertificateStats:
    asked = [event for _, event in events if isinstance(event, AuditAsked)]
    audits = [one for one in asked if one.purpose == "audit"]
    explored = sum(event.explored for _, event in events if isinstance(event, Replied))
    nano = sum(one.cost_nano for one in asked)
    audits_nano = sum(one.cost_nano for one in audits)
    return msgspec.structs.replace(
        whole,
        explored=whole.explored + explored,
        failed=whole.failed + sum(one.failed for one in audits),
        audits_nano=whole.audits_nano + audits_nano,
        explored_nano=whole.explored_nano + nano - audits_nano,
    )


def _tested(
    whole: CertificateStats, events: Sequence[tuple[str, AnyEvent]], floor: float | None
) -> tuple[CertificateStats, list[Raised]]:
    """Test the promise against grades, and each signal against having changed.

    The events are counted already; `floor` is of the audits that were graded before.
    """
    level, raised = whole.delta / SHARES, []
    promise, lately = whole.promise, dict(whole.lately)
    signals = {name: whole.signals[name] for name in IN_NO_ORDER}
    values, weights, _ = _graded([event for _, event in events], floor)
    lately[PROMISE] = with_last(lately.get(PROMISE, ()), values, weights)
    if promise is not None and PROMISE not in whole.open and len(values):
        promise = promise.observe(1 - values, weights)
        if promise.alarms(level):
            said = promise_said(
                whole.kind,
                1 - promise.alpha,
                lately[PROMISE],
                whole.all.mean,
                promise.evidence(),
            )
            raised.append(_raised(whole, PROMISE, promise.evidence(), said))
    replies = [(name, event) for name, event in events if isinstance(event, Replied)]
    for signal in IN_NO_ORDER:
        known = [(name, _of(event, signal)) for name, event in replies]
        shown = [(name, value) for name, value in known if value is not None]
        if signal in whole.open or not shown:
            continue
        uniforms = np.array([lot(name, signal) for name, _ in shown])
        new = np.array([value for _, value in shown])
        test = signals[signal] = signals[signal].observe(new, uniforms)
        lately[signal] = with_last(lately.get(signal, ()), new, np.ones_like(new))
        if test.alarms(level):
            said = signal_said(signal, values_said(signal, lately[signal], test))
            raised.append(_raised(whole, signal, test.evidence(), said))
    latency = whole.latency
    if LATENCY not in whole.open:
        latency = (latency or LatencyStats.begin()).after(_timed(replies))
        if latency.test.alarms(level):
            said = signal_said(LATENCY, latency.says())
            raised.append(_raised(whole, LATENCY, latency.test.evidence(), said))
    rung = whole.rung | {one.signal: one.number for one in raised}
    whole = msgspec.structs.replace(
        whole,
        promise=promise,
        signals=signals,
        latency=latency,
        rung=rung,
        open=(*whole.open, *(one.signal for one in raised)),
        stretch=whole.stretch + any(one.signal == PROMISE for one in raised),
        lately=lately,
    )
    return whole, raised


def _of(reply: Replied, signal: str) -> float | None:
    if signal == "cost":
        return reply.cost_usd
    return reply.agreement if signal == "agreement" else reply.confidence


def _timed(replies: Sequence[tuple[str, Replied]]) -> list[Timed]:
    """Return latencies, but of replies that an older version wrote."""
    return [
        (name, reply.half_hour, reply.latency_s)
        for name, reply in replies
        if reply.half_hour is not None and reply.latency_s is not None
    ]


def _reopened(whole: CertificateStats, signal: str) -> CertificateStats:
    """Begin a signal's test anew, once somebody saw to its alarm."""
    if signal not in whole.open:
        return whole
    promise, signals = whole.promise, dict(whole.signals)
    if signal == PROMISE:
        promise = None if whole.promise is None else PromiseTest.begin(whole.promise.alpha)
    elif signal != LATENCY:
        signals[signal] = ExchangeabilityTest.begin()
    return msgspec.structs.replace(
        whole,
        open=tuple(one for one in whole.open if one != signal),
        promise=promise,
        signals=signals,
        latency=None if signal == LATENCY else whole.latency,
        stretch=whole.stretch + (signal == PROMISE),
        lately={name: window for name, window in whole.lately.items() if name != signal},
    )


def _raised(whole: CertificateStats, signal: str, evidence: float, says: str) -> Raised:
    return Raised(signal, whole.rung.get(signal, 0) + 1, evidence, says)
