"""What enters which number: counted by hand."""

import re
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binomtest
from watched_traffic import event

from farthing.promises.statistics.confidence_sequence import MeanState, estimate, interval, observe
from farthing.promises.statistics.drift import PromiseTest
from farthing_gateway.monitoring.events import (
    AnyEvent,
    AuditAsked,
    AuditGraded,
    Closed,
    Replied,
    Volunteered,
)
from farthing_gateway.monitoring.recent_window import LATELY
from farthing_gateway.monitoring.statistics import (
    MOST_GROUPS,
    OTHERS,
    PROMISE,
    SHARES,
    SIGNALS,
    MonitorState,
    Raised,
    after,
    begin,
)

DELTA = 0.05
REPLY = Replied(kind="agreement", promised=0.9)


def counted(*events: AnyEvent, first: Replied = REPLY) -> MonitorState:
    """Return what is known after events of one certificate."""
    state = MonitorState(begin(first, DELTA), {})
    return after(state, list(map(event, events)))[0]


def test_grades_of_audits_alone_make_the_interval() -> None:
    grades = [1.0, 0.0, 1.0, 1.0, 0.5]
    state = counted(
        *[Replied(kind="agreement", promised=0.9, audited=True)] * 7,
        *[REPLY] * 13,
        *[AuditGraded(value=grade, probability=0.3) for grade in grades],
        *[Volunteered(value=0.0)] * 40,
        AuditAsked(purpose="audit", cost_nano=70),
        AuditAsked(purpose="audit", cost_nano=5, failed=True),
        AuditAsked(purpose="explore", cost_nano=11),
    )
    part = state.whole.all
    assert (part.replies, part.drawn, part.mean.n, part.volunteered) == (20, 7, 5, 40)
    assert estimate(part.mean) == pytest.approx(3.5 / 5)
    assert interval(part.mean) == interval(observe(MeanState.begin(DELTA), np.array(grades)))
    assert part.volunteered_sum == 0.0
    assert (state.whole.failed, state.whole.audits_nano, state.whole.explored_nano) == (1, 75, 11)


def test_what_was_drawn_twice_as_often_counts_half() -> None:
    state = counted(
        REPLY,
        *[AuditGraded(value=1.0, probability=0.1)] * 4,
        *[AuditGraded(value=0.0, probability=0.2)] * 4,
        *[AuditGraded(value=0.0, probability=0.05)] * 1,  # the least so far: counts as one
    )
    assert estimate(state.whole.all.mean) == pytest.approx(4 / (4 + 4 / 2 + 1))
    state, _ = after(
        state, [event(AuditGraded(value=0.0, probability=0.1))] * 2
    )  # from now on a half
    assert estimate(state.whole.all.mean) == pytest.approx(4 / (4 + 4 / 2 + 1 + 2 / 2))


def test_the_promise_is_tested_with_the_weights_of_the_interval() -> None:
    grades = [
        AuditGraded(value=float(k % 12 > 0), probability=[0.5, 0.1, 0.2][k % 3]) for k in range(90)
    ]
    weights = np.array([1.0, *[[0.2, 1.0, 0.5][k % 3] for k in range(1, 90)]])
    values = np.array([one.value for one in grades])
    state = counted(REPLY)
    for start in range(0, 90, 13):
        some = [event(one) for one in grades[start : start + 13]]
        state, _ = after(state, some)
    assert interval(state.whole.all.mean) == interval(
        observe(MeanState.begin(DELTA), values, weights)
    )
    by_hand = PromiseTest.begin(0.1).observe(1 - values, weights)
    assert state.whole.promise is not None
    assert state.whole.promise.evidence() == pytest.approx(by_hand.evidence())


@pytest.mark.slow
@pytest.mark.parametrize("share", [(0.1, 0.5), (0.5, 0.1), (0.5, 0.1, 0.5)], ids=str)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_the_interval_is_right_where_audit_is_changed(
    share: tuple[float, ...], *, late: bool
) -> None:
    """Raised, lowered, both; grades may come in any order, some from before the change."""
    generator, mean, missed = np.random.default_rng(6), 0.9, 0
    streams, n = 150, 900
    for _ in range(streams):
        probability = np.repeat(share, n // len(share))
        at = np.arange(n) + (generator.exponential(300, n) if late else 0)
        drawn = np.flatnonzero(generator.random(n) < probability)
        drawn = drawn[np.argsort(at[drawn])]
        right = generator.random(n) < mean
        state, ever = counted(REPLY), False
        for some in np.array_split(drawn, 8):
            grades = [AuditGraded(value=float(right[k]), probability=probability[k]) for k in some]
            state, _ = after(state, [event(one) for one in grades])
            low, high = interval(state.whole.all.mean)
            ever |= not low <= mean <= high
        missed += ever
    assert binomtest(missed, streams, DELTA, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_two_gateways_that_draw_unequally_have_one_right_interval() -> None:
    """One of hard requests draws five times as often, and its audit is graded first."""
    generator, missed = np.random.default_rng(7), 0
    streams, n, mean = 40, 3_000, 0.5 * 0.98 + 0.5 * 0.7
    for _ in range(streams):
        hard = generator.random(n) < 0.5
        hard[0] = True
        probability = np.where(hard, 0.5, 0.1)
        right = generator.random(n) < np.where(hard, 0.7, 0.98)
        drawn = generator.random(n) < probability
        drawn[0] = True
        grades = [
            AuditGraded(value=float(right[k]), probability=float(probability[k]), group="g")
            for k in np.flatnonzero(drawn)
        ]
        state = counted(REPLY, *grades)
        for part in (state.whole.all, state.groups["g"]):
            low, high = interval(part.mean)
            missed += not low <= mean <= high
    assert binomtest(missed, 2 * streams, DELTA, alternative="greater").pvalue > 1e-3


def test_a_group_has_its_own_requests_and_no_others() -> None:
    state = counted(
        Replied(kind="agreement", promised=0.9, group="a", audited=True),
        Replied(kind="agreement", promised=0.9, group="b"),
        REPLY,
        AuditGraded(value=0.0, probability=0.5, group="a"),
        AuditGraded(value=1.0, probability=0.5),
        Volunteered(value=1.0, group="b"),
        Volunteered(value=0.25, was=1.0, group="b"),
    )
    a, b = state.groups["a"], state.groups["b"]
    assert set(state.groups) == {"a", "b"}
    assert (a.replies, a.drawn, a.mean.n, estimate(a.mean), a.volunteered) == (1, 1, 1, 0.0, 0)
    assert (b.replies, b.drawn, b.mean.n, b.volunteered, b.volunteered_sum) == (1, 0, 0, 1, 0.25)
    whole = state.whole.all
    assert (whole.replies, whole.mean.n, estimate(whole.mean)) == (3, 2, 0.5)


def test_groups_beyond_the_most_are_one() -> None:
    groups = [f"g{k}" for k in range(MOST_GROUPS + 5)]
    state = counted(*(Replied(kind="agreement", group=name) for name in groups))
    again = after(state, [event(Replied(kind="agreement", group="g3"))])[0]
    assert len(again.groups) == MOST_GROUPS + 1
    assert again.groups[OTHERS].replies == 5
    assert again.groups["g3"].replies == 2


def test_in_batches_or_at_once_it_comes_to_the_same() -> None:
    generator = np.random.default_rng(0)
    events: list[AnyEvent] = []
    for k in range(300):
        cost = float(generator.random())
        events.append(Replied(kind="agreement", promised=0.9, group=f"g{k % 3}", cost_usd=cost))
        if k % 2:
            value = float(generator.random() < 0.9)
            events.append(AuditGraded(value=value, probability=0.5, group=f"g{k % 3}"))
    named = list(map(event, events))
    at_once, _ = after(MonitorState(begin(REPLY, DELTA), {}), named)
    state = MonitorState(begin(REPLY, DELTA), {})
    for start in range(0, len(named), 37):
        state, _ = after(state, named[start : start + 37])
    assert state.whole.all.replies == at_once.whole.all.replies == 300
    assert interval(state.whole.all.mean) == interval(at_once.whole.all.mean)
    assert state.groups["g1"].mean.n == at_once.groups["g1"].mean.n
    for signal, test in at_once.whole.signals.items():
        assert state.whole.signals[signal].evidence() == pytest.approx(test.evidence())
    assert at_once.whole.signals["agreement"].fortune.n == 0  # none had one


def test_a_broken_promise_rings_once_and_again_after_it_was_seen_to() -> None:
    broken = [event(AuditGraded(value=float(k % 2), probability=1.0)) for k in range(60)]
    state, first = after(MonitorState(begin(REPLY, DELTA), {}), [event(REPLY), *broken])
    assert [(one.signal, one.number) for one in first] == [(PROMISE, 1)]
    assert first[0].evidence >= SHARES / DELTA
    state, none = after(state, broken)
    assert none == []
    state, none = after(state, [event(Closed(signal=PROMISE))])
    assert none == []
    assert state.whole.promise is not None
    assert state.whole.promise.evidence() == 1.0
    state, second = after(state, broken)
    assert [(one.signal, one.number) for one in second] == [(PROMISE, 2)]


def test_the_alarm_names_the_last_grades_and_no_interval_that_misses_them() -> None:
    generator = np.random.default_rng(3)
    before, later = generator.random(1_000) < 0.98, generator.random(400) < 0.6
    state, none = after(MonitorState(begin(REPLY, DELTA), {}), graded(before))
    assert none == []
    rang: list[Raised] = []
    seen = 0
    while not rang:
        state, rang = after(state, graded(later[seen : seen + 1]))
        seen += 1
    all_of_it = np.concatenate([before, later[:seen]])
    (alarm,) = rang
    assert (
        f"90 % was promised, and of the last 50 graded audits {100 * all_of_it[-50:].mean():.3g} % "
        f"kept it, of all {len(all_of_it):,} {100 * all_of_it.mean():.3g} %. Were it kept"
        in alarm.says
    )
    found = re.search(r"1 in ([0-9,]+) at most", alarm.says)
    assert found is not None
    assert SHARES / DELTA <= int(found[1].replace(",", "")) <= alarm.evidence
    assert "(" not in alarm.says  # an interval of the life, as it was named once


def test_the_alarm_of_parity_names_differences() -> None:
    first = Replied(kind="parity", promised=0.49)  # accuracy may be 0.02 below the reference's
    _, (alarm,) = after(MonitorState(begin(first, DELTA), {}), graded([0.0, 0.5] * 60))
    assert "an accuracy of at least -0.02 beside the reference's was promised" in alarm.says
    assert "of the last 50 graded audits it is -0.5, of all 120 -0.5." in alarm.says


def test_what_is_graded_since_the_alarm_and_since_it_was_closed_is_known_apart() -> None:
    state, raised = after(MonitorState(begin(REPLY, DELTA), {}), graded([1.0, 0.0] * 30, group="g"))
    assert len(raised) == 1
    assert recent(state) == (None, None)
    low = [0.0, 1.0, 0.0]
    state, _ = after(state, graded(low, group="g"))
    since = observe(MeanState.begin(DELTA), np.array(low))
    assert recent(state) == (since, since)
    good = [1.0] * 5
    closed = event(Closed(signal=PROMISE))
    # What came before it was closed is of the stretch before, in whatever batch they are counted.
    at_once = after(state, [*graded(low), closed, *graded(good)])[0]
    state, _ = after(state, graded(low))
    state, _ = after(state, [closed])
    assert recent(state) == (None, None)
    state, _ = after(state, graded(good))
    repaired = observe(MeanState.begin(DELTA), np.array(good))
    assert recent(state) == recent(at_once) == (repaired, None)
    assert state.whole.all.mean.n == 60 + 3 + 3 + 5
    assert state.whole.lately[PROMISE] == at_once.whole.lately[PROMISE] == ((1.0, 1.0),) * 5
    state, _ = after(state, [event(Closed(signal="cost"))])
    assert recent(state) == (repaired, None)


@pytest.mark.slow
def test_the_interval_since_the_alarm_is_right_at_every_moment() -> None:
    generator, share, missed = np.random.default_rng(4), 0.7, 0
    streams = 120
    for _ in range(streams):
        state, _ = after(
            MonitorState(begin(REPLY, DELTA), {}), graded(generator.random(300) < 0.97)
        )
        wrong, mean = False, None
        for _ in range(25):
            state, _ = after(state, graded(generator.random(16) < share))
            mean, _ = recent(state)
            if mean is not None:
                low, high = interval(mean)
                wrong |= not low <= share <= high
        assert mean is not None
        assert mean.n > 100
        missed += wrong
    assert binomtest(missed, streams, DELTA, alternative="greater").pvalue > 1e-3


def graded(
    values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.bool_]], group: str | None = None
) -> list[tuple[str, AnyEvent]]:
    return [event(AuditGraded(value=float(one), probability=1.0, group=group)) for one in values]


def recent(state: MonitorState) -> tuple[MeanState | None, MeanState | None]:
    """Return what is known of the present stretch, of all and of the group `g`."""
    parts = (state.whole.all, state.groups.get("g", state.whole.all))
    of_all, of_group = (one.recent if one.stretch == state.whole.stretch else None for one in parts)
    return of_all, of_group


def test_what_cannot_be_tested_rings_no_alarm() -> None:
    missed = [AuditGraded(value=0.0, probability=1.0)] * 200
    untested = Replied(kind="split", promised=0.9, tested=False)
    assert counted(untested, *missed, first=untested).whole.rung == {}
    nothing = Replied(kind="budget")
    assert counted(nothing, *missed, first=nothing).whole.rung == {}


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_signal_that_shifts_rings_its_own_alarm_alone(signal: str) -> None:
    generator, half_hours = np.random.default_rng(1), count()

    def some(shift: float) -> Replied:
        agreement, confidence, cost, latency = (
            float(generator.random()) + shift * (name == signal) for name in SIGNALS
        )
        return Replied(
            kind="agreement",
            promised=0.9,
            agreement=agreement,
            confidence=confidence,
            cost_usd=cost,
            latency_s=latency,
            half_hour=next(half_hours),
        )

    quiet = [event(some(0.0)) for _ in range(400)]
    state, raised = after(MonitorState(begin(REPLY, DELTA), {}), quiet)
    assert raised == []
    _, raised = after(state, [event(some(0.7)) for _ in range(150)])
    assert [one.signal for one in raised] == [signal]


@pytest.mark.parametrize(
    ("signal", "unit"), [("agreement", "{}"), ("confidence", "{}"), ("cost", "${}")]
)
def test_a_signals_alarm_says_what_it_was_and_what_it_is(signal: str, unit: str) -> None:
    generator = np.random.default_rng(5)
    field = {"cost": "cost_usd"}.get(signal, signal)
    values = np.concatenate([generator.gamma(2, 0.1, 1_500), generator.gamma(2, 0.2, 100)])
    state = MonitorState(begin(REPLY, DELTA), {})
    raised: list[Raised] = []
    seen = 0
    while not raised:
        some = [replied_with(field, value) for value in values[seen : seen + 10].tolist()]
        state, raised = after(state, some)
        seen += 10
    (alarm,) = raised
    before, lately = values[: seen - LATELY], values[seen - LATELY : seen]
    found = re.search(
        rf"The {signal} of replies is no longer what it was: of the last 50 the mean is (.+), "
        r"of the ([0-9,]+) before (.+)\. Whether",
        alarm.says,
    )
    assert found is not None
    assert found[1] == unit.format(f"{lately.mean():.3g}")
    assert found[2] == f"{len(before):,}"
    assert float(found[3].strip("$")) == pytest.approx(before.mean(), rel=0.01)


def replied_with(field: str, value: float) -> tuple[str, AnyEvent]:
    return event(replace(Replied(kind="agreement", promised=0.9, audited=True), **{field: value}))
