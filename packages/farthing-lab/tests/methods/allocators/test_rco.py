"""RCO's surface, its descent, and objectives in which items depend on each other."""

from itertools import product

import numpy as np
import pytest
from allocator_batches import models

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.lagrangian import pack
from farthing_lab.methods.allocators.rco import (
    RCO,
    RiemannianOptimisation,
    pulled_back,
    retract,
    softmax,
    tangent,
)

RNG = np.random.default_rng(0)
COST = RNG.random((20, 4))
LOGITS = RNG.normal(size=(20, 4))


def cost_of(logits: FloatArray) -> float:
    return float((softmax(logits) * COST).sum())


def test_the_normal_is_the_derivative_of_the_cost() -> None:
    normal = pulled_back(softmax(LOGITS), COST)
    for i, k in [(0, 0), (7, 3), (19, 1)]:
        step = np.zeros_like(LOGITS)
        step[i, k] = 1e-6
        slope = (cost_of(LOGITS + step) - cost_of(LOGITS - step)) / 2e-6
        assert normal[i, k] == pytest.approx(slope, rel=1e-5)


def test_a_step_in_the_tangent_keeps_the_cost_to_first_order() -> None:
    normal = pulled_back(softmax(LOGITS), COST)
    flat = tangent(RNG.normal(size=LOGITS.shape), normal)
    assert abs((flat * normal).sum()) < 1e-12
    moved = [abs(cost_of(LOGITS + size * flat) - cost_of(LOGITS)) for size in (1e-2, 1e-3)]
    assert moved[1] < 0.02 * moved[0]


def test_the_cost_rises_along_the_cost_vector() -> None:
    costs = [cost_of(LOGITS + t * COST) for t in np.linspace(-50, 50, 101)]
    assert (np.diff(costs) > 0).all()


@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.99])
def test_retraction_meets_the_budget(share: float) -> None:
    low, high = COST.min(axis=1).sum(), COST.max(axis=1).sum()
    budget = low + share * (high - low)
    for size in (1.0, 100.0):
        assert cost_of(retract(size * LOGITS, COST, budget)) == pytest.approx(budget, rel=1e-6)


def test_a_budget_out_of_reach_is_come_close_to() -> None:
    assert cost_of(retract(LOGITS, COST, 100.0)) == pytest.approx(COST.max(axis=1).sum())
    assert cost_of(retract(LOGITS, COST, 0.0)) == pytest.approx(COST.min(axis=1).sum())


def test_descent_comes_near_the_linear_bound_at_exactly_the_budget() -> None:
    batch = models(np.random.default_rng(1), 500, 9)
    budget = int(0.4 * batch.least_nano + 0.6 * batch.cost_of(batch.best))
    soft = RCO.descend(batch, budget, lambda p: (float((p * batch.value).sum()), batch.value))
    assert (soft * batch.expected_nano).sum() == pytest.approx(budget, rel=1e-8)
    bound = pack(batch, budget).bound
    assert 0.999 * bound < (soft * batch.value).sum() <= bound * (1 + 1e-9)


def test_what_it_keeps_is_never_worse_than_the_knapsack_alone() -> None:
    batch = models(np.random.default_rng(2), 200, 5)
    budget = 5 * batch.least_nano
    direct = RiemannianOptimisation(joint_only=True).allocate(batch, budget)
    assert RCO.allocate(batch, budget).value >= direct.value


@pytest.mark.slow
def test_items_that_depend_on_each_other_come_near_the_best_of_all_assignments() -> None:
    """Three groups, each worth the root of its right answers: one more helps a poor one most."""
    rng, ratios = np.random.default_rng(3), []
    for _ in range(20):
        n, k = 7, 3
        group = rng.integers(0, 3, n)[:, None] == np.arange(3)
        right = np.sort(rng.random((n, k)), axis=1)
        cost = np.sort(rng.integers(1, 1_000, (n, k)), axis=1)
        batch = ItemBatch(np.zeros((n, k)), cost, cost)
        budget = int((batch.least_nano + cost.max(axis=1).sum()) / 2)

        def worth(
            soft: FloatArray, right: FloatArray = right, group: FloatArray = group
        ) -> tuple[float, FloatArray]:
            sums = (soft * right).sum(axis=1) @ group + 1e-9
            slope = group @ (0.5 / np.sqrt(sums))
            return float(np.sqrt(sums).sum()), slope[:, None] * right

        rows = np.arange(n)
        best = max(
            worth((np.array(options)[:, None] == np.arange(k)).astype(float))[0]
            for options in product(range(k), repeat=n)
            if cost[rows, list(options)].sum() <= budget
        )
        choice = RCO.maximise(batch, budget, worth)
        assert batch.cost_of(choice) <= budget
        ratios.append(worth((choice[:, None] == np.arange(k)).astype(float))[0] / best)
    assert min(ratios) > 0.97
    assert float(np.mean(ratios)) > 0.995
