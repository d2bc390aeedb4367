from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.kinds.pac import pac_rank, pac_threshold

UNLIKELY = 1e-4
levels = st.integers(1, 19).map(lambda i: Fraction(i, 20)) | st.integers(2, 9).map(
    lambda i: Fraction(1, i)
)


def exact_rank(n: int, alpha: Fraction, delta: Fraction) -> int:
    """The same by exact fractions and a search from above."""

    def failure(k: int) -> Fraction:
        return sum((comb(n, i) * alpha**i * (1 - alpha) ** (n - i) for i in range(k)), Fraction(0))

    return next(k for k in range(n, -1, -1) if k == 0 or failure(k) <= delta)


@pytest.mark.slow
@given(st.integers(0, 60), levels, levels)
@settings(deadline=None)
def test_the_rank_by_exact_fractions(n: int, alpha: Fraction, delta: Fraction) -> None:
    assert pac_rank(n, alpha, delta) == exact_rank(n, alpha, delta)


def test_a_failure_probability_of_exactly_delta_is_allowed() -> None:
    assert pac_rank(1, Fraction("0.1"), Fraction("0.9")) == 1
    assert pac_rank(2, Fraction("0.1"), Fraction("0.81")) == 1
    assert pac_rank(2, Fraction("0.1"), Fraction("0.99")) == 2


@pytest.mark.parametrize("n", [50, 1_000, 100_000, 1_000_000])
@pytest.mark.parametrize("alpha", ["0.01", "0.1", "0.5"])
@pytest.mark.parametrize("delta", ["0.001", "0.05"])
def test_the_rank_by_the_beta_distribution(n: int, alpha: str, delta: str) -> None:
    k = pac_rank(n, Fraction(alpha), Fraction(delta))
    covers = 1 - float(alpha)
    assert k == 0 or stats.beta.cdf(covers, n + 1 - k, k) <= float(delta)
    assert stats.beta.cdf(covers, n - k, k + 1) > float(delta)


@pytest.mark.parametrize("n", [29, 60, 200])
@pytest.mark.parametrize("alpha", ["0.1", "0.2"])
@pytest.mark.parametrize("delta", ["0.05", "0.2"])
def test_it_fails_as_rarely_as_promised(n: int, alpha: str, delta: str) -> None:
    """On uniform scores coverage is 1 - kappa; a failure is a coverage below 1 - alpha."""
    runs = 3_000
    rng = np.random.default_rng([n, int(alpha[2:]), int(delta[2:])])
    found = [pac_threshold(rng.random(n), alpha, delta) for _ in range(runs)]
    k = found[0].k
    failures = sum(threshold.kappa > float(alpha) for threshold in found)
    exact = stats.beta.cdf(1 - float(alpha), n + 1 - k, k)
    assert exact <= float(delta)
    assert stats.binomtest(failures, runs, float(delta), alternative="greater").pvalue > UNLIKELY
    assert stats.binomtest(failures, runs, exact).pvalue > UNLIKELY


def test_solvable_questions_alone_and_too_few() -> None:
    scores = np.concatenate([np.full(500, np.inf), np.arange(1, 101) / 100])
    found = pac_threshold(scores, 0.1, 0.05, population="solvable")
    assert found == pac_threshold(scores[500:], 0.1, 0.05)
    few = pac_threshold(scores[-28:], 0.1, 0.05)
    assert (few.kappa, few.k, few.n) == (0.0, 0, 28)


def test_a_delta_outside_0_and_1_is_refused() -> None:
    with pytest.raises(CalibrationError, match="delta is 0"):
        pac_threshold(np.array([0.5]), 0.1, 0)
