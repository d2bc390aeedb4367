"""Knapsack RL equals enumeration; DUET's tokens are its budget, at the least variance."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray
from farthing_lab.corl.allocations import (
    DUET,
    PromptBatch,
    best,
    even,
    knapsack,
    rounded,
    shares,
    uncertain,
    value,
)


def prompts(chance: FloatArray, length: FloatArray | None = None) -> PromptBatch:
    questions = [Question(str(at), "?") for at in range(len(chance))]
    return PromptBatch(questions, chance, np.zeros(0) if length is None else length)


def worth(chance: FloatArray, each: list[int]) -> float:
    """Return what an allocation is worth, by the definition."""
    pairs = zip(chance.tolist(), each, strict=True)
    return float(sum((1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2 for p, n in pairs if n))


def test_knapsack_is_the_best_of_all_allocations() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        chance, episodes = rng.random(3), int(rng.integers(1, 13))
        every = [e for e in product(range(episodes + 1), repeat=3) if sum(e) == episodes]
        most = max(worth(chance, list(one)) for one in every)
        each = knapsack(prompts(chance), episodes)
        assert each.sum() == episodes
        assert worth(chance, each.tolist()) == pytest.approx(most, abs=1e-12)


def test_the_programme_is_exact_whatever_the_values_are() -> None:
    """Values that neither rise steadily nor are concave."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        room = int(rng.integers(1, 8))
        values = np.hstack([np.zeros((3, 1)), rng.random((3, room))])
        every = [e for e in product(range(room + 1), repeat=3) if sum(e) <= room]
        most = max(sum(values[q, n] for q, n in enumerate(one)) for one in every)
        found = best(values)
        assert found.sum() <= room
        assert sum(values[q, n] for q, n in enumerate(found.tolist())) == pytest.approx(most)


def test_more_prompts_show_both_outcomes_than_with_the_same_number_for_each() -> None:
    """The share of prompts whose episodes differ, which is what GRPO learns from."""
    chance = np.random.default_rng(2).beta(0.4, 0.6, 64)
    each, same = knapsack(prompts(chance), 512), even(prompts(chance), 512)
    assert worth(chance, each.tolist()) > 1.05 * worth(chance, same.tolist())
    assert each[chance > 0.99].max(initial=0) <= 2
    assert each.max() > 12


def test_values_never_fall_with_more_episodes() -> None:
    found = value(np.linspace(0, 1, 101), 200)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, :2] == 0).all()
    assert found.max() < 4 / 27


LENGTHS = st.lists(st.tuples(st.floats(0.0, 0.5), st.floats(1.0, 500.0)), min_size=1, max_size=20)


@pytest.mark.slow
@settings(deadline=None)
@given(pairs=LENGTHS, each=st.floats(1.0, 50.0), bounds=st.booleans())
def test_the_tokens_are_the_budget(
    pairs: list[tuple[float, float]], each: float, bounds: bool
) -> None:
    spread, length = np.array(pairs).T
    tokens = each * float(length.sum())
    least, most = (2.0, 3.0 * each) if bounds else (0.0, np.inf)
    found = shares(spread, length, tokens, least, most)
    assert float(found @ length) == pytest.approx(tokens, rel=1e-9)
    assert found.min() >= min(least, each) - 1e-9
    assert found.max() <= max(most, each) + 1e-9
    whole = rounded(found, length, tokens)
    assert 0.0 <= tokens * (1 + 1e-9) - float(whole @ length) < length.max() + 1e-6 * tokens


def test_duet_has_the_least_variance_of_all_that_cost_the_same() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = int(rng.integers(2, 6))
        spread, length = rng.uniform(0.05, 0.5, n), rng.uniform(5.0, 100.0, n)
        tokens, least, most = 6.0 * float(length.sum()), 2.0, 14.0
        found = shares(spread, length, tokens, least, most)
        solve: Any = minimize
        other = solve(
            lambda x, s=spread: float((s**2 / x).sum()),
            np.full(n, 6.0),
            jac=lambda x, s=spread: -(s**2) / x**2,
            bounds=[(least, most)] * n,
            constraints={"type": "eq", "fun": lambda x, c=length, b=tokens: (c @ x - b) / b},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        ours = float((spread**2 / found).sum())
        assert ours <= other.fun * (1 + 1e-6)
        np.testing.assert_allclose(found, other.x, rtol=1e-2)


@pytest.mark.slow
def test_duet_prefers_short_and_open_ones_and_never_exceeds_the_tokens() -> None:
    rng = np.random.default_rng(4)
    for _ in range(1_000):
        n, episodes = int(rng.integers(1, 12)), int(rng.integers(0, 90))
        of = prompts(rng.random(n), rng.uniform(1.0, 300.0, n))
        each = DUET(of, episodes)
        assert float(each @ of.length) <= episodes * of.length.mean() * (1 + 1e-9)
    each = DUET(prompts(np.array([0.5, 0.5, 0.98]), np.array([10.0, 90.0, 10.0])), 60)
    assert each[0] > 2 * each[1] > 0
    assert each[0] > 2 * each[2] > 0


def test_with_equal_lengths_duet_is_neymans_allocation() -> None:
    of = prompts(np.array([0.5, 0.2, 0.8, 0.1]))
    np.testing.assert_array_equal(DUET(of, 100), uncertain(of, 100))
