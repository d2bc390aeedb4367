"""The knapsack against enumeration, against HiGHS, and at 10,000 random instances."""

import time
from typing import Any

import numpy as np
import pytest
from allocator_batches import models, random_batch, random_budget, worths
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.lagrangian import dynamic_programme, pack


@pytest.mark.slow
@pytest.mark.parametrize("n", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_small_instances_are_solved_exactly_and_within_the_budget(n: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(n):
        batch = random_batch(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        budget = random_budget(rng, batch)
        packed = pack(batch, budget)
        assert batch.cost_of(packed.choice) <= budget
        value = float(batch.value[np.arange(len(batch)), packed.choice].sum())
        best = max(worths(batch, budget, batch.value))
        assert value == pytest.approx(best)
        assert packed.bound == pytest.approx(best)


@pytest.mark.slow
def test_worth_of_any_sign_is_maximised() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        batch = random_batch(rng, 4, 3)
        budget, worth = random_budget(rng, batch), rng.normal(size=(4, 3))
        choice = pack(batch, budget, worth).choice
        assert worth[np.arange(4), choice].sum() == pytest.approx(max(worths(batch, budget, worth)))


def relaxed(batch: ItemBatch, budget: int, *, whole: bool) -> float:
    """Return the optimum of HiGHS, with whole options or with parts of them."""
    n, k = batch.value.shape
    one_each = sparse.kron(sparse.eye(n), np.ones((1, k)), format="csr")
    money = sparse.csr_matrix(batch.expected_nano.ravel()[None] / budget)
    rows = [LinearConstraint(one_each, 1, 1), LinearConstraint(money, -np.inf, 1.0)]
    parts = np.full(n * k, int(whole))
    found: Any = milp(
        -batch.value.ravel(), constraints=rows, integrality=parts, bounds=Bounds(0, 1)
    )
    return -float(found.fun)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_many_questions_come_within_a_thousandth_of_the_linear_bound(share: float) -> None:
    batch = models(np.random.default_rng(2), 800, 9)
    budget = int(batch.least_nano + share * (batch.cost_of(batch.best) - batch.least_nano))
    packed, linear = pack(batch, budget), relaxed(batch, budget, whole=False)
    assert packed.bound == pytest.approx(linear, rel=1e-7)
    assert batch.value[np.arange(800), packed.choice].sum() > (1 - 1e-3) * linear


def test_thirty_questions_are_close_to_the_best_whole_choice() -> None:
    batch = models(np.random.default_rng(3), 30, 9)
    budget = 8 * batch.least_nano
    best = relaxed(batch, budget, whole=True)
    assert batch.value[np.arange(30), pack(batch, budget).choice].sum() > (1 - 1e-3) * best


@pytest.mark.slow
def test_100000_questions_take_seconds() -> None:
    batch = models(np.random.default_rng(4), 100_000, 9)
    began = time.process_time()
    pack(batch, 6 * batch.least_nano)
    assert time.process_time() - began < 20  # 0.8 s where nothing else runs


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    items=st.lists(
        st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=3),
        min_size=1,
        max_size=4,
    ),
    room=st.integers(0, 120),
)
def test_the_programme_is_a_table_over_money(items: list[list[tuple[int, int]]], room: int) -> None:
    """Held to the textbook's table with a column for each nano-dollar."""
    lists = [[(0, 0), *item] for item in items]
    table = np.zeros(room + 1)
    for item in lists:
        table = np.array(
            [max(table[at - cost] + v for cost, v in item if cost <= at) for at in range(room + 1)]
        )
    arrays = [
        (np.array([c for c, _ in item]), np.array([float(v) for _, v in item])) for item in lists
    ]
    picked = dynamic_programme(arrays, room)
    assert sum(item[k][0] for item, k in zip(lists, picked, strict=True)) <= room
    assert sum(item[k][1] for item, k in zip(lists, picked, strict=True)) == table[room]
