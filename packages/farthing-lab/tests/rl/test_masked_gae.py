"""Masked GAE against textbook GAE on episodes that have their masked tokens deleted."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.traces.arrays import BoolArray, FloatArray
from farthing_lab.rl.ppo import masked_gae, place_reward, turn_discounts

SHARE = st.floats(0.0, 1.0)


def textbook(
    rewards: FloatArray, values: FloatArray, gamma: float, lam: float
) -> tuple[FloatArray, FloatArray]:
    """GAE of one episode, from its definition: a double sum (Schulman et al. 2016, eq. 11, 16)."""
    n = len(rewards)
    following = np.append(values[1:], 0.0)
    delta = rewards + gamma * following - values
    advantages = np.array(
        [sum((gamma * lam) ** (s - t) * delta[s] for s in range(t, n)) for t in range(n)]
    )
    return advantages, advantages + values


@pytest.mark.slow
@given(st.data(), SHARE, SHARE)
def test_it_equals_textbook_gae_without_the_masked_tokens(
    data: st.DataObject, gamma: float, lam: float
) -> None:
    episodes, tokens = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    mask: BoolArray = rng.random((episodes, tokens)) < data.draw(SHARE)
    rewards, values = rng.normal(size=(2, episodes, tokens))
    rewards[~mask] = values[~mask] = data.draw(st.sampled_from([0.0, 7.0, np.inf, np.nan]))
    tensors = [torch.from_numpy(x) for x in (rewards, values, mask)]
    found = masked_gae(tensors[0], tensors[1], tensors[2], gamma, lam)
    for row in range(episodes):
        ours = mask[row]
        want = textbook(rewards[row, ours], values[row, ours], gamma, lam)
        for tensor, expected in zip(found, want, strict=True):
            np.testing.assert_allclose(tensor[row].numpy()[ours], expected, atol=1e-12)
            assert not tensor[row].numpy()[~ours].any()


@settings(deadline=None)
@given(st.data(), SHARE, SHARE, SHARE)
def test_a_discount_of_turns_falls_between_them_and_nowhere_else(
    data: st.DataObject, gamma: float, token: float, lam: float
) -> None:
    """Against the sum over later tokens, each times what lies between."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    tokens = data.draw(st.integers(1, 10))
    mask: BoolArray = rng.random(tokens) < data.draw(SHARE)
    rewards, values = rng.normal(size=(2, tokens))
    tensors = [torch.from_numpy(x)[None] for x in (rewards, values, mask)]
    discounts = turn_discounts(tensors[2], gamma, token)
    assert discounts[~tensors[2]].tolist() == [pytest.approx(token)] * int((~mask).sum())
    found, _ = masked_gae(tensors[0], tensors[1], tensors[2], discounts, lam)
    own = np.flatnonzero(mask)
    between = [token * (gamma if b - a > 1 else 1.0) for a, b in pairwise(own)]
    for i, at in enumerate(own):
        want = 0.0
        for j in range(i, len(own)):
            following = between[j] * values[own[j + 1]] if j + 1 < len(own) else 0.0
            delta = rewards[own[j]] + following - values[own[j]]
            want += lam ** (j - i) * math.prod(between[i:j]) * delta
        assert found[0, at].item() == pytest.approx(want, abs=1e-5)


@given(st.data())
def test_the_reward_stands_at_the_last_controller_token(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    mask = rng.random((5, data.draw(st.integers(1, 8)))) < data.draw(SHARE)
    reward, penalty = rng.normal(size=5), rng.normal(size=mask.shape)
    penalty[~mask] = np.nan
    found = place_reward(*(torch.from_numpy(x) for x in (reward, mask, penalty))).numpy()
    for row, ours in enumerate(mask):
        want = np.where(ours, -penalty[row], 0.0)
        if ours.any():
            want[np.flatnonzero(ours)[-1]] += reward[row]
        np.testing.assert_allclose(found[row], want)


def test_a_reward_crosses_replies_that_end_and_interrupt_the_episode() -> None:
    """With gamma = lambda = 1 every controller token is told the whole return."""
    mask = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 0]]).bool()
    values = torch.randn(1, 8, generator=torch.Generator().manual_seed(0))
    rewards = place_reward(torch.tensor([3.0]), mask)
    advantages, returns = masked_gae(rewards, values, mask)
    torch.testing.assert_close(returns, 3.0 * mask)
    torch.testing.assert_close(advantages, torch.where(mask, 3.0 - values, 0.0))


def test_no_gradient_flows_through_targets() -> None:
    values = torch.zeros(1, 2, requires_grad=True)
    targets = masked_gae(torch.ones(1, 2), values, torch.ones(1, 2).bool())
    assert not any(target.requires_grad for target in targets)
