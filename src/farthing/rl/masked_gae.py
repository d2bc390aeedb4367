"""Generalised advantage estimation over token sequences that others wrote parts of.

B episodes, T tokens. The mask is true where the controller wrote the token, and false where the
environment did (the prompt, an expert's reply, padding).
"""

import torch
from torch import Tensor


def place_reward(reward: Tensor, mask: Tensor, penalty: Tensor | None = None) -> Tensor:
    """Return the reward of each token: the episode's at its last controller token, less penalties.

    An episode may end with tokens of the environment. The reward does not stand there, since GAE
    passes over them.

    Args:
        reward: [B] reward of each episode.
        mask: [B, T] whether the controller wrote the token.
        penalty: [B, T] what is subtracted at each controller token, such as the coefficient times
            log pi - log pi_ref; None: nothing.

    Returns:
        [B, T]; 0 at masked tokens. An episode without a controller token has none to reward.

    Source: PPO of language models (Ouyang et al. 2022, equation 2; verl's `apply_kl_penalty`).

    >>> mask = torch.tensor([[True, False, True, False]])
    >>> place_reward(torch.tensor([1.0]), mask)
    tensor([[0., 0., 1., 0.]])
    >>> place_reward(torch.tensor([1.0]), mask, torch.full((1, 4), 0.25))
    tensor([[-0.2500,  0.0000,  0.7500,  0.0000]])
    """
    later = mask.flip(1).cumsum(1).flip(1)  # controller tokens from here to the end
    last = mask & (later == 1)
    rewards = torch.where(last, reward[:, None], 0.0)
    return rewards if penalty is None else rewards - torch.where(mask, penalty, 0.0)


def masked_gae(
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float = 1.0, lam: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Compute advantages and returns of controller tokens, as if there were no others.

    From the last token to the first, with V = A = 0 after the last:

        controller token:  A_t = r_t + gamma V_next - V_t + gamma lam A_next;  then V_next = V_t
        masked token:      V_next and A_next are carried on unchanged

    and the return, the value model's target, is A_t + V_t. So the result equals textbook GAE on
    the episode with its masked tokens deleted, and nothing that stands at a masked token counts.

    Args:
        rewards: [B, T] reward of each token.
        values: [B, T] the value model's V before the token is written.
        mask: [B, T] whether the controller wrote the token.
        gamma: discount of one controller token, in [0, 1].
        lam: lambda, in [0, 1]; 1: the sum of rewards less the value.

    Returns:
        Advantages and returns, [B, T] each, without gradient; 0 at masked tokens.

    Source: Schulman et al. 2016 (arXiv 1506.02438), equation 16; masked as in CORL
    (arXiv 2511.02755) and verl's `compute_gae_advantage_return`.

    >>> advantages, returns = masked_gae(
    ...     rewards=torch.tensor([[0.0, 9.0, 1.0]]),
    ...     values=torch.tensor([[0.5, 9.0, 0.75]]),
    ...     mask=torch.tensor([[True, False, True]]),
    ... )
    >>> advantages, returns
    (tensor([[0.5000, 0.0000, 0.2500]]), tensor([[1., 0., 1.]]))
    """
    rewards, values = rewards.detach(), values.detach()
    next_value = torch.zeros_like(values[:, 0])
    next_advantage = torch.zeros_like(next_value)
    advantages = torch.zeros_like(values)
    for t in reversed(range(values.shape[1])):
        ours = mask[:, t]
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        next_advantage = torch.where(ours, delta + gamma * lam * next_advantage, next_advantage)
        next_value = torch.where(ours, values[:, t], next_value)
        advantages[:, t] = next_advantage
    zero = torch.zeros_like(values)
    return torch.where(mask, advantages, zero), torch.where(mask, advantages + values, zero)
