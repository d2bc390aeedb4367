"""The discount by hand and at its limits, and the recogniser against loops over pairs."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.traces.arrays import IntArray
from farthing_lab.rl.discount import Horizon, cheapest_success, discount


@pytest.mark.parametrize(
    ("mastered", "alpha", "gamma"),
    [(1, 0.2, 0.2), (2, 0.25, 0.5), (3, 0.125, 0.5), (125, 0.2, 0.98721)],
)
def test_the_discount_by_hand(mastered: int, alpha: float, gamma: float) -> None:
    assert discount(mastered, alpha) == pytest.approx(gamma, abs=5e-6)


@given(st.integers(1, 500), st.floats(0.01, 0.99))
def test_it_rises_with_what_is_mastered_and_leaves_alpha_so_far_ahead(k: int, alpha: float) -> None:
    assert discount(k, alpha) < discount(k + 1, alpha) < 1.0
    assert discount(k, alpha) ** k == pytest.approx(alpha)
    assert discount(10**9, alpha) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("arguments", [(0, 0.2), (-1, 0.2), (1, 0.0), (1, 1.1), (1, math.nan)])
def test_what_is_no_discount_is_refused(arguments: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="mastered steps must be 1 or more"):
        discount(*arguments)


def test_a_fixed_discount_is_none_and_an_automatic_one_ends_there() -> None:
    agreed = np.zeros((3, 4), dtype=np.int64)
    assert Horizon.of("fixed", 4).gamma == 1.0
    seen, horizon = [], Horizon.of("automatic", 4)
    for _ in range(5):
        seen.append(horizon.gamma)
        horizon = horizon.after(agreed, agreed)
    assert seen == pytest.approx([0.2, 0.2**0.5, 0.2 ** (1 / 3), 1.0, 1.0])


def mastered(done: IntArray, shown: IntArray, of: IntArray, k: int, threshold: float) -> bool:
    """Return whether the first k steps are, pair by pair."""

    def alike(a: IntArray, b: IntArray) -> float:
        return sum(int(a[t] == b[t]) for t in range(k)) / k

    own = np.mean([alike(row, shown[at]) for row, at in zip(done, of, strict=True)])
    others = np.mean([alike(a, b) for a, b in combinations(shown, 2)])
    return bool(own >= threshold * others)


@given(st.integers(0, 2**32), st.integers(1, 3), st.floats(0.2, 1.5))
def test_it_goes_on_where_episodes_agree_as_demonstrations_do(
    seed: int, k: int, threshold: float
) -> None:
    rng = np.random.default_rng(seed)
    n, m, steps = int(rng.integers(1, 8)), int(rng.integers(2, 6)), 4
    shown, of = rng.integers(0, 2, size=(m, steps)), rng.integers(0, m, size=n)
    done = np.where(rng.random((n, steps)) < rng.random(), shown[of], 2)
    before = Horizon(steps, k, threshold=threshold + 1e-9)
    after = before.after(done, shown, of)
    assert after.mastered - k == mastered(done, shown, of, k, before.threshold)


def test_only_the_first_steps_count_and_one_demonstration_tells_nothing() -> None:
    shown = np.array([[1, 1, 0], [1, 1, 0]])
    right_at_first = np.array([[1, 0, 1], [1, 0, 1]])
    assert Horizon(3, 1).after(right_at_first, shown).mastered == 2
    assert Horizon(3, 2).after(right_at_first, shown).mastered == 2
    assert Horizon(3, 1).after(1 - right_at_first, shown).mastered == 1
    assert Horizon(3, 1).after(shown[:1], shown[:1]).mastered == 1
    assert Horizon(3, 1).after(shown[:0], shown[:0]).mastered == 1


def test_the_cheapest_success_waits_for_the_first_right_answer_and_for_nothing_else() -> None:
    rng = np.random.default_rng(0)
    correct = rng.random((200, 4, 2)) < 0.2
    for row, waits in zip(correct, cheapest_success(correct), strict=True):
        right = np.flatnonzero(row.any(axis=1))
        assert waits.tolist() == [bool(len(right)) and t < right[0] for t in range(4)]
