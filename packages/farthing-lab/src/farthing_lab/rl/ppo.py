"""Advantages and losses of proximal policy optimisation, over the controller's tokens alone.

B episodes, T tokens, V symbols. The mask, [B, T], is true where the controller wrote the token, and
false where the environment did (the prompt, an expert's reply, padding). No masked token has any
influence: its gradient is exactly 0, also where its entries are infinite or NaN. So what is masked
is replaced before arithmetic, not multiplied by 0 after it. Each loss is a mean over all unmasked
tokens of the batch; without any it is 0.
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
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float | Tensor = 1.0, lam: float = 1.0
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
        gamma: discount of one controller token, in [0, 1]; [B, T]: of each.
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
    discounts = torch.as_tensor(gamma, dtype=values.dtype, device=values.device).expand_as(values)
    next_value = torch.zeros_like(values[:, 0])
    next_advantage = torch.zeros_like(next_value)
    advantages = torch.zeros_like(values)
    for t in reversed(range(values.shape[1])):
        ours, later = mask[:, t], discounts[:, t]
        delta = rewards[:, t] + later * next_value - values[:, t]
        next_advantage = torch.where(ours, delta + later * lam * next_advantage, next_advantage)
        next_value = torch.where(ours, values[:, t], next_value)
        advantages[:, t] = next_advantage
    zero = torch.zeros_like(values)
    return torch.where(mask, advantages, zero), torch.where(mask, advantages + values, zero)


def turn_discounts(mask: Tensor, gamma: float, token: float = 1.0) -> Tensor:
    """Return the discount of each token where a turn has one of its own, [B, T].

    Args:
        mask: [B, T] whether the controller wrote the token; a turn is a run of such tokens.
        gamma: discount of a turn, from its last token to the next turn.
        token: discount of one token.

    >>> turn_discounts(torch.tensor([[True, True, False, True]]), 0.5)
    tensor([[1.0000, 0.5000, 1.0000, 0.5000]])
    """
    following = torch.nn.functional.pad(mask[:, 1:], (0, 1))
    return torch.where(mask & ~following, gamma * token, token)


LARGEST_LOG_RATIO = 20.0
"""Beyond this a log ratio is cut, so that its exponential stays finite (verl does the same)."""


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of unmasked values, a scalar.

    >>> masked_mean(torch.tensor([[1.0, 3.0, torch.inf]]), torch.tensor([[True, True, False]]))
    tensor(2.)
    """
    return _only(values, mask).sum() / mask.sum().clamp_min(1)


def whiten(advantages: Tensor, mask: Tensor, epsilon: float = 1e-8) -> Tensor:
    """Return (A - mean) / sqrt(variance + epsilon) over unmasked tokens, [B, T]; 0 elsewhere.

    The variance is that of the population, so one token alone gets 0.

    >>> whiten(torch.tensor([[1.0, 3.0, 99.0]]), torch.tensor([[True, True, False]]))
    tensor([[-1.,  1.,  0.]])
    """
    centred = _only(advantages - masked_mean(advantages, mask), mask)
    return centred * torch.rsqrt(masked_mean(centred * centred, mask) + epsilon)


def token_log_probabilities(logits: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
    """Return log pi of the tokens that were written, [B, T]; 0 at masked tokens.

    Args:
        logits: [B, T, V] that each token was drawn from; -inf for what was not allowed.
        tokens: [B, T] the symbols' numbers.
        mask: [B, T] whether the controller wrote the token.

    >>> logits = torch.tensor([[[0.0, 0.0], [torch.inf, 0.0]]])
    >>> token_log_probabilities(logits, torch.tensor([[0, 1]]), torch.tensor([[True, False]]))
    tensor([[-0.6931,  0.0000]])
    """
    ours = mask.nonzero(as_tuple=True)
    written = logits[ours].log_softmax(-1).gather(1, tokens[ours][:, None])[:, 0]
    return logits.new_zeros(mask.shape).index_put(ours, written)


def entropy(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the mean entropy of the next token, in nats, a scalar.

    Args:
        logits: [B, T, V] that each token was drawn from; -inf for what was not allowed.
        mask: [B, T] whether the controller wrote the token.

    >>> entropy(torch.tensor([[[0.0, 0.0, -torch.inf]]]), torch.tensor([[True]]))
    tensor(0.6931)
    """
    log = logits[mask.nonzero(as_tuple=True)].log_softmax(-1)
    finite = torch.where(log == -torch.inf, 0.0, log)
    return -(log.exp() * finite).sum() / mask.sum().clamp_min(1)


def policy_loss(
    new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, clip: float = 0.2
) -> Tensor:
    """Return -mean of min(w A, clip(w, 1 - clip, 1 + clip) A), w = exp(new - old), a scalar.

    Args:
        new: [B, T] log pi of the written tokens under the present parameters.
        old: [B, T] the same under those that wrote them.
        advantages: [B, T]
        mask: [B, T] whether the controller wrote the token.
        clip: how far the ratio may move the loss.

    Source: Schulman et al. 2017 (arXiv 1707.06347), equation 7.

    >>> policy_loss(
    ...     new=torch.tensor([[1.5, 0.5]]).log(),
    ...     old=torch.zeros(1, 2),
    ...     advantages=torch.ones(1, 2),
    ...     mask=torch.tensor([[True, True]]),
    ... )
    tensor(-0.8500)
    """
    ratio, advantage = _log_ratio(new, old, mask).exp(), _only(advantages, mask)
    kept = torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
    return -masked_mean(kept, mask)


def value_loss(
    new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, clip: float = 0.2
) -> Tensor:
    """Return the mean of max((V - R)^2, (V' - R)^2) / 2, V' = V within `clip` of old, a scalar.

    Args:
        new: [B, T] values under the present parameters.
        old: [B, T] values when the episodes were played.
        returns: [B, T] R, the targets.
        mask: [B, T] whether the controller wrote the token.
        clip: how far a value may move in one update, in units of the reward; inf: no clipping.

    Source: OpenAI Baselines' `ppo2`; Huang et al. 2022, "The 37 Implementation Details of PPO", 9.

    >>> new, old, returns = torch.tensor([[1.0]]), torch.tensor([[0.0]]), torch.tensor([[1.0]])
    >>> value_loss(new, old, returns, torch.tensor([[True]]))
    tensor(0.3200)
    """
    value, before, target = (_only(x, mask) for x in (new, old, returns))
    clipped = before + (value - before).clamp(-clip, clip)
    error = torch.maximum((value - target) ** 2, (clipped - target) ** 2)
    return 0.5 * masked_mean(error, mask)


def kl_penalty(log_pi: Tensor, log_reference: Tensor, mask: Tensor) -> Tensor:
    """Return k1 = log pi - log pi_ref of each token, [B, T]; 0 at masked tokens.

    Its mean over tokens drawn from pi is KL(pi || pi_ref). Times a coefficient it is what
    `place_reward` subtracts.

    Source: Schulman 2020, "Approximating KL divergence", k1; Ouyang et al. 2022, equation 2.

    >>> mask = torch.tensor([[True, False]])
    >>> kl_penalty(torch.tensor([[-1.0, 0.0]]), torch.tensor([[-3.0, -9.0]]), mask)
    tensor([[2., 0.]])
    """
    return _only(log_pi, mask) - _only(log_reference, mask)


def kl_loss(log_pi: Tensor, log_reference: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of k3 = exp(-k1) - 1 + k1, a scalar: never negative, and of low variance.

    Over tokens drawn from pi it estimates KL(pi || pi_ref). Its gradient does not: it descends
    KL(pi_ref || pi). Both have their minimum where the policies are equal.

    Source: Schulman 2020, "Approximating KL divergence", k3; DeepSeekMath (arXiv 2402.03300),
    equation 4.

    >>> kl_loss(torch.tensor([[0.0]]), torch.tensor([[0.5]]).log(), torch.tensor([[True]]))
    tensor(0.1931)
    """
    k1 = _log_ratio(log_pi, log_reference, mask)
    return masked_mean(torch.exp(-k1) - 1.0 + k1, mask)


def approximate_kl(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    """Estimate KL(old || new) of an update, over tokens that the old policy drew, a scalar.

    The mean of (w - 1) - log w, w = exp(new - old): k3 as `kl_loss`, from the other side.

    >>> approximate_kl(torch.tensor([[0.5]]).log(), torch.tensor([[0.0]]), torch.tensor([[True]]))
    tensor(0.1931)
    """
    return kl_loss(old, new, mask)


def clip_fraction(new: Tensor, old: Tensor, mask: Tensor, clip: float = 0.2) -> Tensor:
    """Return the share of unmasked tokens with |w - 1| > clip, w = exp(new - old), a scalar.

    >>> new = torch.tensor([[1.5, 1.1]]).log()
    >>> clip_fraction(new, torch.zeros(1, 2), torch.tensor([[True, True]]))
    tensor(0.5000)
    """
    outside = (_log_ratio(new, old, mask).exp() - 1.0).abs() > clip
    return masked_mean(outside.to(new.dtype), mask)


def _only(values: Tensor, mask: Tensor) -> Tensor:
    """Put 0 where the mask is false: the gradient there is 0, whatever stood there."""
    return torch.where(mask, values, torch.zeros_like(values))


def _log_ratio(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    ratio = _only(new, mask) - _only(old, mask)
    return ratio.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
