import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.promises.statistics.beta import beta_cdf, beta_quantile, realised_coverage


@given(st.floats(0, 1), st.floats(0.5, 3_000), st.floats(0.5, 3_000))
@example(0.9999999999999999, 0.5, 0.5)
@settings(deadline=None)
def test_the_distribution_function(x: float, a: float, b: float) -> None:
    # within 1e-9 of 1 scipy loses digits on this side, and none on the other
    lower = stats.beta.cdf(x, a, b) if x < 0.5 else 1 - stats.beta.cdf(1 - x, b, a)
    np.testing.assert_allclose(beta_cdf(x, a, b), lower, rtol=1e-9, atol=1e-12)


def test_next_to_1_against_the_closed_form() -> None:
    x = 0.9999999999999999
    arcsine = 1 - 2 / math.pi * math.asin(math.sqrt(1 - x))  # Beta(1/2, 1/2)
    assert abs(beta_cdf(x, 0.5, 0.5) - arcsine) < 1e-15


@pytest.mark.parametrize("n", [1, 9, 200, 5_000, 1_000_000])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_interval(n: int, share: float) -> None:
    k = max(1, int(share * n))
    expected = stats.beta.ppf([0.025, 0.975], n + 1 - k, k)
    np.testing.assert_allclose(realised_coverage(n, k), expected, rtol=1e-9)


def test_quantiles_invert_and_everything_covers_everyone() -> None:
    for probability in (0.001, 0.3, 0.999):
        assert abs(beta_cdf(beta_quantile(probability, 181, 20), 181, 20) - probability) < 1e-12
    assert realised_coverage(5, 0) == (1.0, 1.0)
    assert beta_cdf(-1, 2, 3) == 0
    assert beta_cdf(2, 2, 3) == 1
