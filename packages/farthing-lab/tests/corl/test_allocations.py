"""Every registered allocation shares all episodes and no more; ours equal their definitions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import plugins
from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing.traces.arrays import IntArray
from farthing_lab.corl.allocations import (
    KEPT,
    PromptBatch,
    RolloutAllocation,
    Successes,
    allocated,
    even,
    in_proportion,
    uncertain,
)

NAMES = plugins.names("allocations")
CHANCES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


def prompts(*chance: float) -> PromptBatch:
    return PromptBatch([Question(str(at), "?") for at in range(len(chance))], np.array(chance))


@pytest.fixture(params=NAMES)
def allocation(request: Any) -> RolloutAllocation:
    loaded: RolloutAllocation = plugins.load("allocations", request.param)
    return loaded


def test_two_come_with_the_package() -> None:
    assert {"even", "uncertain"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(chance=CHANCES, episodes=st.integers(0, 500))
def test_all_episodes_are_shared_and_no_more(name: str, chance: list[float], episodes: int) -> None:
    of = prompts(*chance)
    each = plugins.load("allocations", name)(of, episodes)
    assert each.shape == (len(of),)
    assert each.dtype == np.int64
    assert each.min() >= 0
    assert each.sum() == episodes, "all lengths are alike, so tokens are episodes"
    assert of.chance.tolist() == chance, "it changes nothing"


@settings(deadline=None)
@given(
    weights=st.lists(st.integers(0, 1_000), min_size=1, max_size=30), episodes=st.integers(0, 500)
)
def test_shares_are_within_one_of_exact_ones(weights: list[int], episodes: int) -> None:
    each = in_proportion(np.array(weights, dtype=float), episodes)
    total = sum(weights) or len(weights)
    exact = [episodes * (w if sum(weights) else 1) / total for w in weights]
    assert each.sum() == episodes
    assert np.abs(each - exact).max() < 1.0


def test_without_knowledge_all_are_alike(allocation: RolloutAllocation) -> None:
    assert allocation(prompts(0.5, 0.5, 0.5), 12).tolist() == [4, 4, 4]


def test_open_outcomes_get_more_in_proportion_to_their_deviation() -> None:
    each = uncertain(prompts(0.5, 0.2, 0.8, 0.02), 104)
    assert each.tolist() == [36, 29, 29, 10]  # 0.5, 0.4, 0.4, 0.14 of 1.44
    assert uncertain(prompts(0.0, 1.0), 4).tolist() == [2, 2], "all is known: all are alike"
    assert even(prompts(0.0, 0.5), 4).tolist() == [2, 2]


def test_successes_count_what_earned_more_than_nothing_and_fade() -> None:
    first = Successes().after(["a", "a", "b"], np.array([0.25, 0.0, -1.0]))
    assert dict(first.counts) == {"a": (2.0, 1.0), "b": (1.0, 0.0)}
    second = first.after(["a", "c"], np.array([1.0, 1.0]))
    assert dict(second.counts) == {
        "a": (2 * KEPT + 1, KEPT + 1),
        "b": (KEPT, 0.0),
        "c": (1.0, 1.0),
    }
    found = second.chance(["b", "c", "never"])
    assert found.tolist() == pytest.approx([1 / (KEPT + 2), 2 / 3, 0.5])


@pytest.mark.parametrize(
    ("given", "said"),
    [([1, 1], "gave 2 episodes to 2 prompts"), ([4, -1], "gave 3 episodes"), ([3], "to 1 prompts")],
)
def test_an_allocation_that_breaks_its_promise_is_refused(given: list[int], said: str) -> None:
    def broken(_: PromptBatch, __: int) -> IntArray:
        return np.array(given)

    with pytest.raises(InputError, match=f"{said}.*share 3 among 2"):
        allocated(broken, prompts(0.5, 0.5), 3)


def test_one_that_shares_tokens_is_held_to_them() -> None:
    class Broken:
        in_tokens = True

        def __call__(self, of: PromptBatch, episodes: int, /) -> IntArray:
            return np.array([0, episodes])

    of = replace(prompts(0.5, 0.5), length=np.array([10.0, 30.0]))
    with pytest.raises(InputError, match="episodes of 120 tokens; it has to keep to 80"):
        allocated(Broken(), of, 4)
    assert allocated(Broken(), prompts(0.5, 0.5), 4).tolist() == [0, 4]


def test_rewards_and_lengths_are_remembered_by_cell() -> None:
    seen = Successes().after(["a", "a", "b"], np.array([1.0, 0.0, -1.0]), [10, 20, 60])
    assert seen.sums == {"a": (1.0, 30), "b": (-1.0, 60)}
    assert seen.value(["a", "b", "c"]).tolist() == pytest.approx([1 / 4, -1 / 3, 0.0])
    assert seen.length(["a", "b", "c"]).tolist() == pytest.approx([90 / 4, 120 / 3, 30.0])
    faded = seen.after(["c"], np.array([1.0]), [10])
    assert faded.sums["a"] == pytest.approx((KEPT, KEPT * 30))
    assert Successes().length(["a"]).tolist() == [1.0]
    assert Successes().value(["a"]).tolist() == [0.0]
