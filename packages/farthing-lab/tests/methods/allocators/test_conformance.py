"""What every registered allocator keeps: never above the budget, and more money is never worse."""

import numpy as np
import pytest
from allocator_batches import models, random_batch, random_budget, saturating, worths

from farthing import plugins
from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.methods.cards import system, systems
from farthing_lab.methods.allocators.base import Allocation, Allocator, ItemBatch

NAMES = plugins.names("allocators")


@pytest.fixture(params=NAMES)
def allocator(request: pytest.FixtureRequest) -> Allocator:
    loaded: Allocator = system("allocator", request.param)
    return loaded


def check(batch: ItemBatch, budget: int, got: Allocation) -> None:
    rows = np.arange(len(batch))
    assert got.choice.shape == (len(batch),)
    assert batch.offered[rows, got.choice].all()
    spent = sum(int(batch.expected_nano[i, k]) for i, k in enumerate(got.choice.tolist()))
    assert got.expected_nano == spent <= budget
    assert got.largest_nano == int(batch.largest_nano[rows, got.choice].sum())
    assert got.value == pytest.approx(float(batch.value[rows, got.choice].sum()))
    assert got.value <= got.bound
    assert 0.0 <= got.gap <= 1.0


def within_the_budget(allocator: Allocator, instances: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(instances):
        batch = random_batch(rng, int(rng.integers(1, 6)), int(rng.integers(1, 5)))
        budget = random_budget(rng, batch)
        check(batch, budget, allocator.allocate(batch, budget))


@pytest.mark.slow
def test_never_above_the_budget(allocator: Allocator) -> None:
    within_the_budget(allocator, 250)


@pytest.mark.simulations
def test_never_above_the_budget_on_10000_instances(allocator: Allocator) -> None:
    within_the_budget(allocator, 10_000)


def test_the_bound_is_above_every_assignment(allocator: Allocator) -> None:
    rng = np.random.default_rng(6)
    for _ in range(100):
        batch = random_batch(rng, 4, 3)
        budget = random_budget(rng, batch)
        assert allocator.allocate(batch, budget).bound >= max(worths(batch, budget, batch.value))


@pytest.mark.parametrize("size", [(5, 4), pytest.param((300, 6), marks=pytest.mark.slow)])
def test_more_money_is_never_worse(allocator: Allocator, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    for make in (random_batch, models, saturating):
        batch = make(rng, *size)
        most = batch.cost_of(batch.best)
        budgets = np.linspace(batch.least_nano, most + 1, 25).astype(int).tolist()
        found = [allocator.allocate(batch, budget) for budget in budgets]
        assert (np.diff([got.value for got in found]) >= -1e-9).all()
        assert (np.diff([got.bound for got in found]) >= -1e-9).all()


def test_where_gains_fall_it_is_within_a_thousandth_of_the_optimum(allocator: Allocator) -> None:
    batch = saturating(np.random.default_rng(8), 400, 10)
    for budget in (50_000, 100_000, 200_000):
        assert allocator.allocate(batch, budget).gap < 1e-3


def test_all_that_is_worth_it_is_bought_where_the_budget_allows(allocator: Allocator) -> None:
    batch = saturating(np.random.default_rng(9), 6, 4)
    got = allocator.allocate(batch, batch.cost_of(batch.best))
    np.testing.assert_array_equal(got.choice, batch.best)
    assert got.gap == pytest.approx(0.0)


def test_the_least_budget_buys_the_cheapest_options(allocator: Allocator) -> None:
    batch = models(np.random.default_rng(10), 5, 4)
    got = allocator.allocate(batch, batch.least_nano)
    np.testing.assert_array_equal(got.choice, batch.cheapest)


def test_less_than_that_is_refused_in_one_line(allocator: Allocator) -> None:
    batch = models(np.random.default_rng(10), 5, 4)
    with pytest.raises(InputError, match="cheapest options of 5 items cost") as problem:
        allocator.allocate(batch, batch.least_nano - 1)
    assert "\n" not in str(problem.value)


def test_the_same_batch_gives_the_same_choice_and_stays_as_it_was(allocator: Allocator) -> None:
    batch = models(np.random.default_rng(11), 30, 5)
    before = batch.value.copy(), batch.expected_nano.copy()
    budget = 2 * batch.least_nano
    first, second = allocator.allocate(batch, budget), allocator.allocate(batch, budget)
    np.testing.assert_array_equal(first.choice, second.choice)
    np.testing.assert_array_equal(before[0], batch.value)
    np.testing.assert_array_equal(before[1], batch.expected_nano)


def test_largest_costs_can_be_held_to_the_budget(allocator: Allocator) -> None:
    batch = models(np.random.default_rng(12), 20, 5)
    budget = 6 * batch.least_nano
    loose, strict = allocator.allocate(batch, budget), allocator.allocate(batch.at_most(), budget)
    assert loose.largest_nano > budget >= strict.largest_nano == strict.expected_nano


def test_every_card_says_what_it_is() -> None:
    found = [card for card in systems() if card.kind == "allocator"]
    assert {card.name for card in found} == set(NAMES) >= {"lagrangian", "rco"}
    assert all(isinstance(plugins.load("allocators", name), SystemCard) for name in NAMES)
    for card in systems():
        assert card.meaning
        assert len(card.meaning) < 90
        assert card.page.startswith("docs/")


def test_what_is_no_batch_is_refused() -> None:
    cost = np.array([[1, 2]])
    with pytest.raises(InputError, match="0 to 1"):
        ItemBatch(np.array([[0.5, np.nan]]), cost, cost)
    with pytest.raises(InputError, match="no less"):
        ItemBatch(np.array([[0.5, 0.6]]), cost, cost - 1)
    with pytest.raises(InputError, match="one shape"):
        ItemBatch(np.array([[0.5]]), cost, cost)
    with pytest.raises(InputError, match="item 0 has no option"):
        ItemBatch(np.array([[0.5, 0.6]]), cost, cost, np.array([[False, False]]))
    with pytest.raises(InputError, match="no items"):
        ItemBatch.of([])
