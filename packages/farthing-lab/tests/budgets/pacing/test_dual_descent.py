"""Dual mirror descent against its known optimum, its regret bound, and the paper's algorithm."""

from functools import cache

import numpy as np
import pytest

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, begin, choose, settle
from farthing.budgets.pacing.dual_descent import ENTROPY, EUCLIDEAN, FOLLOWING, LEAST, MOST
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.allocators.lagrangian import optimum

UNIT = 1_000
NOTHING = Option(0.0, 0, 0)
DUAL: dict[str, Pacer] = {"dual-descent": EUCLIDEAN, "dual-descent-entropy": ENTROPY}
HORIZONS = (250, 1_000, 4_000, 16_000)
SEEDS = 6


def played(pacer: Pacer, values: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Return the price at each request of unit cost, per unit, and the value that each brought."""
    n = len(values)
    state = begin(pacer, int(rho * n * UNIT), n)
    prices, brought = [], []
    for at, value in enumerate(values.tolist()):
        prices.append(pacer.price(state, at / n) / rho)
        choice = choose(pacer, state, [NOTHING, Option(value, UNIT, UNIT)], at / n)
        assert choice is not None
        brought.append(choice.option.value)
        state = settle(pacer, choice.state, choice.option, choice.option.expected_nano, at / n)
        assert state.spent_nano <= state.budget_nano
    return np.array(prices), np.array(brought)


def written_out(values: FloatArray, rho: float, *, entropy: bool) -> FloatArray:
    """Return the prices of the algorithm as it is printed, with eta = 1 / (rho^2 sqrt(T))."""
    n, left, mu = len(values), int(rho * len(values)), 0.1 / rho
    eta, found = 1.0 / np.sqrt(n), []
    for value in values:
        found.append(mu)
        bought = value - mu > 0 and left > 0
        left -= bought
        g = rho - bought
        mu = mu * np.exp(-eta / rho * g) if entropy else max(0.0, mu - eta / rho**2 * g)
    return np.array(found)


@pytest.mark.parametrize("name", DUAL)
def test_prices_are_those_of_the_printed_algorithm(name: str) -> None:
    values = np.random.default_rng(1).random(400)
    prices, _ = played(DUAL[name], values, 0.5)
    assert prices == pytest.approx(written_out(values, 0.5, entropy="entropy" in name), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", DUAL)
@pytest.mark.parametrize("rho", [0.25, 0.5, 0.75])
def test_the_price_of_uniform_values_comes_to_one_minus_rho(name: str, rho: float) -> None:
    """Values above mu are bought, a share 1 - mu of all, and a share rho can be: mu* = 1 - rho."""
    values = np.random.default_rng(2).random(8_000)
    prices, _ = played(DUAL[name], values, rho)
    assert prices[4_000:].mean() == pytest.approx(1 - rho, abs=0.03)


@cache
def regrets(name: str) -> list[float]:
    found = []
    for n in HORIZONS:
        seeds = []
        for seed in range(SEEDS):
            values = np.random.default_rng([seed, n]).random(n)
            best = optimum(values[:, None], np.ones((n, 1)), 0.5 * n)
            _, brought = played(plugins.load("pacers", name), values, 0.5)
            seeds.append(best - brought.sum())
        assert min(seeds) >= 0.0
        found.append(float(np.mean(seeds)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", DUAL)
def test_regret_grows_as_the_square_root_of_the_requests(name: str) -> None:
    """The bound is met exactly, so that estimates of its slope, 1/2, lie on both sides."""
    slope = np.polyfit(np.log(HORIZONS), np.log(regrets(name)), 1)[0]
    assert slope <= 0.5 + 0.05
    assert max(regrets(name) / np.sqrt(HORIZONS)) <= 0.4


@pytest.mark.simulations
@pytest.mark.parametrize("name", [*DUAL, "dual-descent-following"])
@pytest.mark.parametrize("n", [100, 1_000, 10_000, 100_000])
def test_regret_over_the_square_root_is_bounded_from_100_to_100000(name: str, n: int) -> None:
    """The upper end of the 95 % interval, over seeds, of regret / sqrt(T) against hindsight."""
    seeds = np.clip(200_000 // n, 8, 200)
    found = []
    for seed in range(seeds):
        values = np.random.default_rng([seed, n, 9]).random(n)
        best = optimum(values[:, None], np.ones((n, 1)), 0.5 * n)
        found.append((best - played(plugins.load("pacers", name), values, 0.5)[1].sum()) / n**0.5)
    assert np.mean(found) + 1.96 * np.std(found, ddof=1) / np.sqrt(seeds) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", DUAL)
def test_regret_is_a_small_share_of_the_optimum(name: str) -> None:
    """Hindsight brings rho (1 - rho / 2) a request: 0.375."""
    assert regrets(name)[-1] <= 0.01 * 0.375 * HORIZONS[-1]


def test_a_multiplied_price_stays_where_it_can_come_back_from() -> None:
    day = begin(ENTROPY, 1_000, 1)
    assert ENTROPY.settled(day, 10**12, 0.0) == pytest.approx(MOST)
    for _ in range(50):
        price = ENTROPY.settled(day, 0, 0.0)
        day = type(day)(budget_nano=1_000, requests=1, price=price)
    assert day.price == pytest.approx(LEAST)


@pytest.mark.parametrize("times", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", ["dual-descent", "dual-descent-following"])
def test_money_lasts_the_day_where_the_pacer_follows_it(name: str, times: float) -> None:
    """Of twice the requests that were guessed, every one could have the cheap setting."""
    pacer: Pacer = plugins.load("pacers", name)
    guessed = 1_000
    n = int(times * guessed)
    state, refused = begin(pacer, guessed * UNIT, guessed), 0
    options = [Option(0.5, UNIT // 4, UNIT // 4), Option(0.9, 2 * UNIT, 2 * UNIT)]
    for at in range(n):
        choice = choose(pacer, state, options, at / n)
        refused += choice is None
        if choice is not None:
            cost = choice.option.expected_nano
            state = settle(pacer, choice.state, choice.option, cost, at / n)
    follows = pacer == FOLLOWING
    assert refused <= (0.02 * n if follows or times <= 1.0 else n)
    assert refused >= (0 if follows or times <= 1.0 else 0.3 * n), "what is told of it is true"
    assert state.spent_nano >= (0.9 if follows or times >= 1.0 else 0.4) * guessed * UNIT
