"""Improve a policy network by one constrained step inside a trust region."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farthing.rl.cpo_step import Case, step
from farthing.rl.networks import Network, Tangent, fisher_product
from farthing.rl.soft_set import divergence, policy_probabilities
from farthing.traces.arrays import FloatArray


@dataclass(frozen=True)
class TrustRegion:
    """How far one step may go."""

    radius: float = 0.01
    """delta: largest mean Kullback-Leibler divergence of a step."""
    damping: float = 0.1
    backtrack: float = 0.8
    attempts: int = 15


@dataclass(frozen=True)
class Surrogate:
    """What a policy is worth on a batch, differentiable in its logits."""

    cost: Tensor
    """Scalar to minimise."""
    coverage: Tensor
    """Scalar that must not fall below the target."""
    distributions: tuple[Tensor, ...]
    """Action distributions that the step may not move further than the radius, [B, T, A] each."""


@dataclass(frozen=True)
class Problem:
    """What one step is to improve."""

    observations: FloatArray
    """[B, T, F]"""
    evaluate: Callable[[Tensor], Surrogate]
    """Maps probabilities, [B, T, A], to the surrogate."""
    metric: Tensor
    """[B, T, A, A] Fisher matrix of each observation's logits."""
    target: float
    """1 - alpha."""


@dataclass(frozen=True)
class Improvement:
    """What one step did."""

    network: Network
    """The new policy; the old one where no point along the step passed the line search."""
    case: Case
    violation: float
    """c = target - coverage before the step; > 0 is infeasible."""
    accepted: bool
    """Whether any point along the step passed the line search."""


def improve(network: Network, problem: Problem, region: TrustRegion) -> Improvement:
    """Take one CPO step on the network's parameters, with a backtracking line search.

    The network itself stays as it is, so that an interrupted step changes nothing.
    """
    batch, rounds, width = problem.observations.shape
    tangent = Tangent(network, problem.observations.reshape(-1, width))
    logits = torch.from_numpy(tangent.outputs).requires_grad_()
    before = problem.evaluate(policy_probabilities(logits.reshape(batch, rounds, -1)))
    (cost_slope,) = torch.autograd.grad(before.cost, logits, retain_graph=True)
    (coverage_slope,) = torch.autograd.grad(before.coverage, logits)
    g, b = tangent.pull(np.stack([cost_slope.numpy(), -coverage_slope.numpy()]))
    violation = problem.target - before.coverage.item()
    metric = problem.metric.reshape(-1, *problem.metric.shape[2:]).numpy()
    product = fisher_product(tangent, metric, region.damping)
    change, dual = step(product, g, b, violation, region.radius)
    with torch.no_grad():
        for attempt in range(region.attempts):
            candidate = network.moved(region.backtrack**attempt * change)
            after = problem.evaluate(probabilities(candidate, problem.observations))
            if _acceptable(before, after, problem.target, region.radius):
                return Improvement(candidate, dual.case, violation, accepted=True)
    return Improvement(network, dual.case, violation, accepted=False)


def probabilities(network: Network, observations: FloatArray) -> Tensor:
    """Return pi(a|o), [B, T, A], of observations, [B, T, F]."""
    return policy_probabilities(torch.from_numpy(network.outputs(observations)))


def _acceptable(before: Surrogate, after: Surrogate, target: float, radius: float) -> bool:
    """Return whether a point along the step is near enough, and no worse where it matters.

    A feasible policy must stay feasible and not get dearer; an infeasible one must not get further
    from feasible, whatever that costs.
    """
    moved = max(
        divergence(new, old).item()
        for new, old in zip(after.distributions, before.distributions, strict=True)
    )
    violation = target - before.coverage.item()
    cheaper = violation > 0 or after.cost.item() <= before.cost.item()
    covers = target - after.coverage.item() <= max(violation, 0.0)
    return moved <= radius and cheaper and covers
