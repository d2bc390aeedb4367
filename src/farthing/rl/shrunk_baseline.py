"""V_0.5's baseline: a prompt's mean reward, drawn towards what was expected of it.

With k episodes a prompt's mean has the variance s^2 / k, and the expectation has a bias b. Of all
their mixtures w mean + (1 - w) expectation the mean squared error

    w^2 s^2 / k + (1 - w)^2 b^2      is least at      w = D / (D + 1/k),   D = b^2 / s^2

so that few episodes lean on the expectation, and many, or a bad expectation, on themselves.

N episodes of P prompts. Source: V_0.5 (arXiv 2603.10848), as its abstract says it. D by moments
over all prompts of an update, and the scale of the advantages, are ours. So is what is expected,
the mean reward of a prompt's kind so far, where the paper has a value model; its test that buys
further episodes is not here.
"""

import torch
from torch import Tensor

from farthing.rl.group_advantage import size_and_mean


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
