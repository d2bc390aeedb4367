import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from crepes import ConformalClassifier, ConformalRegressor
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray, Population
from farthing.promises.kinds.split import split_rank, split_threshold

UNLIKELY = 1e-4
GRID = 64
"""Scores are multiples of 1/64, so that ties abound and 1 - score is exact."""

tied_scores = st.lists(st.integers(0, GRID), max_size=60).map(lambda s: np.array(s) / GRID)
levels = st.integers(1, 99).map(lambda i: Fraction(i, 100))


def test_the_rank_has_no_float_accident() -> None:
    assert int(0.29 * 100) == 28  # the accident
    assert split_rank(99, Fraction(29, 100)) == 29
    scores = np.arange(1, 100) / 100
    for alpha in (0.29, "0.29", Decimal("0.29"), Fraction(29, 100), np.float64(0.29)):
        assert split_threshold(scores, alpha).k == 29


@given(tied_scores, levels)
@settings(deadline=None)
def test_it_is_the_kth_smallest_by_counting(scores: FloatArray, alpha: Fraction) -> None:
    found = split_threshold(scores, alpha)
    ranks = [k for k in range(len(scores) + 1) if k <= alpha * (len(scores) + 1)]
    assert (found.k, found.n) == (ranks[-1], len(scores))
    assert found.kappa == (sorted(scores)[found.k - 1] if found.k else 0.0)


@pytest.mark.slow
@given(tied_scores.filter(len), levels)
@settings(deadline=None)
def test_it_covers_whom_the_p_values_of_crepes_cover(scores: FloatArray, alpha: Fraction) -> None:
    """A score is covered iff its p-value, (1 + #{calibration <= it}) / (n + 1), exceeds alpha."""
    new = np.arange(GRID + 1) / GRID
    classifier = ConformalClassifier().fit(-scores)
    p_values = classifier.predict_p(-new[:, None], smoothing=False)[:, 0]
    counts = np.rint(p_values * (len(scores) + 1)).astype(int)
    by_crepes = [Fraction(int(count), len(scores) + 1) > alpha for count in counts]
    assert (new >= split_threshold(scores, alpha).kappa).tolist() == by_crepes


@given(tied_scores.filter(len), st.integers(1, GRID - 1))
@settings(deadline=None)
def test_it_is_the_half_width_of_crepes_intervals(scores: FloatArray, sixty_fourths: int) -> None:
    """Non-conformity 1 - kappa*; alpha a dyadic fraction, which floats hold exactly."""
    alpha = Fraction(sixty_fourths, GRID)
    regressor = ConformalRegressor().fit(1 - scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few examples: an infinite interval, our 0
        width = regressor.predict_int(np.zeros(1), confidence=float(1 - alpha))[0, 1]
    found = split_threshold(scores, alpha)
    assert found.kappa == (1 - width if np.isfinite(width) else 0.0)
    assert np.isfinite(width) == (found.k > 0)


@given(tied_scores, st.integers(0, 30), levels)
@settings(deadline=None)
def test_unsolvable_questions_rank_last_or_not_at_all(
    scores: FloatArray, unsolvable: int, alpha: Fraction
) -> None:
    both = np.concatenate([np.full(unsolvable, np.inf), scores])
    assert split_threshold(both, alpha, "solvable") == split_threshold(scores, alpha)
    everyone = split_threshold(both, alpha)
    assert everyone.n == len(both)
    assert everyone.kappa >= split_threshold(scores, alpha).kappa
    assert np.isinf(everyone.kappa) == (everyone.k > len(scores))


@pytest.mark.parametrize("population", ["all", "solvable"])
def test_too_few_questions_give_everything(population: Population) -> None:
    scores = np.array([0.5] * 8 + [np.inf] * (0 if population == "all" else 99))
    found = split_threshold(scores, 0.1, population)
    assert (found.kappa, found.k, found.n) == (0.0, 0, 8)
    assert split_threshold(np.array([]), 0.5).k == 0


@pytest.mark.parametrize("n", [9, 20, 57, 200])
@pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.2"])
def test_realised_coverage_is_what_is_promised(n: int, alpha: str) -> None:
    """Coverage of 3,000 calibrations on uniform scores against its law, Beta(n + 1 - k, k)."""
    runs = 3_000
    rng = np.random.default_rng([n, int(alpha[2:])])
    found = [split_threshold(rng.random(n), alpha) for _ in range(runs)]
    k = int(Fraction(alpha) * (n + 1))
    kappas = np.array([threshold.kappa for threshold in found])
    covered = int((rng.random(runs) >= kappas).sum())
    exact = (n + 1 - k) / (n + 1)
    assert exact >= 1 - float(alpha)
    assert stats.binomtest(covered, runs, exact).pvalue > UNLIKELY
    if k:
        law = stats.beta(n + 1 - k, k).cdf
        assert stats.kstest(1 - kappas, law).pvalue > UNLIKELY


@pytest.mark.parametrize("population", ["all", "solvable"])
def test_realised_coverage_with_ties_and_unsolvable_questions(population: Population) -> None:
    runs, n, alpha = 3_000, 60, "0.1"
    rng = np.random.default_rng(7)
    misses = asked = 0
    for _ in range(runs):
        scores = np.ceil(8 * rng.random(n + 1)) / 8
        scores[rng.random(n + 1) < 0.4] = np.inf
        if population == "all" or np.isfinite(scores[-1]):
            asked += 1
            misses += int(scores[-1] < split_threshold(scores[:-1], alpha, population).kappa)
    assert stats.binomtest(misses, asked, 0.1, alternative="greater").pvalue > UNLIKELY


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, "nan", "inf", float("nan"), "a", "1/0", None])
def test_an_alpha_outside_0_and_1_is_refused(alpha: float) -> None:
    with pytest.raises(CalibrationError, match="give a number between 0 and 1"):
        split_threshold(np.array([0.5]), alpha)


def test_scores_that_cannot_be_calibrated_on_are_refused() -> None:
    with pytest.raises(CalibrationError, match="1 of 2 critical thresholds are NaN: truncated"):
        split_threshold(np.array([0.5, np.nan]), 0.1)
    with pytest.raises(CalibrationError, match=r"a critical threshold is -0\.25"):
        split_threshold(np.array([0.5, -0.25, -np.inf]), 0.1)
    with pytest.raises(CalibrationError, match=r"shape \(1, 1\)"):
        split_threshold(np.array([[0.5]]), 0.1)
