"""PPO and GRPO, put together from their parts, learn a bandit whose optimum is known.

Three modes, three actions: answer alone, ask a cheap expert, ask a dear one. Each episode is four
tokens; the controller writes the second alone, and all else is NaN. The hard gate makes another
action best in each mode.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.rl.episode_rewards import HARD_GATE, Outcomes
from farthing_lab.rl.group_advantage import group_advantage, over_tokens
from farthing_lab.rl.ppo import (
    clip_fraction,
    entropy,
    kl_loss,
    kl_penalty,
    masked_gae,
    place_reward,
    policy_loss,
    token_log_probabilities,
    value_loss,
    whiten,
)
from farthing_lab.rl.schedules import rex

RIGHT = np.array([0.2, 0.6, 0.95])
COST = np.array([0, 10, 100])
BUDGET = np.array([5, 50, 500])
WORTH = RIGHT * (BUDGET[:, None] >= COST)
"""[mode, action] expected reward."""
UPDATES, EPISODES, TOKENS = 60, 192, 4


def episodes_of(table: Tensor, modes: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits, [B, T, 3], of episodes in their modes, and the mask, [B, T]."""
    mask = torch.zeros(len(modes), TOKENS, dtype=torch.bool)
    mask[:, 1] = True
    here = table[modes][:, None].expand(-1, TOKENS, -1)
    return torch.where(mask[..., None], here, torch.nan), mask


def play(table: Tensor, modes: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw an action an episode; return tokens, [B, T], and rewards, [B]."""
    chance = table.detach()[modes].softmax(1).numpy()
    action: IntArray = (rng.random((len(modes), 1)) > chance.cumsum(1)[:, :-1]).sum(axis=1)
    correct = rng.random(len(modes)) < RIGHT[action]
    ended = Outcomes(correct, COST[action], BUDGET[modes.numpy()], np.ones_like(correct))
    tokens = torch.from_numpy(action)[:, None].repeat(1, TOKENS)
    return tokens, torch.from_numpy(HARD_GATE(ended))


def learn_ppo(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    table = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    value = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([table, value], lr=0.05)
    reference = table.detach().clone()
    clipped = []

    def values_of(modes: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask, value[modes][:, None], torch.nan)

    for update in range(UPDATES):
        modes = torch.from_numpy(rng.integers(3, size=EPISODES))
        tokens, reward = play(table, modes, rng)
        with torch.no_grad():
            logits, mask = episodes_of(table, modes)
            old = token_log_probabilities(logits, tokens, mask)
            before = token_log_probabilities(episodes_of(reference, modes)[0], tokens, mask)
            rewards = place_reward(reward, mask, 0.001 * kl_penalty(old, before, mask))
            old_values = values_of(modes, mask)
            advantages, returns = masked_gae(rewards, old_values, mask)
            advantages = whiten(advantages, mask)
        for group in optimiser.param_groups:
            group["lr"] = 0.05 * rex(update / UPDATES)
        for rows in torch.from_numpy(rng.permutation(EPISODES)).repeat(3).chunk(6):
            logits, part = episodes_of(table, modes[rows])
            new = token_log_probabilities(logits, tokens[rows], part)
            loss = policy_loss(new, old[rows], advantages[rows], part)
            loss = loss + 0.5 * value_loss(
                values_of(modes[rows], part), old_values[rows], returns[rows], part
            )
            loss = loss - 0.001 * entropy(logits, part)
            clipped.append(clip_fraction(new.detach(), old[rows], part).item())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    assert 0 < np.mean(clipped) < 0.5
    policy: FloatArray = table.detach().softmax(1).numpy()
    np.testing.assert_allclose(value.detach().numpy(), (policy * WORTH).sum(1), atol=0.12)
    return policy


def learn_grpo(seed: int, *, scaled: bool) -> FloatArray:
    rng = np.random.default_rng(seed)
    table = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    reference = table.detach().clone()
    optimiser = torch.optim.Adam([table], lr=0.05)
    for update in range(UPDATES):
        prompts = torch.from_numpy(rng.integers(3, size=32))
        group = torch.repeat_interleave(torch.from_numpy(rng.integers(2, 11, size=32)))
        modes = prompts[group]
        tokens, reward = play(table, modes, rng)
        with torch.no_grad():
            logits, mask = episodes_of(table, modes)
            old = token_log_probabilities(logits, tokens, mask)
            before = token_log_probabilities(episodes_of(reference, modes)[0], tokens, mask)
            advantages = over_tokens(group_advantage(reward, group, scaled=scaled), mask)
        for settings in optimiser.param_groups:
            settings["lr"] = 0.05 * rex(update / UPDATES)
        for _ in range(4):
            new = token_log_probabilities(episodes_of(table, modes)[0], tokens, mask)
            loss = policy_loss(new, old, advantages, mask) + 0.001 * kl_loss(new, before, mask)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    policy: FloatArray = table.detach().softmax(1).numpy()
    return policy


LEARNERS: dict[str, Callable[[int], FloatArray]] = {
    "ppo": learn_ppo,
    "grpo": lambda seed: learn_grpo(seed, scaled=True),
    "dr-grpo": lambda seed: learn_grpo(seed, scaled=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_optimum_of_each_mode_is_learned(name: str, seed: int) -> None:
    policy = LEARNERS[name](seed)
    assert policy.argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose((policy * WORTH).sum(axis=1), WORTH.max(axis=1), atol=0.05)
