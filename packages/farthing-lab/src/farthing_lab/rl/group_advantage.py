"""Advantages by comparison with other episodes of the same prompt; no value model is needed.

GRPO: an episode's advantage is its reward, compared with the others of its prompt. V_0.5 draws a
prompt's mean reward towards what was expected of it. With k episodes the mean has the variance
s^2 / k, and the expectation has a bias b. Of all their mixtures w mean + (1 - w) expectation the
mean squared error

    w^2 s^2 / k + (1 - w)^2 b^2      is least at      w = D / (D + 1/k),   D = b^2 / s^2

so that few episodes lean on the expectation, and many, or a bad expectation, on themselves.

N episodes of P prompts, T tokens. Source: V_0.5 (arXiv 2603.10848), as its abstract says it. D by
moments over all prompts of an update, and the scale of the advantages, are ours. So is what is
expected, the mean reward of a prompt's kind so far, where the paper has a value model; its test
that buys further episodes is not here.
"""

import torch
from torch import Tensor


def group_advantage(
    rewards: Tensor, group: Tensor, *, scaled: bool = True, epsilon: float = 1e-6
) -> Tensor:
    """Compute (r - mean) / (std + epsilon) within each group, or r - mean.

    Groups may differ in size. A group of one, or one with equal rewards, gets 0: it says nothing
    about what is better. The mean includes the episode itself, so a group of n is weighted by
    (n - 1) / n against REINFORCE with an independent baseline.

    Args:
        rewards: [N] reward of each episode.
        group: [N] the prompt's number, in any order; at least 0.
        scaled: divide by the group's standard deviation (of the sample: n - 1). Without, prompts
            that are nearly always right or wrong do not weigh more than others (Dr. GRPO).
        epsilon: keeps the division finite.

    Returns:
        [N] advantages.

    Source: DeepSeekMath (arXiv 2402.03300), section 4.1.2, with the sample's deviation as TRL and
    verl have it; Dr. GRPO (arXiv 2503.20783), section 3.

    >>> group_advantage(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 0, 1]), scaled=False)
    tensor([ 0.5000, -0.5000,  0.0000])
    >>> group_advantage(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([4, 4, 4]), epsilon=0.0)
    tensor([ 1., -1.,  0.])
    """
    if not len(rewards):
        return torch.zeros_like(rewards)
    size, mean = size_and_mean(rewards, group)
    centred = rewards - mean
    square = _zeros(rewards, group).index_add(0, group, centred * centred)[group]
    deviation = (square / (size - 1.0).clamp_min(1.0)).sqrt()
    unit = deviation + epsilon if scaled else torch.ones_like(deviation)
    return torch.where(centred == 0.0, 0.0, centred / unit)


def size_and_mean(rewards: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Return the size of each episode's group, and its mean reward, [N] each.

    The mean of equal rewards is just that: rounding would leave a rest of rewards less their mean,
    and a division by a tiny scale would enlarge it.

    >>> size_and_mean(torch.tensor([1.0, 0.0, 0.1]), torch.tensor([0, 0, 1]))
    (tensor([2., 2., 1.]), tensor([0.5000, 0.5000, 0.1000]))
    """
    empty = _zeros(rewards, group)
    size = empty.index_add(0, group, torch.ones_like(rewards))[group]
    mean = empty.index_add(0, group, rewards)[group] / size
    best, worst = (
        empty.scatter_reduce(0, group, rewards, way, include_self=False)[group]
        for way in ("amax", "amin")
    )
    return size, torch.where(best == worst, best, mean)


def over_tokens(advantage: Tensor, mask: Tensor) -> Tensor:
    """Give each controller token its episode's advantage: [N] to [N, T]; 0 at masked tokens.

    >>> over_tokens(torch.tensor([2.0, -1.0]), torch.tensor([[True, False], [True, True]]))
    tensor([[ 2.,  0.],
            [-1., -1.]])
    """
    return torch.where(mask, advantage[:, None], torch.zeros_like(advantage)[:, None])


def _zeros(rewards: Tensor, group: Tensor) -> Tensor:
    return torch.zeros(int(group.max()) + 1, dtype=rewards.dtype, device=rewards.device)


def weight(rewards: Tensor, group: Tensor, prior: Tensor) -> Tensor:
    """Return w of each episode's prompt, [N].

    D is estimated over all prompts: s^2 is the variance within them, b^2 what the squares of
    (mean - expectation) have beyond s^2 / k, and at least 0. With one episode each nothing is known
    of s^2, and the expectation alone counts; where no rewards of a prompt differ, the mean alone.

    Args:
        rewards: [N] reward of each episode.
        group: [N] the prompt's number, at least 0.
        prior: [N] what was expected of it; the same for all of a prompt.
    """
    size, mean = size_and_mean(rewards, group)
    degrees = float((1.0 - 1.0 / size).sum())
    if degrees < 0.5:
        return torch.zeros_like(rewards)
    within = ((rewards - mean) ** 2).sum() / degrees
    if within <= 1e-12:
        return torch.ones_like(rewards)
    one_each = 1.0 / size
    prompts = one_each.sum()
    beyond = (((mean - prior) ** 2 - within / size) * one_each).sum() / prompts
    ratio = beyond.clamp_min(0.0) / within
    return ratio / (ratio + 1.0 / size)


def shrunk_baseline(rewards: Tensor, group: Tensor, prior: Tensor) -> Tensor:
    """Return the baseline of each episode's prompt, [N]: w mean + (1 - w) prior.

    >>> rewards, group = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([0, 0, 1, 1])
    >>> shrunk_baseline(rewards, group, torch.tensor([0.5, 0.5, 0.9, 0.9]))
    tensor([0.5000, 0.5000, 0.9000, 0.9000])
    """
    _, mean = size_and_mean(rewards, group)
    share = weight(rewards, group, prior)
    return share * mean + (1.0 - share) * prior


def shrunk_advantage(
    rewards: Tensor, group: Tensor, prior: Tensor, *, epsilon: float = 1e-6
) -> Tensor:
    """Return (r - baseline) / scale of each episode, [N]; one scale, its root mean square, for all.

    Other than in GRPO, a prompt whose episodes all earn the same teaches something where that was
    not expected, and one episode is enough.
    """
    if not len(rewards):
        return torch.zeros_like(rewards)
    centred = rewards - shrunk_baseline(rewards, group, prior)
    return centred / (centred.square().mean().sqrt() + epsilon)
