"""GRPO's advantages against a loop over prompts."""

import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from farthing_lab.rl.group_advantage import group_advantage, over_tokens


def slow(rewards: list[float], group: list[int], epsilon: float, *, scaled: bool) -> list[float]:
    found = []
    for reward, number in zip(rewards, group, strict=True):
        peers = [r for r, g in zip(rewards, group, strict=True) if g == number]
        spread = statistics.stdev(peers) + epsilon if scaled and len(peers) > 1 else 1.0
        equal = len(set(peers)) == 1
        found.append(0.0 if equal else (reward - statistics.fmean(peers)) / spread)
    return found


@pytest.mark.slow
@given(
    rollouts=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
    scaled=st.booleans(),
    few=st.booleans(),
)
def test_it_equals_a_loop_over_groups_of_any_size_and_order(
    rollouts: list[int], seed: int, scaled: bool, few: bool
) -> None:
    rng = np.random.default_rng(seed)
    group = torch.repeat_interleave(torch.tensor(rollouts))
    assert group.tolist() == [p for p, n in enumerate(rollouts) for _ in range(n)]
    group = group[torch.from_numpy(rng.permutation(len(group)))]
    rewards = rng.integers(0, 2, len(group)) * 0.1 if few else rng.normal(size=len(group))
    found = group_advantage(torch.from_numpy(rewards), group, scaled=scaled)
    want = slow(rewards.tolist(), group.tolist(), 1e-6, scaled=scaled)
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scaled", [True, False])
def test_equal_rewards_say_nothing_even_without_epsilon(scaled: bool) -> None:
    rewards = torch.tensor([0.1, 0.1, 0.1, 0.7])  # the mean of 0.1, 0.1, 0.1 is not 0.1
    found = group_advantage(rewards, torch.tensor([0, 0, 0, 1]), scaled=scaled, epsilon=0.0)
    assert found.tolist() == [0.0] * 4


def test_a_masked_token_has_no_advantage() -> None:
    mask = torch.tensor([[True, False], [False, False]])
    assert over_tokens(torch.tensor([-2.0, torch.nan]), mask).tolist() == [[-2.0, 0.0], [0.0, 0.0]]
