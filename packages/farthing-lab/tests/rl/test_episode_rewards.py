"""Every registered reward keeps to the protocol; the three of ours equal their definitions."""

import subprocess
import sys
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing import plugins
from farthing.traces.arrays import FloatArray
from farthing_lab.rl.episode_rewards import (
    HARD_GATE,
    REMEMBERED,
    ROUTER_R1,
    HardGate,
    Outcomes,
    RecentCosts,
    Reward,
    RouterR1,
    SoftGate,
)

NAMES = plugins.names("rewards")
MONEY = st.integers(0, 10**15)


def outcomes(n: int, seed: int) -> Outcomes:
    rng = np.random.default_rng(seed)
    return Outcomes(
        correct=rng.random(n) < 0.5,
        cost_nano=rng.integers(0, 10**9, n),
        budget_nano=rng.integers(0, 10**9, n),
        well_formed=rng.random(n) < 0.8,
        recent=RecentCosts(rng.integers(0, 10**9, int(rng.integers(0, 1_200)))),
    )


@pytest.fixture(params=NAMES)
def reward(request: Any) -> Reward:
    loaded: Reward = plugins.load("rewards", request.param)
    return loaded


def test_three_come_with_the_package() -> None:
    assert {"hard-gate", "soft-gate", "router-r1"} <= set(NAMES)


def test_a_reward_is_one_finite_number_an_episode_and_changes_nothing(reward: Reward) -> None:
    for n in (0, 1, 50):
        episodes, same = outcomes(n, n), outcomes(n, n)
        found = reward(episodes)
        assert found.shape == (n,)
        assert found.dtype == np.float64
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, reward(same))
        for name in ("correct", "cost_nano", "budget_nano", "well_formed"):
            np.testing.assert_array_equal(getattr(episodes, name), getattr(same, name))
        np.testing.assert_array_equal(episodes.recent.cost_nano, same.recent.cost_nano)


def test_a_right_answer_is_never_worth_less_than_a_wrong_one(reward: Reward) -> None:
    episodes = outcomes(200, 1)
    right = reward(replace(episodes, correct=np.ones(200, dtype=bool)))
    wrong = reward(replace(episodes, correct=np.zeros(200, dtype=bool)))
    assert (right >= wrong).all()
    assert (right > wrong).any()


def test_an_episode_that_costs_more_is_never_worth_more(reward: Reward) -> None:
    """The same answer, budget and form, at rising costs."""
    n, true = 50, np.ones(50, dtype=bool)
    costs = np.sort(outcomes(n, 2).cost_nano)
    found = reward(Outcomes(true, costs, np.full(n, costs[n // 2]), true))
    assert (np.diff(found) <= 0).all()
    assert found[0] > found[-1]


@given(MONEY, MONEY, st.booleans(), st.booleans())
def test_the_hard_gate_compares_integers(
    cost: int, budget: int, correct: bool, formed: bool
) -> None:
    for paid in (cost, budget, budget + 1):
        found = HARD_GATE(
            Outcomes(np.array([correct]), np.array([paid]), np.array([budget]), np.array([formed]))
        )
        assert found.tolist() == [float(correct and paid <= budget)]


def test_the_hard_gate_is_exact_where_floats_are_not() -> None:
    budget = 2**53
    true = np.array([True, True])
    found = HARD_GATE(
        Outcomes(true, np.array([budget, budget + 1]), np.array([budget, budget]), true)
    )
    assert found.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("fall", ["linear", "exponential"])
def test_the_soft_gate_falls_off_beyond_the_budget_alone(fall: Any) -> None:
    episodes = outcomes(300, 4)
    found = SoftGate(fall, width=0.7)(episodes)
    for i in range(300):
        cost, budget = int(episodes.cost_nano[i]), int(episodes.budget_nano[i])
        u = max(0.0, cost / budget - 1)
        want = max(0.0, 1 - u / 0.7) if fall == "linear" else float(np.exp(-u / 0.7))
        assert found[i] == pytest.approx(want if episodes.correct[i] else 0.0, abs=1e-12)


@pytest.mark.parametrize("fall", ["linear", "exponential"])
def test_no_width_or_no_budget_is_the_hard_gate(fall: Any) -> None:
    episodes = outcomes(100, 5)
    np.testing.assert_array_equal(SoftGate(fall, width=0.0)(episodes), HardGate()(episodes))
    free = replace(episodes, budget_nano=np.zeros(100, dtype=np.int64))
    free.cost_nano[::2] = 0
    np.testing.assert_array_equal(SoftGate(fall)(free), HardGate()(free))


def slow_router(episodes: Outcomes, a: float) -> FloatArray:
    """Follow the description: remember the last 1,000, take quantiles, score one by one."""
    window = deque(episodes.recent.cost_nano.tolist(), maxlen=1_000)
    window.extend(episodes.cost_nano.tolist())
    roots = [cost**0.5 for cost in window]
    q05, q95 = np.percentile(roots, 5), np.percentile(roots, 95)
    found = []
    for i, cost in enumerate(episodes.cost_nano.tolist()):
        cheap = 1 - min(max((cost**0.5 - q05) / (q95 - q05), 0), 1)
        worth = (1 - a) + a * cheap if episodes.correct[i] else 0.0
        found.append(worth if episodes.well_formed[i] else -1.0)
    return np.array(found)


@pytest.mark.parametrize("seed", range(20))
def test_router_r1_equals_its_description(seed: int) -> None:
    episodes = outcomes(40, seed)
    np.testing.assert_allclose(RouterR1(0.6)(episodes), slow_router(episodes, 0.6))


def test_router_r1_has_no_opinion_on_equal_costs() -> None:
    true = np.ones(3, dtype=bool)
    same = Outcomes(true, np.full(3, 7), np.zeros(3, dtype=np.int64), true)
    assert RouterR1(0.6)(same).tolist() == pytest.approx([0.7] * 3)
    assert ROUTER_R1(replace(same, correct=~true)).tolist() == [0.0] * 3


def test_the_memory_keeps_the_last_and_is_never_changed() -> None:
    first = RecentCosts()
    second = first.after(np.arange(600)).after(np.arange(600, 1_500))
    assert len(first.cost_nano) == 0
    np.testing.assert_array_equal(second.cost_nano, np.arange(500, 1_500))
    assert len(second.cost_nano) == REMEMBERED


def test_rewards_load_without_torch() -> None:
    modules = "farthing_lab.rl.episode_rewards, farthing_lab.rl.collapse, farthing_lab.rl.schedules"
    program = f"import sys, {modules}; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"
