import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.betting import mean_p_value, mean_upper


def by_hand(values: FloatArray, mean: float, delta: float) -> float:
    """The same bets, one at a time, as the paper writes them."""
    x = values[np.random.default_rng(0).permutation(len(values))]
    fortune = largest = 1.0
    for i, value in enumerate(x):
        running = [(0.5 + sum(x[: j + 1])) / (j + 2) for j in range(i)]
        spread = (0.25 + sum((x[j] - running[j]) ** 2 for j in range(i))) / (i + 1)
        bet = min(np.sqrt(2 * np.log(1 / delta) / (len(x) * spread)), 0.75 / (1 - mean))
        fortune *= 1 - bet * (value - mean)
        largest = max(largest, fortune)
    return float(1 / largest)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.05, 0.95))
@settings(deadline=None, max_examples=50)
def test_it_is_the_paper_s_capital_process(values: list[float], mean: float) -> None:
    x = np.array(values)
    assert mean_p_value(x, mean, 0.1) == pytest.approx(by_hand(x, mean, 0.1), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0.2, 3.8), (2.0, 2.0), (0.05, 0.45)])
def test_small_p_values_are_rare_where_the_mean_is_reached(shape: tuple[float, float]) -> None:
    rng = np.random.default_rng(1)
    runs, delta, mean = 2_000, 0.1, shape[0] / sum(shape)
    draws = rng.beta(*shape, size=(runs, 100))
    found = sum(mean_p_value(row, mean, delta) <= delta for row in draws)
    assert stats.binomtest(found, runs, delta, alternative="greater").pvalue > 1e-4
    assert sum(mean_p_value(row, mean + 0.15, delta) <= delta for row in draws) > runs * 0.9


def test_the_upper_bound_inverts_the_test_and_sorting_does_not_matter_to_it() -> None:
    rng = np.random.default_rng(2)
    x = rng.beta(1, 9, 300)
    upper = mean_upper(x, 0.1)
    assert mean_p_value(x, upper + 1e-9, 0.1) <= 0.1 < mean_p_value(x, upper - 1e-6, 0.1)
    assert 0.1 < upper < 0.13
    assert mean_upper(np.sort(x), 0.1) == pytest.approx(upper, abs=0.01)


def test_a_file_sorted_by_value_is_no_evidence() -> None:
    """Cheap questions first would make a gambler rich who did not shuffle."""
    rng = np.random.default_rng(3)
    halves = np.sort((rng.random((300, 100)) < 0.5).astype(float), axis=1)
    found = sum(mean_p_value(row, 0.5, 0.1) <= 0.1 for row in halves)
    assert stats.binomtest(found, 300, 0.1, alternative="greater").pvalue > 1e-4


def test_means_outside_and_no_values() -> None:
    assert mean_p_value(np.array([0.5]), 1.0, 0.1) == 0
    assert mean_p_value(np.array([1.0, 0.5]), 1.0, 0.1) == 0
    assert mean_p_value(np.ones(9), 1.0, 0.1) == 1
    assert mean_p_value(np.ones(9), 1.01, 0.1) == 0
    assert mean_p_value(np.ones(999), 1 - 1e-9, 0.1) == 1
    assert mean_p_value(np.array([0.5]), 0.0, 0.1) == 1
    assert mean_p_value(np.array([]), 0.5, 0.1) == 1
