"""BoPO against exact dynamic programming, its boundaries, and budgets that are never exceeded."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.generator.steps import Reward, StepsConfig, evaluate, optimum, two_models, within
from farthing_lab.methods.routers.bopo.policy import (
    NOBODY,
    UNLIMITED,
    BopoConfig,
    BopoFit,
    GeneratedTasks,
    StepPolicy,
    affordable,
    always,
    at_random,
    boundaries,
    boundary_reward,
    learn,
    masked,
    reference_advantage,
    relative_cost,
    run,
    table,
    taxonomy,
)

CONFIG = two_models()
STREAMS = 10_000


def worth(price: float, steps: int = CONFIG.steps) -> Reward:
    return lambda large: 1.0 - price * large / steps


def tiny(seed: int) -> StepsConfig:
    """Two steps, one level, two healths: small enough to write out every policy."""
    rng = np.random.default_rng(seed)
    move = rng.dirichlet(np.ones(2), (1, 2, 2))
    return StepsConfig(2, np.ones(1), move, rng.random((1, 2)), (10, 35))


@pytest.mark.parametrize("budget", [None, 70, 60, 45, 20, 15])
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_all_policies_written_out(seed: int, budget: int | None) -> None:
    """A policy names a model at the start, and one for each health and model of the first step."""
    config, price = tiny(seed), 0.4
    allowed = within(config, budget)

    def value(step: int, health: int, large: int, plan: dict[tuple[int, int], int]) -> float:
        if step == 2:
            return float(config.success[0, health]) * worth(price, 2)(large)
        model = plan[step, 2 * large + health]
        if not allowed(step, np.array([large]))[0, model]:
            return 0.0
        return sum(
            float(config.move[0, model, health, after])
            * value(step + 1, after, large + model, plan)
            for after in (0, 1)
        )

    places = [(0, 0), *((1, k) for k in range(4))]
    every = [
        value(0, 0, 0, dict(zip(places, plan, strict=True)))
        for plan in product((0, 1), repeat=len(places))
    ]
    assert optimum(config, worth(price, 2), budget).value == pytest.approx(max(every), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 2_500_000, 900_000, 500_000])
def test_what_a_policy_comes_to_is_exact(budget: int | None) -> None:
    """The optimum evaluated is its own value, and drawn episodes agree within four errors."""
    best = optimum(CONFIG, worth(0.3), budget)
    came = evaluate(CONFIG, best.chances, worth(0.3))
    assert came.value == pytest.approx(best.value, abs=1e-12)
    limit = UNLIMITED if budget is None else budget
    assert came.most_nano <= limit
    mixed = StepPolicy(np.random.default_rng(1).normal(size=2 * CONFIG.steps * 9)).chances
    exact = evaluate(CONFIG, table(CONFIG, mixed, limit), worth(0.3))
    chain = GeneratedTasks.draw(CONFIG, 40_000, np.random.default_rng(2))
    rng = np.random.default_rng(3)
    done = run(chain, np.arange(chain.tasks), mixed, np.full(chain.tasks, limit), rng)
    error = np.sqrt(0.25 / chain.tasks)
    assert abs(done.success.mean() - exact.success) < 4 * error
    spread = max(done.cost_nano.std(), 1.0) / np.sqrt(chain.tasks)
    assert abs(done.cost_nano.mean() - exact.cost_nano) < 4 * spread + 1e-3
    assert done.cost_nano.max() <= exact.most_nano


def test_keeping_back_what_the_small_model_needs_loses_nothing() -> None:
    """The mask forbids more than the budget does, and the best policy behind it is as good."""
    for budget in range(600_000, 6_000_001, 300_000):
        free = optimum(CONFIG, worth(0.3), budget)
        kept = table(CONFIG, always(1), budget)[..., 1] > 0
        taken = free.action[:, :, 0, :] == 1
        reached = np.arange(CONFIG.steps + 1) <= np.arange(CONFIG.steps)[:, None]
        assert not (taken & ~kept[:, :, 0, :] & reached[:, None]).any()


def test_without_a_price_the_best_is_always_large_and_at_a_high_one_always_small() -> None:
    steps = np.arange(CONFIG.steps + 1) <= np.arange(CONFIG.steps)[:, None]
    reached = np.broadcast_to(steps[:, None, None], optimum(CONFIG, worth(0.0)).action.shape)
    assert (optimum(CONFIG, worth(0.0)).action[reached] == 1).all()
    high = optimum(CONFIG, worth(1e6))
    assert (high.action[..., 0] == 0).all()
    assert evaluate(CONFIG, high.chances, worth(0.0)).cost_nano == CONFIG.steps * 100_000


@pytest.mark.slow
@given(st.integers(0, 10_000), st.floats(0, 1))
def test_more_money_is_never_worse(seed: int, price: float) -> None:
    values = [optimum(tiny(seed), worth(price, 2), budget).value for budget in range(0, 90, 5)]
    assert (np.diff(values) >= -1e-12).all()


def test_the_reward_is_one_at_the_small_boundary_and_less_by_the_price_at_the_large_one() -> None:
    cost, low, high = np.array([2.0, 6.0, 4.0, 2.0]), np.full(4, 2.0), np.full(4, 6.0)
    relative = relative_cost(cost, low, high)
    reward = boundary_reward(np.array([True, True, True, False]), relative, 0.5)
    np.testing.assert_allclose(reward, [1.0, 0.5, 0.75, 0.0])
    assert relative_cost(np.ones(1), np.ones(1), np.ones(1)) == 0.0
    assert taxonomy(np.array([0.5, 0.4, 0.4]), np.array([0.0, 0.5, 0.4])).tolist() == [0, 1, 2]


def test_a_group_that_fails_cheaply_is_worse_than_the_reference() -> None:
    """The mean of the group alone would give 0 to all of it."""
    found = reference_advantage(np.zeros((1, 4)), np.array([0.7]))
    np.testing.assert_allclose(found, -0.35)
    np.testing.assert_allclose(
        reference_advantage(np.array([[1.0, 0.0]]), np.array([0.5])), [[0.5, -0.5]]
    )


@dataclass(frozen=True)
class Stream:
    """Tasks whose prices are drawn, and what a call costs is at most what was said before it."""

    rng: np.random.Generator
    tasks: int
    steps: int

    def begin(self, task: IntArray) -> IntArray:
        return self.rng.integers(1, 1_000, (len(task), self.steps, 2))

    def features(self, state: IntArray, step: int, spare: FloatArray) -> FloatArray:
        del state, step
        return spare[:, None]

    def largest_nano(self, state: IntArray, step: int) -> IntArray:
        return state[:, step]

    def rest_nano(self, state: IntArray, step: int) -> IntArray:
        return np.asarray(state[:, step + 1 :, 0].sum(axis=1))

    def act(
        self, state: IntArray, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        largest = np.take_along_axis(state[:, step], np.maximum(model, 0)[:, None], 1)[:, 0]
        charged = rng.integers(0, largest + 1)
        return state, np.where(model == NOBODY, 0, np.where(rng.random() < 0.5, largest, charged))

    def succeeded(self, state: IntArray, rng: np.random.Generator) -> BoolArray:
        del rng
        return np.ones(len(state), dtype=bool)


@pytest.mark.parametrize("who", [always(1), always(0), StepPolicy(np.array([3.0])).chances])
def test_no_stream_of_ten_thousand_exceeds_its_budget(
    who: Callable[[FloatArray, BoolArray], FloatArray],
) -> None:
    """Budgets, prices and what is charged are drawn; some budgets do not even start."""
    rng = np.random.default_rng(4)
    stream = Stream(np.random.default_rng(5), STREAMS, 7)
    budget = rng.integers(0, 7_000, STREAMS)
    done = run(stream, np.arange(STREAMS), who, budget, rng)
    assert (done.cost_nano <= budget).all()
    ended = (done.action == NOBODY).any(axis=1)
    assert ended.any()
    assert not done.success[ended].any()
    cheap = budget >= np.random.default_rng(5).integers(1, 1_000, (STREAMS, 7, 2))[..., 0].sum(1)
    assert done.success[cheap].all()  # what the small model needs was kept back


def test_the_mask_is_exact_at_its_edges() -> None:
    largest, rest = np.array([[10, 30]] * 5), np.full(5, 20)
    found = affordable(np.array([50, 49, 10, 9, 30]), largest, rest)
    assert found.tolist() == [
        [True, True],
        [True, False],
        [True, False],
        [False, False],
        [True, False],
    ]


@given(st.floats(0, 1), st.booleans(), st.booleans())
def test_a_masked_model_is_never_asked(large: float, small_fits: bool, large_fits: bool) -> None:
    mask = np.array([[small_fits, large_fits]])
    chances = masked(np.array([large]), mask)
    assert (chances[~mask] == 0).all()
    assert chances.sum() == pytest.approx(float(mask.any()))


@cache
def learned(price: float) -> BopoFit:
    chain = GeneratedTasks.draw(CONFIG, 400, np.random.default_rng(1))
    config = BopoConfig(price=price, updates=150)
    return learn(chain, config, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "share"),
    [
        (0.3, 0.96),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((0.1, 0.95), (0.6, 0.97))),
    ],
)
def test_what_is_learned_is_close_to_the_optimum(price: float, share: float) -> None:
    """Exactly evaluated; without a budget, and within one that allows two large steps of six."""
    policy = learned(price).policy
    for budget, at_least in ((UNLIMITED, share), (2_500_000, share - 0.03)):
        best = optimum(CONFIG, worth(price), budget).value
        came = evaluate(CONFIG, table(CONFIG, policy.surely, budget), worth(price))
        assert at_least * best <= came.value <= best + 1e-12
        assert came.most_nano <= budget
        for boundary in (always(0), always(1)):
            other = evaluate(CONFIG, table(CONFIG, boundary, budget), worth(price))
            assert came.value > other.value


@pytest.mark.slow
def test_at_a_high_price_it_becomes_always_small() -> None:
    came = evaluate(CONFIG, table(CONFIG, learned(20.0).policy.surely, UNLIMITED), worth(0.0))
    assert came.cost_nano == pytest.approx(CONFIG.steps * 100_000)


@pytest.mark.slow
def test_without_a_price_it_comes_near_always_large() -> None:
    came = evaluate(CONFIG, table(CONFIG, learned(0.0).policy.surely, UNLIMITED), worth(0.0))
    assert came.success > 0.95 * optimum(CONFIG, worth(0.0)).value


def test_the_boundaries_tell_easy_tasks_from_hard_and_hopeless_ones() -> None:
    chain = GeneratedTasks.draw(CONFIG, 300, np.random.default_rng(6))
    known = boundaries(chain, 20, np.random.default_rng(7))
    for level, kind in ((0, 0), (1, 1), (2, 2)):
        assert (known.kind[chain.level == level] == kind).mean() > 0.9
    np.testing.assert_allclose(known.cost_small, 600_000)
    np.testing.assert_allclose(known.cost_large, 6_000_000)


def test_a_policy_comes_back_from_what_a_bundle_keeps() -> None:
    policy = learned(0.3).policy
    back = StepPolicy.from_state(*policy.to_state())
    np.testing.assert_array_equal(back.weight, policy.weight)


def test_mixtures_ask_the_large_model_at_their_share() -> None:
    chain = GeneratedTasks.draw(CONFIG, 5_000, np.random.default_rng(8))
    free = np.full(chain.tasks, UNLIMITED)
    who = at_random(np.full(chain.tasks, 0.25))
    done = run(chain, np.arange(chain.tasks), who, free, np.random.default_rng(9))
    assert abs((done.action == 1).mean() - 0.25) < 4 * np.sqrt(0.19 / done.action.size)


def test_it_takes_no_part_in_recorded_questions_and_says_where_it_does() -> None:
    traces = generate(preset("hotpotqa-llama2-7b").config, 5, np.random.default_rng(0))
    (variant,) = card("bopo").on(Dataset("generated", traces))
    assert variant.learner is None
    assert "farthing study steps" in variant.note


@pytest.mark.slow
def test_no_policy_succeeds_as_often_for_less_than_the_frontier() -> None:
    """Against random policies, mixtures and what was learned, all evaluated exactly."""
    none = worth(0.0)
    rng = np.random.default_rng(10)
    tables = [
        table(CONFIG, StepPolicy(rng.normal(size=2 * CONFIG.steps * 9)).surely, UNLIMITED)
        for _ in range(30)
    ]
    tables += [table(CONFIG, learned(price).policy.surely, UNLIMITED) for price in (0.1, 0.6)]
    came = [evaluate(CONFIG, one, none) for one in tables]
    for price in (0.01, 0.1, 0.5):

        def toll(large: int, price: float = price) -> float:
            return price * large / CONFIG.steps

        best = optimum(CONFIG, none, toll=toll).value
        for one in came:
            large = (one.cost_nano - CONFIG.steps * 100_000) / CONFIG.extra_nano
            assert one.success - price * large / CONFIG.steps <= best + 1e-12
