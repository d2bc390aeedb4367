"""The soft conformal policy S and everything about a set that has a gradient.

Torch tensors in, torch tensors out; B questions, T rounds, L roles, A = L + 1 actions.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def policy_probabilities(logits: Tensor) -> Tensor:
    """Return pi(a|o), [B, T, A]; `next` is masked in the last round and the rest renormalised."""
    blocked = torch.zeros_like(logits)
    blocked[:, -1, -1] = -torch.inf
    return torch.softmax(logits + blocked, dim=-1)


def soft_mask_log(probabilities: Tensor, kappa: float, epsilon: float) -> Tensor:
    """Return log m(a, o) = log sigmoid((pi(a|o) - kappa) / epsilon) (equation 8), [B, T, A].

    `next` in the last round is no action: its mask is 0.
    """
    log_mask = logsigmoid((probabilities - kappa) / epsilon)
    blocked = torch.zeros_like(log_mask)
    blocked[:, -1, -1] = -torch.inf
    return log_mask + blocked


def soft_set_policy(log_mask: Tensor) -> Tensor:
    """Return S(a|o) = m(a, o) / sum_a' m(a', o), normalised in log space, [B, T, A]."""
    return torch.softmax(log_mask, dim=-1)


def soft_paths(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Return reach, [B, T], and path, [B, T, L]: minima of scores along a trace (section 2).

    reach_1 = 1, reach_t = min over s < t of pi(next|o_s), path(t, a) = min(reach_t, pi(a|o_t)).
    """
    first = torch.ones_like(probabilities[:, :1, -1])
    if probabilities.shape[1] > 1:
        later = torch.cummin(probabilities[:, :-1, -1], dim=1).values
        reach = torch.cat([first, later], dim=1)
    else:
        reach = first
    return reach, torch.minimum(reach[:, :, None], probabilities[:, :, :-1])


def critical_threshold(path: Tensor, correct: Tensor) -> Tensor:
    """Return kappa*(q) = max over right leaves of path, [B]; +inf where none is right."""
    best = torch.where(correct, path, -torch.inf).amax(dim=(1, 2))
    return torch.where(correct.any(dim=2).any(dim=1), best, torch.inf)


def soft_coverage(path: Tensor, correct: Tensor, kappa: float, epsilon: float) -> Tensor:
    """Return mean sigmoid((kappa*(q) - kappa) / epsilon): the exact constraint, a scalar."""
    critical = critical_threshold(path, correct)
    covered = torch.where(torch.isinf(critical), torch.zeros_like(critical), critical)
    soft = torch.sigmoid((covered - kappa) / epsilon)
    return torch.where(torch.isinf(critical), torch.ones_like(soft), soft).mean()


def soft_cost(reach: Tensor, cost: Tensor, kappa: float, epsilon: float) -> Tensor:
    """Return the mean over questions of sum_t cost_t sigmoid((reach_t - kappa) / epsilon)."""
    return (cost * torch.sigmoid((reach - kappa) / epsilon)).sum(dim=1).mean()


def soft_set_size(path: Tensor, answered: Tensor, kappa: float, epsilon: float) -> Tensor:
    """Return the mean number of leaves in the set, softly counted."""
    leaves = torch.sigmoid((path - kappa) / epsilon) * answered
    return leaves.sum(dim=(1, 2)).mean()


def divergence(new: Tensor, old: Tensor) -> Tensor:
    """Return the mean Kullback-Leibler divergence KL(new || old) over observations."""
    ratio = torch.log(new.clamp_min(1e-300)) - torch.log(old.clamp_min(1e-300))
    return (new * ratio).sum(dim=-1).mean()


def policy_metric(probabilities: Tensor) -> Tensor:
    """Return the Fisher matrix of pi in its logits, diag(p) - pp', [..., A, A]."""
    outer = probabilities.unsqueeze(-1) * probabilities.unsqueeze(-2)
    return torch.diag_embed(probabilities) - outer


def set_metric(probabilities: Tensor, log_mask: Tensor, epsilon: float) -> Tensor:
    """Return the Fisher matrix of S in pi's logits, [..., A, A].

    S is a softmax of u = log m, so the metric is J'(diag(S) - SS')J with
    J = du/dz = diag((1 - m) / epsilon) (diag(pi) - pi pi').
    """
    slope = (1.0 - log_mask.exp()) / epsilon
    jacobian = slope.unsqueeze(-1) * policy_metric(probabilities)
    inner = policy_metric(soft_set_policy(log_mask))
    return jacobian.transpose(-1, -2) @ inner @ jacobian
