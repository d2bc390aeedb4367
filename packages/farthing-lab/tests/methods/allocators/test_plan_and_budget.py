"""Plan-and-Budget's shares solve their programme, and add up to the budget exactly."""

from typing import Any

import numpy as np
import pytest
from allocator_batches import models, random_batch, random_budget, saturating
from scipy.optimize import minimize

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN
from farthing_lab.methods.allocators.plan_and_budget import (
    PLAN_AND_BUDGET,
    SCHEDULES,
    curve,
    efficiency,
    scheduled,
    shares,
    whole,
)

Instance = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def instances(n: int, parts: int, seed: int) -> Instance:
    """Return credits, betas, least shares and budgets of n tasks."""
    rng = np.random.default_rng(seed)
    credit = np.exp(rng.normal(0, 3, (n, parts))) * (rng.random((n, parts)) < 0.95)
    beta = rng.uniform(0.05, 5.0, (n, parts))
    least = rng.integers(0, 20, (n, parts)) * rng.integers(0, 2, (n, 1))
    budget = least.sum(axis=1) + rng.integers(1, 100_000, n)
    return credit, beta, least.astype(float), budget.astype(float)


@pytest.mark.parametrize("parts", [2, 3, 4, 5])
def test_marginal_gains_are_equal_and_the_sum_is_the_budget_on_10000_tasks(parts: int) -> None:
    """The conditions of Karush, Kuhn and Tucker, which are enough as the programme is convex."""
    credit, beta, least, budget = instances(2_500, parts, parts)
    share = shares(credit, beta, budget, least)
    np.testing.assert_allclose(share.sum(axis=1), budget, rtol=1e-9)
    assert (share >= least - 1e-9).all()
    for one, total in zip(share, budget.astype(int).tolist(), strict=True):
        each = whole(one, total)
        assert each.sum() == total
        assert each.min() >= 0
        assert np.abs(each - one).max() < 1.0 + 1e-6
    some = credit.max(axis=1) > 0
    credit, beta, share, least = credit[some], beta[some], share[some], least[some]
    with np.errstate(divide="ignore"):
        floor = np.maximum(share, 1e-300)
        gain = np.log(credit * beta) - (beta + 1) * np.log(floor)
    open_ = (share > least * (1 + 1e-9) + 1e-9) & (credit > 0)
    price = np.where(open_, gain, -np.inf).max(axis=1, keepdims=True)
    assert np.abs(np.where(open_, gain - price, 0.0)).max() < 1e-6
    closed = ~open_ & (credit > 0)
    assert np.where(closed, gain - price, -1.0).max() < 1e-6, "none gains more at its bound"


@pytest.mark.slow
def test_scipy_finds_no_better_one() -> None:
    credit, beta, least, budget = instances(40, 4, 9)
    credit = np.maximum(credit, 1e-3)
    least = np.maximum(least, 1.0)
    budget = np.maximum(budget, least.sum(axis=1) + 5)
    for c, b, low, total in zip(credit, beta, least, budget, strict=True):
        ours = shares(c, b, total, low)

        def error(x: FloatArray, c: FloatArray = c, b: FloatArray = b) -> float:
            return float((c / x**b).sum())

        start = low + (total - low.sum()) / 4
        scale = error(start)
        solve: Any = minimize
        other = solve(
            lambda x, of=error, s=scale: of(x) / s,
            start,
            bounds=[(one, total) for one in low],
            constraints={"type": "eq", "fun": lambda x, t=total: (x.sum() - t) / t},
            options={"ftol": 1e-13, "maxiter": 400},
        )
        assert error(ours) <= error(np.maximum(other.x, low)) * (1 + 1e-6)


def test_all_credit_on_one_part_and_none_at_all() -> None:
    one = shares(np.array([2.0, 0.0]), np.array([1.0, 3.0]), 100.0)
    assert one.tolist() == pytest.approx([100.0, 0.0], abs=1e-6)
    none = shares(np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), 100.0)
    assert none.tolist() == pytest.approx([25.0] * 4)


def test_rounding_gives_whole_numbers_whatever_was_lost() -> None:
    assert whole(np.array([0.2, 0.2, 0.2]), 2).tolist() == [1, 1, 0]
    assert whole(np.array([1e15 + 0.5, 2.0]), 10**15 + 3).sum() == 10**15 + 3
    assert whole(np.array([2.0, 2.0, 0.0]), 3).tolist() == [1, 2, 0]
    assert whole(np.zeros(3), 0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_give_earlier_parts_more_and_credits_count(name: str) -> None:
    even = scheduled(name, np.ones(5))
    assert even.sum() == pytest.approx(1.0)
    assert (np.diff(even) < 0).all()
    assert even.min() > 0
    late = scheduled(name, np.array([1.0, 1.0, 1.0, 1.0, 50.0]))
    assert late.argmax() == 4
    assert scheduled(name, np.zeros(2)).tolist() == [0.5, 0.5]


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(InputError, match="give linear, polynomial, exponential, cosine"):
        scheduled("steps", np.ones(2))


def test_the_fit_finds_a_power_law() -> None:
    b = np.geomspace(1.0, 1e6, 30)
    c, beta = curve(b, 1 - 0.3 - 0.6 * b**-0.5)
    assert beta == pytest.approx(0.5, rel=0.35)
    assert c == pytest.approx(0.6, rel=0.6)
    assert curve(np.array([5.0]), np.array([0.4])) == pytest.approx((3.0, 1.0))
    assert curve(np.array([1.0, 2.0]), np.array([0.6, 0.5])) == pytest.approx((0.4, 1.0))


def test_a_part_whose_errors_fall_gets_more_than_one_that_is_settled() -> None:
    batch = saturating(np.random.default_rng(1), 4, 12)
    batch.value[0] = 0.9
    share = PLAN_AND_BUDGET.shared(batch, 5 * batch.least_nano)
    assert share[0] == 0
    assert share[1:].min() > 0
    heavy = PLAN_AND_BUDGET.shared(batch, 5 * batch.least_nano, np.array([1.0, 50.0, 1.0, 1.0]))
    assert heavy[1] >= share[1]


@pytest.mark.slow
def test_shares_are_within_the_budget_and_near_the_knapsack_where_errors_are_power_laws() -> None:
    rng = np.random.default_rng(2)
    lost = []
    for _ in range(100):
        for batch in (random_batch(rng, 4, 4), models(rng, 4, 6)):
            budget = random_budget(rng, batch)
            choice = PLAN_AND_BUDGET.shared(batch, budget)
            assert batch.offered[np.arange(4), choice].all()
            assert batch.cost_of(choice) <= budget
        steady = saturating(rng, 4, 12)
        budget = random_budget(rng, steady)
        worth = steady.value[np.arange(4), PLAN_AND_BUDGET.shared(steady, budget)].sum()
        lost.append(1 - worth / LAGRANGIAN.allocate(steady, budget).value)
    assert np.mean(lost) < 0.03
    assert min(lost) > -1e-12


def test_less_than_the_cheapest_options_is_refused() -> None:
    batch = models(np.random.default_rng(10), 5, 4)
    with pytest.raises(InputError, match="cheapest options of 5 items cost"):
        PLAN_AND_BUDGET.shared(batch, batch.least_nano - 1)


def test_e3_prefers_being_right() -> None:
    assert efficiency(0.8, 400) > efficiency(0.4, 150)
    assert efficiency(0.8, 0) == 0.0
