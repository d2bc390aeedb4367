"""C3PO against loops over thresholds, budgets and questions, and its bound by enumeration."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest
from small_pool import CENT, paid, small_pool, taught

from farthing.traces.arrays import TraceArrays
from farthing_lab.methods.cascades.c3po import (
    LEFT_OUT,
    C3poLearner,
    C3poPolicy,
    Search,
    best,
    bounds,
)

SURE = (0.2, 0.4, 0.6, 0.8)
N = 60


def questions(seed: int) -> TraceArrays:
    """Three models, of which a wrong one gives one of two answers; prices differ by question."""
    rng = np.random.default_rng(seed)
    answers = rng.choice([0, 0, 0, 1, 2, -1], (N, 3))
    sure = np.where(answers == 0, rng.choice(SURE[1:], (N, 3)), rng.choice(SURE[:3], (N, 3)))
    made_up = small_pool(answers.tolist(), [1, 3, 10], sure.tolist())
    return replace(made_up, cost_nano=made_up.cost_nano * rng.integers(1, 4, (N, 1, 1)))


def by_loop(traces: TraceArrays, thresholds: tuple[float, ...], i: int) -> tuple[int, bool]:
    """Return what a question costs, and whether its answer is the last model's."""
    cost, last = 0, len(thresholds) - 1
    said = traces.answer[i, 0]
    for model, threshold in enumerate(thresholds):
        if threshold > 1:
            continue
        cost += int(traces.cost_nano[i, 0, model])
        sure = traces.signals["confidence"][i, 0, model] if said[model] >= 0 else -1
        if sure >= np.float32(threshold) or model == last:
            return cost, bool(said[model] >= 0 and said[model] == said[last])
    raise AssertionError


@pytest.mark.parametrize("seed", range(3))
def test_no_thresholds_within_a_budget_agree_more_often(seed: int) -> None:
    """Every combination of all confidences that occur is tried, also those that ask nobody."""
    traces = questions(seed)
    policy = taught(C3poLearner(strong="c"), traces)
    assert isinstance(policy, C3poPolicy)
    assert policy.models.tolist() == [0, 1, 2]
    budgets = np.random.default_rng(0).permutation(N) < N // 2
    every = list(product((*SURE, LEFT_OUT), (*SURE, LEFT_OUT), (0.0,)))
    walked = [[by_loop(traces, one, i) for i in range(N)] for one in every]
    costs = [sorted(walk[i][0] for i in np.flatnonzero(budgets)) for walk in walked]
    agreed = [np.mean([walk[i][1] for i in np.flatnonzero(~budgets)]) for walk in walked]
    mean = [np.mean([cost for cost, _ in walk]) for walk in walked]
    for g in range(len(policy.values)):
        rank = ceil(
            (budgets.sum() + 1) * (1 - Fraction(float(policy.alpha[g])).limit_denominator(20))
        )
        allowed = [
            c for c in range(len(every)) if costs[c][rank - 1] <= policy.budget_usd[g] * 1e9 + 1
        ]
        walk = [by_loop(traces, tuple(policy.thresholds[g]), i) for i in range(N)]
        own = np.mean([walk[i][1] for i in np.flatnonzero(~budgets)])
        assert own == max(agreed[c] for c in allowed)
        as_good = min(mean[c] for c in allowed if agreed[c] == own)
        assert policy.values[g] * 1e9 == pytest.approx(np.mean([cost for cost, _ in walk]))
        assert g == len(policy.values) - 1 or policy.values[g] * 1e9 <= as_good + 1e-6


def test_points_follow_their_thresholds() -> None:
    traces = questions(3)
    policy = taught(C3poLearner(strong="c"), traces)
    assert isinstance(policy, C3poPolicy)
    points = policy.points(traces)
    for g, thresholds in enumerate(policy.thresholds):
        walk = [by_loop(traces, tuple(thresholds), i) for i in range(N)]
        assert points.cost_nano[:, g].tolist() == [cost for cost, _ in walk]


def test_a_new_question_exceeds_the_bound_as_often_as_it_says() -> None:
    """Of 10 costs each in turn is the new one: k of 10 may exceed, and where all differ k do."""
    costs = np.arange(10) ** 2
    for tenths in range(1, 10):
        above = [
            costs[i] > bounds(np.delete(costs, i), [Fraction(tenths, 10)])[0] for i in range(10)
        ]
        assert sum(above) == tenths
        tied = costs // 20
        assert (
            sum(tied[i] > bounds(np.delete(tied, i), [Fraction(tenths, 10)])[0] for i in range(10))
            <= tenths
        )


def test_gold_is_not_read() -> None:
    traces = questions(4)
    one = taught(C3poLearner(), traces)
    other = taught(C3poLearner(), replace(traces, correct=~traces.correct))
    arrays, settings = one.to_state()
    again, others = other.to_state()
    assert settings == others
    for name, values in arrays.items():
        np.testing.assert_array_equal(again[name], values, name)


def test_a_budget_and_a_chance_choose_who_is_escalated() -> None:
    """Model a says what b says where it is sure: on 10 of 20 questions, 5 in each half.

    Then 5 of 10 costs are 1 cent and 5 are 11. At alpha = 1/2 the bound is the ceil(11 / 2) = 6th
    of them, 11 cents, for which b alone would do; at 11/20 it is the 5th, 1 cent. With 10 costs
    nothing bounds a question at alpha = 1/20; at 1/10 the largest does, as that is the 10th.
    """
    search = Search(
        sure=np.array([[0.9, 0.5]] * 10 + [[0.3, 0.5]] * 10),
        agrees=np.array([[True, True]] * 10 + [[False, True]] * 10),
        cost_nano=np.tile([CENT, 10 * CENT], (20, 1)),
        budgets=np.arange(20) % 2 == 0,
    )
    thresholds, budgets, alphas, mean = best(search)
    assert thresholds[:, 0].tolist() == [0.3, 0.9, LEFT_OUT]
    assert budgets.tolist() == pytest.approx([0.01, 0.01, 0.1])
    assert alphas.tolist() == [0.1, 0.55, 0.1]
    assert mean.tolist() == pytest.approx([0.01, 0.06, 0.1])


def test_who_is_left_out_is_neither_asked_nor_paid() -> None:
    """Model b never says what c says, and costs 3 cents; a does where it is sure."""
    answers = [[0, 1, 0]] * 20 + [[2, 1, 0]] * 20
    sure = [[0.9, 0.9, 0.9]] * 20 + [[0.2, 0.9, 0.9]] * 20
    traces = small_pool(answers, [1, 3, 10], sure)
    points = taught(C3poLearner(strong="c"), traces).points(traces)
    for g in range(points.n_points):
        assert set(paid(points, g)) <= {1.0, 10.0, 11.0}
