"""Intervals: against scipy, and their level by simulation."""

from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.methods.base import Calibration
from farthing.promises.figures import accuracy_difference, clopper_pearson
from farthing.recommendation.base import Row
from farthing.recommendation.significance import proved_positive, ratio_interval, t_quantile
from farthing_lab.comparison.baselines import differences, paired_interval

ALPHA = Fraction(1, 10)


@settings(deadline=None)
@given(st.floats(0.51, 0.9999), st.integers(1, 500))
def test_the_t_quantile_is_scipys(probability: float, degrees: int) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(
        float(stats.t.ppf(probability, degrees)), rel=1e-8
    )


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(1, 400), st.floats(0, 1), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_binomial_interval_is_scipys(n: int, share: float, level: float) -> None:
    successes = round(share * n)
    theirs = stats.binomtest(successes, n).proportion_ci(level, method="exact")
    assert clopper_pearson(successes, n, level) == pytest.approx((theirs.low, theirs.high))


def test_without_the_correction_it_is_the_paired_t_interval_of_scipy() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=40), rng.normal(size=40)
    plain = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    mean, low, high = paired_interval(list(ours), list(theirs), test_share=1e-15)
    assert mean == pytest.approx(ours.mean() - theirs.mean())
    assert (low, high) == pytest.approx((plain.low, plain.high))


@pytest.mark.slow
def test_the_interval_keeps_its_level_where_splits_share_questions() -> None:
    """The true difference is 0; a naive t interval over the splits misses it most of the time."""
    rng = np.random.default_rng(1)
    repeats, splits, questions, tested = 1_500, 25, 120, 60
    held = naive = 0
    for _ in range(repeats):
        difference = rng.normal(size=questions)
        drawn = np.argsort(rng.random((splits, questions)), axis=1)[:, :tested]
        ours = list(difference[drawn].mean(axis=1))
        _, low, high = paired_interval(ours, [0.0] * splits, tested / questions)
        held += low <= 0 <= high
        _, low, high = paired_interval(ours, [0.0] * splits, 1e-15)
        naive += low <= 0 <= high
    assert stats.binomtest(held, repeats, 0.95).pvalue > 1e-3
    assert naive / repeats < 0.7


def test_splits_without_the_metric_are_left_out_and_too_few_tell_nothing() -> None:
    assert paired_interval([1.0, float("nan"), 3.0], [0.0, 0.0, 0.0], 0.5)[0] == 2.0
    mean, low, high = paired_interval([1.0], [0.5], 0.5)
    assert mean == 0.5
    assert isnan(low)
    assert isnan(high)
    assert all(map(isnan, paired_interval([], [], 0.5)))


def row(policy: str, calibration: Calibration, cost: float) -> Row:
    per_split = {"cost_usd": [cost, cost + 0.1], "coverage": [0.9, 0.91]}
    return Row(policy, policy, ALPHA, calibration, per_split)


def test_all_with_a_threshold_are_held_against_the_cheapest_promise() -> None:
    rows = [
        row("random", "none", 0.5),
        row("cpo-online", "online", 0.6),
        row("cpo-batch", "split", 2.0),
        row("ccpo", "split", 1.5),
        row("stopping", "split", 1.0),
        row("optimum", "split", 0.9),
        Row("uala", "UALA", ALPHA, "split", note="could not run"),
    ]
    found = differences(rows, 0.5)
    assert [(d.policy, d.other) for d in found if d.metric == "cost_usd"] == [
        ("cpo-online", "stopping"),
        ("cpo-batch", "stopping"),
        ("ccpo", "stopping"),
        ("optimum", "stopping"),
        ("ccpo", "cpo-batch"),
        ("ccpo", "cpo-online"),
    ]
    assert {d.metric for d in found} == {"cost_usd", "coverage"}
    assert next(d.mean for d in found if d.policy == "cpo-batch") == pytest.approx(1.0)


def test_no_pair_comes_twice_and_nobody_promising_gives_none() -> None:
    rows = [row("ccpo", "split", 1.0), row("cpo-batch", "split", 2.0)]
    assert [(d.policy, d.other) for d in differences(rows, 0.5)] == [("cpo-batch", "ccpo")] * 2
    assert differences([row("random", "none", 1.0), row("optimum", "split", 1.0)], 0.5) == []


def bill(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw what a cascade and a dear model cost: the cascade asks it on three questions of ten."""
    dear = rng.integers(800_000, 1_200_001, n)
    return 100_000 + dear * (rng.random(n) < 0.3), dear


@pytest.mark.slow
def test_the_interval_of_a_ratio_keeps_its_level() -> None:
    """The true ratio is (0.1 + 0.3 * 1.0) / 1.0."""
    rng = np.random.default_rng(2)
    repeats = 3_000
    held = 0
    for _ in range(repeats):
        found = ratio_interval(*bill(rng, 250))
        assert found is not None
        held += found[0] <= 0.4 <= found[1]
    assert stats.binomtest(held, repeats, 0.95).pvalue > 0.01


def test_a_ratio_is_in_its_interval_where_the_paired_t_test_does_not_reject_it() -> None:
    """Brute force: along a grid of ratios, scipy's test of ours - r theirs."""
    ours, theirs = bill(np.random.default_rng(3), 40)
    low, high = ratio_interval(ours, theirs) or (0.0, 0.0)
    for ratio in np.linspace(low - 0.1, high + 0.1, 60):
        kept = stats.ttest_1samp(ours - ratio * theirs, 0).pvalue > 0.05
        assert kept == (low < ratio < high)


def test_no_interval_of_a_ratio_where_any_ratio_is_possible() -> None:
    assert ratio_interval(np.array([1]), np.array([2])) is None
    assert ratio_interval(np.array([1, 1]), np.array([0, 2])) is None


def test_the_difference_of_accuracies_by_hand() -> None:
    """2 lost and 1 won of 10: each share's exact interval at 97.5 %."""
    ours = np.array([True] * 6 + [False] * 2 + [True] + [False])
    theirs = np.array([True] * 6 + [True] * 2 + [False] + [False])
    value, (low, high) = accuracy_difference(ours, theirs)
    lost, won = clopper_pearson(2, 10, 0.975), clopper_pearson(1, 10, 0.975)
    assert value == pytest.approx(-0.1)
    assert (low, high) == pytest.approx((won[0] - lost[1], won[1] - lost[0]))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.integers(-50, 60), min_size=2, max_size=60), st.sampled_from([0.05, 0.005]))
def test_a_positive_mean_is_proved_as_by_scipy(difference: list[int], level: float) -> None:
    values = np.array(difference)
    if np.ptp(values):
        p = float(stats.ttest_1samp(values, 0, alternative="greater").pvalue)
        assert proved_positive(values, level) == (p < level) or p == pytest.approx(level)
    else:
        assert proved_positive(values, level) == (difference[0] > 0)
