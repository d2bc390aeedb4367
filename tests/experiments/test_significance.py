"""Intervals: against scipy, and their level by simulation."""

from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.experiments.base import Row
from farthing.experiments.significance import (
    clopper_pearson,
    differences,
    paired_interval,
    t_quantile,
)
from farthing.methods.base import Calibration

ALPHA = Fraction(1, 10)


@settings(deadline=None)
@given(st.floats(0.51, 0.9999), st.integers(1, 500))
def test_the_t_quantile_is_scipys(probability: float, degrees: int) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(
        float(stats.t.ppf(probability, degrees)), rel=1e-8
    )


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
