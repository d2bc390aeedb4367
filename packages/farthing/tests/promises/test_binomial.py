import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.promises.statistics.binomial import binomial_cdf, binomial_interval

trials = st.integers(1, 600).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(trials, st.floats(0.001, 0.999))
@settings(deadline=None)
def test_the_distribution_function(counts: tuple[int, int], chance: float) -> None:
    k, n = counts
    np.testing.assert_allclose(
        binomial_cdf(k, n, chance), stats.binom.cdf(k, n, chance), rtol=1e-8, atol=1e-12
    )


def test_nothing_tried_and_less_than_none() -> None:
    assert binomial_cdf(0, 0, 0.1) == 1
    assert binomial_cdf(-1, 5, 0.1) == 0


@pytest.mark.slow
@given(trials, st.sampled_from([0.001, 0.05, 0.2]))
@settings(deadline=None)
def test_the_interval(counts: tuple[int, int], delta: float) -> None:
    k, n = counts
    exact = stats.binomtest(k, n).proportion_ci(1 - delta)
    np.testing.assert_allclose(binomial_interval(k, n, delta), exact, rtol=1e-6, atol=1e-9)
