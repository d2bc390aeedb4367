from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.recommendation.drift import scores_p_value
from farthing_lab.promises.label_shift import label_weights, mix_p_value


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


def test_counts_of_two_kinds_against_the_hypergeometric_distribution() -> None:
    old, new = np.array([30, 20]), np.array([10, 18])
    law = stats.hypergeom(78, 40, 28)
    k = np.arange(29)
    expected = 28 * 40 / 78
    exact = law.pmf(k)[np.abs(k - expected) >= abs(10 - expected) - 1e-9].sum()
    ours = mix_p_value(old, new, np.random.default_rng(0))
    assert ours == pytest.approx(exact, abs=4 * np.sqrt(exact / 10_000))


def test_large_counts_against_the_chi_square_distribution() -> None:
    old, new = np.array([500, 300, 200, 0]), np.array([230, 170, 100, 0])
    table = np.stack([old, new])[:, :3]
    expected = stats.chi2_contingency(table).pvalue
    assert mix_p_value(old, new, np.random.default_rng(0)) == pytest.approx(expected, abs=0.02)


def test_rare_p_values_of_counts_are_rare_without_a_shift() -> None:
    rng = np.random.default_rng(3)
    runs = 1_000
    found = 0
    for _ in range(runs):
        old, new = rng.multinomial(60, [0.6, 0.3, 0.1]), rng.multinomial(40, [0.6, 0.3, 0.1])
        found += mix_p_value(old, new, rng, draws=99) <= 0.1
    assert stats.binomtest(found, runs, 0.1, alternative="greater").pvalue > 1e-4
    assert found > 0.05 * runs


def test_weights_of_labels_are_recovered_from_predictions_alone() -> None:
    """A predictor that is right 4 times in 5; shares (0.6, 0.3, 0.1) become (0.2, 0.3, 0.5)."""
    rng = np.random.default_rng(4)
    old_shares, new_shares = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])

    def predict(actual: np.ndarray) -> np.ndarray:
        slips = rng.random(len(actual)) < 0.2
        return np.where(slips, (actual + rng.integers(1, 3, len(actual))) % 3, actual)

    actual = rng.choice(3, 20_000, p=old_shares)
    new_actual = rng.choice(3, 20_000, p=new_shares)
    weights = label_weights(predict(actual), actual, predict(new_actual))
    np.testing.assert_allclose(weights, new_shares / old_shares, rtol=0.08)


def test_what_cannot_be_compared_is_refused() -> None:
    rng = np.random.default_rng(0)
    zeros, ones = np.zeros(4, int), np.ones(4, int)
    with pytest.raises(CalibrationError, match="at least one score"):
        scores_p_value(np.array([]), np.array([0.1]), rng)
    with pytest.raises(CalibrationError, match="none may be NaN"):
        scores_p_value(np.array([np.nan]), np.array([0.1]), rng)
    with pytest.raises(CalibrationError, match="over the same kinds"):
        mix_p_value(np.array([1, 2]), np.array([1, 2, 3]), rng)
    with pytest.raises(CalibrationError, match="at least one question"):
        mix_p_value(zeros, ones, rng)
    with pytest.raises(CalibrationError, match="do not tell the true ones apart"):
        label_weights(zeros, np.array([0, 1, 0, 1]), zeros)
    with pytest.raises(CalibrationError, match="every label must occur"):
        label_weights(np.array([0, 1]), np.array([0, 0]), ones)
    with pytest.raises(CalibrationError, match="a label is negative"):
        label_weights(np.array([0, -1]), np.array([0, 1]), ones)
