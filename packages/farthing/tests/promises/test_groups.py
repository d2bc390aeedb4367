from fractions import Fraction

import numpy as np
import pytest
from crepes import ConformalClassifier
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.kinds.groups import GroupsPromise, group_thresholds, too_small

NAMES = ("law", "art", "physics")


def test_it_covers_whom_mondrian_crepes_covers() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        scores = rng.integers(0, 33, 90) / 32
        group = rng.integers(0, 3, 90)
        new, new_group = rng.integers(0, 33, 40) / 32, rng.integers(0, 3, 40)
        classifier = ConformalClassifier().fit(-scores, bins=group)
        p_values = classifier.predict_p(-new[:, None], bins=new_group, smoothing=False)[:, 0]
        found = group_thresholds(scores, group, NAMES, "3/32")
        sizes = np.array([found[name].n for name in NAMES])[new_group]
        counts = np.rint(p_values * (sizes + 1))
        kappa = np.array([found[name].kappa for name in NAMES])[new_group]
        np.testing.assert_array_equal(new >= kappa, 32 * counts > 3 * (sizes + 1))


def test_coverage_holds_within_each_group_where_a_common_threshold_fails() -> None:
    """Scores of `art` are half those of `law`; 2,000 calibrations, one new question each."""
    runs, n = 2_000, 40
    rng = np.random.default_rng(5)
    group = np.repeat([0, 1], n)
    misses = np.zeros(2, int)
    for _ in range(runs):
        scores = rng.random(2 * n) / (1 + group)
        found = group_thresholds(scores, group, NAMES[:2], "0.1")
        kappas = [found[name].kappa for name in NAMES[:2]]
        misses += rng.random(2) / [1, 2] < kappas
    for missed in misses:
        assert stats.binomtest(int(missed), runs, 4 / 41).pvalue > 1e-4


def test_a_group_that_is_too_small_says_so_by_name() -> None:
    scores, group = np.linspace(0, 1, 12), np.array([0] * 11 + [1])
    found = group_thresholds(scores, group, NAMES, "0.1")
    assert too_small(found) == ["art", "physics"]
    assert (found["physics"].n, found["physics"].kappa) == (0, 0.0)
    assert found["law"].k == 1


def test_a_group_that_is_just_large_enough_is_promised_something() -> None:
    """Nine questions allow no miss at 0.1 but the least score itself: rank 1 of ten."""
    for n, promised in ((8, False), (9, True)):
        found = group_thresholds(np.linspace(0, 1, n), np.zeros(n, dtype=int), NAMES, "0.1")
        assert GroupsPromise(alpha=Fraction("0.1"), groups=found).promises == promised


def test_questions_without_a_group_are_refused() -> None:
    scores = np.array([0.1, 0.2])
    with pytest.raises(CalibrationError, match="1 questions have no group"):
        group_thresholds(scores, np.array([0, -1]), NAMES, "0.1")
    with pytest.raises(CalibrationError, match="2 scores but groups of shape"):
        group_thresholds(scores, np.array([0]), NAMES, "0.1")
