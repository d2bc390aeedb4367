"""Latency is watched on all replies, against the same time of other days."""

import math
import re

import msgspec
import numpy as np
import pytest
from watched_traffic import event

from farthing.promises.statistics.rhythm import RhythmTest
from farthing_gateway.monitoring.events import AnyEvent, Closed, Replied
from farthing_gateway.monitoring.latency import (
    A_DAY,
    LATELY,
    LATENCY,
    LatencyStats,
    Timed,
    time_of_day,
)
from farthing_gateway.monitoring.statistics import (
    CertificateStats,
    MonitorState,
    Raised,
    after,
    begin,
)

REPLY = Replied(kind="agreement", promised=0.9)


def replied(half_hour: int, seconds: float) -> tuple[str, AnyEvent]:
    return event(msgspec.structs.replace(REPLY, latency_s=seconds, half_hour=half_hour))


def day(number: int, seconds: float, generator: np.random.Generator) -> list[tuple[str, AnyEvent]]:
    """Return ten replies each half hour of a day, twice as slow at noon as at midnight."""
    found = []
    for half_hour in range(number * A_DAY, (number + 1) * A_DAY):
        usual = seconds * (1.5 - 0.5 * math.cos(2 * math.pi * half_hour / A_DAY))
        found += [replied(half_hour, usual * generator.lognormal(sigma=0.5)) for _ in range(10)]
    return found


def days(*seconds: float) -> tuple[MonitorState, list[Raised]]:
    """Return what is known after days of so many seconds at midnight, and the alarms."""
    generator, state = np.random.default_rng(3), MonitorState(begin(REPLY, 0.05), {})
    raised = []
    for number, one in enumerate(seconds):
        state, some = after(state, day(number, one, generator))
        raised += some
    return state, raised


def test_a_rhythm_rings_no_alarm_and_slower_replies_do() -> None:
    _, raised = days(*[1.0] * 12)
    assert raised == []
    _, raised = days(*[1.0] * 12, 1.5)
    (alarm,) = raised
    assert alarm.signal == LATENCY
    found = re.search(
        r"in the last 12 half hours with replies it is (.+) s, at the same times of (\d+) half "
        r"hours before (.+) s\. Whether",
        alarm.says,
    )
    assert found is not None
    assert float(found[1]) / float(found[3]) == pytest.approx(1.5, rel=0.2)
    assert int(found[2]) > 5 * LATELY


def test_once_it_was_seen_to_what_is_now_is_usual() -> None:
    state, raised = days(*[1.0] * 12, 1.5)
    assert [one.signal for one in raised] == [LATENCY]
    closed = event(Closed(signal=LATENCY))
    generator = np.random.default_rng(4)
    for number in range(13, 20):
        some = day(number, 1.5, generator)
        state, raised = after(state, [closed, *some] if number == 13 else some)
        assert raised == []
    assert state.whole.open == ()
    assert state.whole.latency is not None
    assert state.whole.latency.test.fortune.n == 7 * A_DAY - 1


def test_the_mean_of_each_half_hour_with_replies_is_tested_once() -> None:
    values = np.random.default_rng(5).lognormal(size=(6, 4))
    half_hours = [100, 101, 101 + A_DAY, 103 + A_DAY, 104 + A_DAY, 105 + 7 * A_DAY]
    replies: list[Timed] = [
        (f"{at} {k}", half_hour, float(seconds))
        for at, half_hour in enumerate(half_hours)
        for k, seconds in enumerate(values[at])
    ]
    whole, parts = LatencyStats.begin().after(replies), LatencyStats.begin()
    for one in replies:
        parts = parts.after([one])
    assert parts == whole
    times, means = zip(*whole.lately, strict=True)
    assert times == tuple(map(time_of_day, half_hours[:5]))
    assert means == pytest.approx(np.log(values[:5]).mean(axis=1))
    # One that began in a half hour that ended is left out.
    assert whole.after([("late", 104, 5.0)]) == whole
    text = msgspec.json.encode(whole)
    assert msgspec.json.decode(text, type=LatencyStats) == whole


def test_what_an_older_version_counted_is_read_and_begun_anew() -> None:
    state, _ = days(1.0)
    before = msgspec.to_builtins(state.whole)
    before["signals"]["latency"] = before["signals"]["cost"]  # of audited replies, as it was
    del before["latency"]
    read = msgspec.convert(before, CertificateStats)
    state, _ = after(MonitorState(read, {}), [replied(100, 1.0), event(REPLY)])
    assert state.whole.latency is not None
    assert state.whole.latency.replies == 1
    assert "latency" not in state.whole.signals


def test_values_of_a_time_are_summed_as_they_were_rounded() -> None:
    test = RhythmTest.begin()
    values, times = np.array([1.0, 1.0, 2.0, 4.0]), np.array([0, 0, 0, 1])
    test = test.observe(values, times, np.full(4, 0.5))
    total, number = test.sum_at(0)
    assert total == pytest.approx(4.0)
    assert number == 3
    assert test.sum_at(2) == (0, 0)
    assert sum(test.times[0].counts) == 3
