"""Bidding: the table is the dynamic programme, and the choices are those that it calls for."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from farthing.budgets.pacing.base import Foresighted, Option, begin, choose, settle
from farthing.budgets.pacing.dual_descent import FOLLOWING
from farthing.errors import InputError
from farthing_gateway.pacers.bidding import ALIKE, BIDDING, Bidding, Worth, regressed, value_table
from farthing_lab.methods.allocators.lagrangian import chain

NOTHING = Option(0.0, 0, 0)
Requests = list[list[Option]]


def random_requests(rng: np.random.Generator, n: int, k: int) -> Requests:
    """Values to four digits and small costs, some of which may become larger than expected."""
    found = []
    for _ in range(n):
        cost = rng.integers(0, 5, k)
        largest = cost + rng.integers(0, 2, k)
        value = rng.random(k).round(4)
        parts = zip(value.tolist(), cost.tolist(), largest.tolist(), strict=True)
        found.append([NOTHING, *(Option(*part) for part in parts)])
    return found


def by_enumeration(requests: Requests, horizon: int, budget: int) -> float:
    """Return the optimum by recursion over what can happen, one nano-dollar a unit."""

    @cache
    def best(t: int, b: int) -> float:
        if t == 0:
            return 0.0
        return sum(
            max(
                one.value + best(t - 1, b - one.expected_nano)
                for one in options
                if one.largest_nano <= b
            )
            for options in requests
        ) / len(requests)

    return best(horizon, budget)


def brought(pacer: Bidding, stream: Requests, budget: int) -> float:
    n = len(stream)
    state, total = begin(pacer, budget, n), 0.0
    for at, options in enumerate(stream):
        choice = choose(pacer, state, options, at / n)
        assert choice is not None
        total += choice.option.value
        state = settle(pacer, choice.state, choice.option, choice.option.expected_nano, at / n)
        assert state.spent_nano <= budget
    return total


def exact(requests: Requests) -> Bidding:
    """Return the pacer whose table has a unit of one nano-dollar."""
    table = value_table(requests, 48, 240, 1.0)
    knots = np.concatenate([[0.0], np.geomspace(0.1, 5.0, 24)])
    middle, slope = (knots[1:] + knots[:-1]) / 2, regressed(table, 1.0, knots)
    return Bidding(Worth(table, 1.0, middle, slope, ALIKE))


@pytest.mark.parametrize("seed", range(20))
def test_the_table_is_the_dynamic_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    requests = random_requests(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)))
    table = value_table(requests, 6, 20, 1.0)
    for t in range(7):
        for b in range(21):
            assert table[t, b] == pytest.approx(by_enumeration(requests, t, b), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_choices_bring_what_the_dynamic_programme_says(seed: int) -> None:
    """Over every stream of four requests, each as likely, the mean is V(4, B): no more, no less."""
    rng = np.random.default_rng([seed, 1])
    requests = random_requests(rng, 3, 2)
    pacer, budget = exact(requests), int(rng.integers(1, 12))
    mean = np.mean([brought(pacer, list(s), budget) for s in product(requests, repeat=4)])
    assert mean == pytest.approx(by_enumeration(requests, 4, budget), abs=1e-9)


def test_what_calls_really_cost_is_learned_too() -> None:
    """An option of 2 that costs 1 or 3: with 3 at hand it fits twice where the first was cheap."""
    option = Option(1.0, 2, 3)
    table = value_table([[option]], 2, 6, 1.0, np.array([0.5, 1.5]))
    assert table[1].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert table[2].tolist() == [0, 0, 0, 1, 1.5, 1.5, 2]
    taught = BIDDING.taught([[option]] * 4, [[1], [3], [1], [3]])
    assert taught.worth is not None
    assert taught.worth.ratio == pytest.approx(np.repeat([0.5, 1.5], 4), abs=0.2)
    assert taught.worth.ratio.mean() == pytest.approx(1.0)


def test_what_is_forgone_is_the_mean_over_what_a_call_may_really_cost() -> None:
    """3 bring 1 to the request to come. A call of 2 costs 1 or 3: 2 left bring 1, and 0 nothing."""
    table = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    worth = Worth(table, 1.0, np.ones(1), np.zeros((1, 2)), np.array([0.5, 1.5]))
    assert worth.forgone(1, 3, 2) == 0.5


@pytest.mark.parametrize("seed", range(20))
def test_more_money_and_more_requests_are_never_worse(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    requests = [
        [Option(float(v), int(c), int(2 * c)) for v, c in zip(rng.random(4), costs, strict=True)]
        for costs in rng.integers(1, 10**7, (8, 4))
    ]
    table = value_table(requests, 12, 200, 6e5)
    assert (np.diff(table, axis=0) >= -1e-12).all()
    assert (np.diff(table, axis=1) >= -1e-12).all()
    worth = BIDDING.taught(requests).worth
    assert worth is not None
    for t in (3, 47, 49, 1_000):
        for nano in np.linspace(0, t * 1e7, 60).tolist():
            lost = [worth.forgone(t, nano, cost) for cost in (0.0, 1e6, 1e7)]
            assert 0.0 == lost[0] <= lost[1] <= lost[2] <= t


def test_differences_are_learned_for_horizons_that_have_no_table() -> None:
    rng = np.random.default_rng(3)
    requests = random_requests(rng, 6, 3)
    pacer, horizon = exact(requests), 400
    assert pacer.worth is not None
    table = value_table(requests, horizon, 1_600, 1.0)
    for t in (60, 150, 400):
        for share in (0.3, 0.7, 1.2, 2.0):
            b = round(share * t)
            true = table[t, b] - table[t, b - 4]
            assert pacer.worth.forgone(t, b, 4) == pytest.approx(true, abs=0.15)


def test_for_many_requests_the_price_is_that_of_hindsight() -> None:
    """Uniform values at unit cost: a share rho can be bought, those above mu* = 1 - rho."""
    values = (np.arange(64) + 0.5) / 64
    pacer = BIDDING.taught([[NOTHING, Option(v, 1_000, 1_000)] for v in values.tolist()])
    steps = chain(values[:, None], np.ones((64, 1))).in_order()
    for rho in (0.25, 0.5, 0.75):
        day = begin(pacer, int(rho * 1e9), 1_000_000)
        price = pacer.price(day, 0.0) / rho
        assert price == pytest.approx(steps.gain[int(rho * 64)], abs=0.04)
        assert price == pytest.approx(1 - rho, abs=0.04)


@pytest.mark.slow
def test_it_is_ahead_of_dual_descent_where_the_horizon_is_short() -> None:
    rng = np.random.default_rng(5)
    values = rng.random(64)
    taught = BIDDING.taught([[NOTHING, Option(v, 1_000, 1_000)] for v in values.tolist()])
    leads = []
    for _ in range(200):
        stream = [[NOTHING, Option(v, 1_000, 1_000)] for v in rng.random(12).tolist()]
        state, other = begin(FOLLOWING, 4_000, 12), 0.0
        for at, options in enumerate(stream):
            choice = choose(FOLLOWING, state, options, at / 12)
            assert choice is not None
            other += choice.option.value
            cost = choice.option.expected_nano
            state = settle(FOLLOWING, choice.state, choice.option, cost, at / 12)
        leads.append(brought(taught, stream, 4_000) - other)
    error = np.std(leads, ddof=1) / np.sqrt(len(leads))
    assert np.mean(leads) > 3 * error


def over_budget(streams: int) -> None:
    rng = np.random.default_rng(6)
    pacers = [BIDDING, *(BIDDING.taught(random_requests(rng, 5, 3)) for _ in range(5))]
    for at in range(streams):
        pacer, n = pacers[at % len(pacers)], int(rng.integers(1, 12))
        budget = int(rng.integers(1, 20))
        state = begin(pacer, budget, int(rng.integers(1, 15)))
        for options in random_requests(rng, n, 3):
            choice = choose(pacer, state, options[1:], rng.random())
            if choice is None:
                continue
            assert choice.state.spent_nano + choice.state.reserved_nano <= budget
            cost = int(rng.integers(0, choice.option.largest_nano + 1))
            state = settle(pacer, choice.state, choice.option, cost, rng.random())
            assert state.spent_nano <= budget


@pytest.mark.slow
def test_never_above_the_budget_when_taught() -> None:
    over_budget(300)


@pytest.mark.simulations
def test_never_above_the_budget_on_10000_streams() -> None:
    over_budget(10_000)


def test_it_says_what_a_dear_option_takes_from_the_rest() -> None:
    assert isinstance(BIDDING, Foresighted)
    assert not isinstance(FOLLOWING, Foresighted)
    day = begin(BIDDING, 10_000, 100)
    lost = [BIDDING.forgone(day, nano, 0.3) for nano in (0, 100, 1_000, 10_000)]
    assert lost[0] == 0.0
    assert lost == sorted(lost)
    assert lost[1] == pytest.approx(BIDDING.price(day, 0.3), rel=0.05)
    assert BIDDING.forgone(day, 5_000, 1.0) == 0.0, "nothing is to come"


def test_without_costs_there_is_nothing_to_learn() -> None:
    for requests in ([], [[NOTHING]]):
        with pytest.raises(InputError, match="nothing to pace"):
            BIDDING.taught(requests)
