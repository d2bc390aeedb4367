from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.kinds.split import split_threshold
from farthing_lab.promises.weighted import (
    Weighted,
    effective_size,
    weighted_threshold,
    weighted_thresholds,
)

GRID = 32
questions = st.lists(
    st.tuples(st.integers(0, GRID) | st.just(np.inf), st.integers(0, 9)), max_size=30
)
levels = st.integers(1, 19).map(lambda i: Fraction(i, 20))


@pytest.mark.slow
@given(questions, st.integers(1, 9), levels)
@settings(deadline=None)
def test_it_covers_whom_the_weighted_p_value_covers(
    rows: list[tuple[float, int]], new_weight: int, alpha: Fraction
) -> None:
    """p = weight of what is no easier, itself included, over all; covered iff p > alpha."""
    critical = np.array([score / GRID for score, _ in rows])
    weights = np.array([float(weight) for _, weight in rows])
    sample = Weighted(critical, weights, 9.0)
    kappa = weighted_thresholds(sample, np.array([new_weight]), alpha)[0]
    for new in [*np.arange(GRID + 1) / GRID, np.inf]:
        no_easier = sum(w for (s, w) in rows if s / GRID <= new) + new_weight
        p_value = Fraction(no_easier, sum(w for _, w in rows) + new_weight)
        assert (new >= kappa) == (p_value > alpha)


@given(questions, levels, st.floats(1e-9, 1e9))
@settings(deadline=None)
def test_with_equal_weights_it_is_split_conformal(
    rows: list[tuple[float, int]], alpha: Fraction, weight: float
) -> None:
    critical = np.array([score / GRID for score, _ in rows])
    sample = Weighted(critical, np.full(len(rows), weight), weight)
    assert weighted_threshold(sample, alpha) == split_threshold(critical, alpha)


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 1.1])
def test_rounded_sums_of_equal_weights_cost_no_rank(weight: float) -> None:
    """Sums of 0.1 fall short of whole numbers, or exceed them, and the first rule took them so."""
    critical = np.arange(1, 200) / 200
    ranks = []
    for n in range(9, 199, 10):
        sample = Weighted(critical[:n], np.full(n, weight), weight)
        by_first = weighted_threshold(replace(sample, rule=1), "0.1").k
        ranks.append((weighted_threshold(sample, "0.1").k, by_first, (n + 1) // 10))
    assert all(now == split for now, _, split in ranks)
    assert any(first < split for _, first, split in ranks)


def test_the_common_threshold_is_that_of_the_heaviest_question() -> None:
    rng = np.random.default_rng(0)
    sample = Weighted(rng.random(200), rng.exponential(size=200), 5.0)
    kappas = weighted_thresholds(sample, np.array([0.1, 1.0, 5.0, 50.0]), "0.1")
    assert (np.diff(kappas) <= 0).all()
    assert weighted_threshold(sample, "0.1").kappa == kappas[2]
    assert kappas[3] == 0


@pytest.mark.slow
def test_coverage_holds_in_the_target_mix_where_split_conformal_fails() -> None:
    """Hard questions are a fifth of the calibration mix and 4/5 of the target."""
    rng = np.random.default_rng(1)
    runs, n = 2_000, 200
    misses = naive = 0
    for _ in range(runs):
        hard = rng.random(n) < 0.2
        critical = rng.random(n) / (1 + hard)
        sample = Weighted(critical, np.where(hard, 4.0, 0.25), 4.0)
        new_hard = rng.random() < 0.8
        new = rng.random() / (1 + new_hard)
        weight = np.array([4.0 if new_hard else 0.25])
        misses += new < weighted_thresholds(sample, weight, "0.1")[0]
        naive += new < split_threshold(critical, "0.1").kappa
    assert stats.binomtest(misses, runs, 0.1, alternative="greater").pvalue > 1e-4
    assert misses > 0.05 * runs
    assert stats.binomtest(naive, runs, 0.1, alternative="greater").pvalue < 1e-4


def test_effective_size() -> None:
    assert effective_size(np.array([2.0, 2.0, 0.0])) == 2
    assert effective_size(np.array([3.0, 1.0])) == pytest.approx(1.6)
    assert effective_size(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("weights", "largest"),
    [([1.0, -1.0], 1.0), ([np.inf, 1.0], 1.0), ([1.0, 1.0], 0.0), ([np.nan, 1.0], 1.0)],
)
def test_weights_that_are_no_ratio_are_refused(weights: list[float], largest: float) -> None:
    with pytest.raises(CalibrationError, match="weights must be finite"):
        Weighted(np.array([0.1, 0.2]), np.array(weights), largest)


def test_scores_and_weights_must_fit() -> None:
    with pytest.raises(CalibrationError, match="2 scores but weights"):
        Weighted(np.array([0.1, 0.2]), np.array([1.0]), 1.0)
    with pytest.raises(CalibrationError, match="are NaN"):
        Weighted(np.array([np.nan]), np.array([1.0]), 1.0)
