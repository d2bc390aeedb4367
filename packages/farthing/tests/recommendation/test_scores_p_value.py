from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.recommendation.drift import scores_p_value


def test_scores_against_every_permutation() -> None:
    """The exact p-value of a small sample with ties, by enumeration."""
    old, new = np.array([0.1, 0.2, 0.2, 0.4, 0.5]), np.array([0.4, 0.6, 0.6, 0.7])
    both = np.concatenate([old, new])

    def distance(chosen: tuple[int, ...]) -> float:
        return float(stats.ks_2samp(np.delete(both, chosen), both[list(chosen)]).statistic)

    seen = distance((5, 6, 7, 8))
    exact = float(np.mean([distance(c) >= seen - 1e-9 for c in combinations(range(9), 4)]))
    ours = scores_p_value(old, new, np.random.default_rng(0), draws=9_999)
    assert ours == pytest.approx(exact, abs=4 * np.sqrt(exact / 10_000))


@pytest.mark.parametrize("ties", [False, True])
def test_small_p_values_are_rare_without_a_shift(ties: bool) -> None:
    rng = np.random.default_rng(1)
    runs = 500
    found = 0
    for _ in range(runs):
        both = rng.integers(0, 4, 50) / 4 if ties else rng.random(50)
        found += scores_p_value(both[:30], both[30:], rng, draws=19) <= 0.1
    assert stats.binomtest(found, runs, 0.1, alternative="greater").pvalue > 1e-4
    assert ties or stats.binomtest(found, runs, 0.1).pvalue > 1e-4


def test_shifts_are_found() -> None:
    rng = np.random.default_rng(2)
    old = rng.random(200)
    assert scores_p_value(old, rng.random(200) * 0.7, rng) == 0.001
    assert scores_p_value(old, 0.5 + (rng.random(200) - 0.5) / 3, rng) == 0.001  # same mean
    assert scores_p_value(old, np.append(old[:150], np.full(50, np.inf)), rng) == 0.001


def test_what_cannot_be_compared_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(CalibrationError, match="at least one score"):
        scores_p_value(np.array([]), np.array([0.1]), rng)
    with pytest.raises(CalibrationError, match="none may be NaN"):
        scores_p_value(np.array([np.nan]), np.array([0.1]), rng)
