"""The soft set against finite differences, Jacobians, loops over leaves and the hard set."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from farthing_lab.rl.soft_set import (
    critical_threshold,
    divergence,
    policy_metric,
    policy_probabilities,
    set_metric,
    soft_cost,
    soft_coverage,
    soft_mask_log,
    soft_paths,
    soft_set_policy,
    soft_set_size,
)

B, T, L = 3, 3, 2
EPSILON = 0.01


def logits(seed: int, scale: float = 1.0) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(scale * rng.normal(size=(B, T, L + 1)))


def correct(seed: int) -> Tensor:
    right = np.random.default_rng(seed).random((B, T, L)) < 0.3
    right[0] = False  # an unsolvable question
    right[1, 0, 0] = True
    return torch.from_numpy(right)


def prices(seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.5, 2.0, size=(B, T)))


MASK = torch.ones(B, T, L + 1, dtype=torch.float64)
MASK[:, -1, -1] = 0.0

DIFFERENTIABLE: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "soft_coverage": lambda p, k, e: soft_coverage(soft_paths(p)[1], correct(7), k, e),
    "soft_cost": lambda p, k, e: soft_cost(soft_paths(p)[0], prices(8), k, e),
    "soft_set_size": lambda p, k, e: soft_set_size(
        soft_paths(p)[1], torch.ones(B, T, L, dtype=torch.bool), k, e
    ),
    "soft_mask": lambda p, k, e: soft_mask_log(p, k, e).exp(),
    "soft_mask_log": lambda p, k, e: soft_mask_log(p, k, e)[MASK.bool()],
    "soft_set_policy": lambda p, k, e: soft_set_policy(soft_mask_log(p, k, e)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("epsilon", [0.01, 0.2])
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_equal_central_differences(name: str, epsilon: float, seed: int) -> None:
    def of_logits(z: Tensor) -> Tensor:
        return DIFFERENTIABLE[name](policy_probabilities(z), 0.3, epsilon)

    start = logits(seed).requires_grad_()
    assert torch.autograd.gradcheck(of_logits, (start,), eps=1e-7, atol=2e-5, rtol=1e-4)
    (gradient,) = torch.autograd.grad(of_logits(start).square().sum(), start)
    assert gradient.abs().max() > 1e-6


def masks_by_hand(probabilities: Tensor, kappa: float, epsilon: float) -> Tensor:
    return 1.0 / (1.0 + torch.exp((kappa - probabilities) / epsilon)) * MASK


def test_the_set_policy_is_the_normalised_mask() -> None:
    pi = policy_probabilities(logits(3))
    mask = masks_by_hand(pi, 0.3, 0.1)
    log_mask = soft_mask_log(pi, 0.3, 0.1)
    torch.testing.assert_close(log_mask.exp(), mask)
    torch.testing.assert_close(soft_set_policy(log_mask), mask / mask.sum(dim=2, keepdim=True))


@pytest.mark.parametrize("kappa", [-3.0, 0.0, 1.0])
def test_nothing_overflows_or_vanishes_far_from_the_threshold(kappa: float) -> None:
    z = logits(4, scale=20.0).requires_grad_()
    pi = policy_probabilities(z)
    target = soft_set_policy(soft_mask_log(pi, kappa, EPSILON))
    torch.testing.assert_close(target.sum(dim=2), torch.ones(B, T, dtype=torch.float64))
    assert (target[MASK.bool()] > 0).all()
    log_target = torch.log(target[MASK.bool()])
    (gradient,) = torch.autograd.grad(log_target.sum(), z)
    assert torch.isfinite(gradient).all()
    metric = set_metric(pi.detach(), soft_mask_log(pi.detach(), kappa, EPSILON), EPSILON)
    assert torch.isfinite(metric).all()


def test_the_ratio_of_two_far_actions_is_kept_in_log_space() -> None:
    """pi = 0.1 and 0.2 at kappa = 1: both masks are below e^-80, their ratio is e^10."""
    pi = torch.tensor([[[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]]], dtype=torch.float64)
    target = soft_set_policy(soft_mask_log(pi, 1.0, EPSILON))
    torch.testing.assert_close(torch.log(target[0, 0, 1] / target[0, 0, 0]).item(), 10.0)


def fisher_by_jacobian(distribution: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Write the definition out: sum_a (dS_a/dz)(dS_a/dz)' / S_a."""
    jacobian: Tensor = torch.func.jacrev(distribution)(z)
    return (jacobian.T / distribution(z)) @ jacobian


def hessian_of_divergence(distribution: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    old = distribution(z).detach()

    def divergence_from_old(new: Tensor) -> Tensor:
        return (old * (old.log() - distribution(new).log())).sum()

    hessian: Tensor = torch.func.jacrev(torch.func.jacrev(divergence_from_old))(z)
    return hessian


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0])
def test_metrics_are_fisher_matrices(epsilon: float) -> None:
    """Against an explicit Jacobian and against double back-propagation of the divergence."""

    def pi(z: Tensor) -> Tensor:
        return torch.softmax(z, dim=-1)

    def s(z: Tensor) -> Tensor:
        mask = torch.sigmoid((pi(z) - 0.3) / epsilon)
        return mask / mask.sum()

    for seed in range(5):
        z = logits(seed)[0, 0]
        log_mask = torch.log(torch.sigmoid((pi(z) - 0.3) / epsilon))
        of_set = set_metric(pi(z), log_mask, epsilon)
        of_policy = policy_metric(pi(z))
        for reference in (fisher_by_jacobian, hessian_of_divergence):
            torch.testing.assert_close(of_policy, reference(pi, z), rtol=1e-7, atol=1e-9)
            torch.testing.assert_close(of_set, reference(s, z), rtol=1e-6, atol=1e-8)


def paths_by_hand(pi: Tensor) -> tuple[Tensor, Tensor]:
    reach, path = torch.ones(B, T, dtype=torch.float64), torch.zeros(B, T, L, dtype=torch.float64)
    for i in range(B):
        for t in range(T):
            reach[i, t] = min([1.0, *(pi[i, s, -1].item() for s in range(t))])
            for a in range(L):
                path[i, t, a] = min(reach[i, t].item(), pi[i, t, a].item())
    return reach, path


@pytest.mark.parametrize("seed", range(5))
def test_coverage_cost_and_size_equal_loops_over_questions(seed: int) -> None:
    kappa, epsilon, right, paid = 0.25, 0.05, correct(seed), prices(seed)
    answered = right | torch.from_numpy(np.random.default_rng(seed).random((B, T, L)) < 0.8)
    pi = policy_probabilities(logits(seed))
    reach, path = paths_by_hand(pi)

    def sigmoid(x: float) -> float:
        return float(1.0 / (1.0 + np.exp(-(x - kappa) / epsilon)))

    covered, spent, size = [], [], []
    for i in range(B):
        leaves = [(t, a) for t in range(T) for a in range(L)]
        best = max((path[i, t, a].item() for t, a in leaves if right[i, t, a]), default=np.inf)
        covered.append(sigmoid(best))
        spent.append(sum(paid[i, t].item() * sigmoid(reach[i, t].item()) for t in range(T)))
        size.append(sum(sigmoid(path[i, t, a].item()) for t, a in leaves if answered[i, t, a]))
    torch.testing.assert_close(soft_paths(pi), (reach, path))
    assert soft_coverage(path, right, kappa, epsilon).item() == pytest.approx(np.mean(covered))
    assert soft_cost(reach, paid, kappa, epsilon).item() == pytest.approx(np.mean(spent))
    assert soft_set_size(path, answered, kappa, epsilon).item() == pytest.approx(np.mean(size))


def test_the_exact_constraint_is_the_mean_soft_step_of_the_critical_thresholds() -> None:
    path, right = soft_paths(policy_probabilities(logits(9)))[1], correct(9)
    critical = critical_threshold(path, right)
    assert critical[0] == np.inf
    want = torch.sigmoid((critical - 0.3) / EPSILON).mean()  # sigmoid(inf) = 1: unsolvable
    torch.testing.assert_close(soft_coverage(path, right, 0.3, EPSILON), want)


def test_a_narrow_mask_is_the_hard_set() -> None:
    kappa, right, paid = 0.3, correct(5), prices(5)
    reach, path = soft_paths(policy_probabilities(logits(5)))
    everything = torch.ones(B, T, L, dtype=torch.bool)
    covered = (critical_threshold(path, right) >= kappa).double().mean()
    torch.testing.assert_close(soft_coverage(path, right, kappa, 1e-6), covered)
    spent = (paid * (reach >= kappa)).sum(dim=1).mean()
    torch.testing.assert_close(soft_cost(reach, paid, kappa, 1e-6), spent)
    size = (path >= kappa).double().sum(dim=(1, 2)).mean()
    torch.testing.assert_close(soft_set_size(path, everything, kappa, 1e-6), size)


def test_one_round_has_no_next() -> None:
    pi = policy_probabilities(logits(0)[:, :1])
    assert not pi[..., -1].any()
    reach, path = soft_paths(pi)
    torch.testing.assert_close(reach, torch.ones_like(reach))
    torch.testing.assert_close(path, pi[..., :-1])


def test_divergence_is_the_mean_sum_of_p_log_p_over_q_and_bears_zeros() -> None:
    new, old = policy_probabilities(logits(0)), policy_probabilities(logits(1))
    want = torch.nn.functional.kl_div(
        torch.where(old > 0, old, 1.0).log(), new, reduction="sum"
    ) / (B * T)
    torch.testing.assert_close(divergence(new, old), want)
    assert divergence(new, new).item() == 0.0
