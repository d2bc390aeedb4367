"""Against the same time of other days: exact where days are alike, whatever the rhythm."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.drift import ExchangeabilityTest, begin_bets, densities
from farthing.promises.statistics.rhythm import RhythmTest

HOURS = 24


def rhythmic(generator: np.random.Generator, days: int) -> FloatArray:
    """Return a value for each hour: far apart within a day, alike on all days."""
    hours = np.arange(days * HOURS) % HOURS
    return 5 * np.sin(2 * np.pi * hours / HOURS) + generator.normal(size=days * HOURS) * (
        1 + hours / HOURS
    )


def ranked(values: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return p-values by their definition, without ties: ranks among the same hour so far."""
    found = []
    for k, value in enumerate(values):
        same = values[k % HOURS : k + 1 : HOURS]
        found.append(((same > value).sum() + uniforms[k]) / len(same))
    return np.array(found)


def test_p_values_are_ranks_among_the_same_time_of_other_days() -> None:
    generator = np.random.default_rng(1)
    values = np.exp(rhythmic(generator, 12))  # rounding leaves all but few apart
    times, uniforms = np.arange(len(values)) % HOURS, generator.random(len(values))
    test, path = RhythmTest.begin().followed(values, times, uniforms)
    expected = begin_bets().after(densities(ranked(values, uniforms)))[1]
    np.testing.assert_allclose(path, expected, atol=0.05)
    assert not test.alarms(0.05)
    parts = RhythmTest.begin()
    for k in range(0, len(values), 7):
        parts = parts.observe(values[k : k + 7], times[k : k + 7], uniforms[k : k + 7])
    assert parts.times == test.times
    assert parts.evidence() == pytest.approx(test.evidence())


def test_p_values_are_uniform_whatever_the_rhythm() -> None:
    generator = np.random.default_rng(3)
    p = ranked(rhythmic(generator, 300), generator.random(300 * HOURS))
    assert kstest(p, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(p[:-1], p[1:])[0, 1]) < 0.03


def test_no_alarm_rings_on_the_first_day() -> None:
    values = np.repeat([1.0, 100.0], [HOURS // 2, HOURS // 2])
    test = RhythmTest.begin().observe(values, np.arange(HOURS), np.random.default_rng(3).random(24))
    assert not test.alarms(0.5)


@pytest.mark.simulations
def test_a_daily_rhythm_rings_no_more_often_than_delta() -> None:
    """Over 1,000 gateways of ten days; a test that knows no time of day rings in nearly all."""
    rang = blind = 0
    for run in range(1_000):
        generator = np.random.default_rng([run, 6])
        values, uniforms = rhythmic(generator, 10), generator.random(10 * HOURS)
        times = np.arange(len(values)) % HOURS
        rang += RhythmTest.begin().observe(values, times, uniforms).alarms(0.05)
        blind += ExchangeabilityTest.begin().observe(values, uniforms).alarms(0.05)
    assert rang <= 50
    assert blind > 500


@pytest.mark.parametrize(
    ("values", "times", "uniforms"),
    [([math.nan], [0], [0.5]), ([1.0], [0], [1.5]), ([1.0], [0, 1], [0.5]), ([1.0], [0], [])],
)
def test_what_is_no_value_is_refused(
    values: list[float], times: list[int], uniforms: list[float]
) -> None:
    with pytest.raises(CalibrationError):
        RhythmTest.begin().observe(np.array(values), np.array(times), np.array(uniforms))
