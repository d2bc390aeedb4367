"""Intervals that hold at once for all points that could be chosen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.max_t import max_t

ONE = stats.norm.ppf(0.975)


def centred(values: FloatArray) -> FloatArray:
    found: FloatArray = values - values.mean(axis=0)
    return found


def correlated(n: int, columns: int, rng: np.random.Generator) -> FloatArray:
    """Return steps of one walk, as neighbouring operating points differ in few questions."""
    return rng.normal(size=(n, columns)).cumsum(axis=1)


@given(st.integers(2, 60), st.integers(1, 12), st.integers(0, 100))
@settings(deadline=None, max_examples=50)
def test_it_is_never_less_than_for_one_mean(n: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = max_t([centred(correlated(n, columns, rng))], 0.05, rng)
    assert found >= ONE - 1e-12


def test_of_one_mean_it_is_what_one_mean_has() -> None:
    rng = np.random.default_rng(0)
    found = [max_t([centred(rng.exponential(size=(400, 1)))], 0.05, rng) for _ in range(20)]
    assert np.mean(found) == pytest.approx(1.99, abs=0.03)  # a little more: never less than 1.96
    assert max_t([centred(rng.normal(size=(400, 1)))], 0.32, rng) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_of_independent_means_it_is_the_largest_of_as_many_normal_variables() -> None:
    rng = np.random.default_rng(0)
    for columns in (2, 20):
        exact = stats.norm.ppf((1 + 0.95 ** (1 / columns)) / 2)
        found = [max_t([centred(rng.normal(size=(1_000, columns)))], 0.05, rng) for _ in range(10)]
        assert np.mean(found) == pytest.approx(exact, abs=0.06)


def test_points_that_do_the_same_widen_nothing() -> None:
    rng = np.random.default_rng(0)
    one = centred(rng.normal(size=(300, 1)))
    same = [
        max_t([np.tile(one, 30) * scale, one], 0.05, np.random.default_rng(1)) for scale in (1, 7)
    ]
    alone = max_t([one], 0.05, np.random.default_rng(1))
    assert same[0] == pytest.approx(alone)
    assert same[1] == pytest.approx(alone)


def test_points_that_never_differ_are_left_out() -> None:
    still = np.zeros((50, 3))
    assert max_t([still], 0.05, np.random.default_rng(0)) == pytest.approx(ONE)
    moving = centred(np.random.default_rng(0).normal(size=(50, 2)))
    both = [max_t(each, 0.05, np.random.default_rng(1)) for each in ([moving], [still, moving])]
    assert both[0] == pytest.approx(both[1])


@pytest.mark.slow
def test_all_means_are_within_it_at_once_as_often_as_it_says() -> None:
    """Of 200 questions and 20 points that resemble one another; 1.96 would not do."""
    rng, runs, n = np.random.default_rng(0), 500, 200
    within = naive = 0
    for _ in range(runs):
        values = correlated(n, 20, rng)  # the true means are 0
        error = np.abs(values.mean(axis=0)) / (values.std(axis=0, ddof=1) / np.sqrt(n))
        within += error.max() <= max_t([centred(values)], 0.05, rng)
        naive += error.max() <= ONE
    assert within / runs > 0.92
    assert within / runs < 0.985
    assert naive / runs < 0.9
