"""Improve a policy network by one constrained step inside a trust region."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from farthing.algorithms.cpo_step import Case, step
from farthing.algorithms.networks import FisherProduct, assign, flat
from farthing.algorithms.soft_set import divergence, policy_probabilities
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
class Improvement:
    """What one step did."""

    case: Case
    violation: float
    """c = target - coverage before the step; > 0 is infeasible."""
    accepted: bool
    """Whether any point along the step passed the line search."""


def improve(
    network: nn.Sequential,
    observations: Tensor,
    evaluate: Callable[[Tensor], Surrogate],
    metric: FloatArray,
    target: float,
    region: TrustRegion,
) -> Improvement:
    """Take one CPO step on the network's parameters, with a backtracking line search.

    Args:
        network: the policy; changed in place when a step is accepted.
        observations: [B, T, F].
        evaluate: maps probabilities, [B, T, A], to the surrogate.
        metric: [B * T, A, A] Fisher metric of the logits.
        target: 1 - alpha.
        region: the trust region.
    """
    parameters = list(network.parameters())
    before = evaluate(policy_probabilities(network(observations)))
    g = flat(torch.autograd.grad(before.cost, parameters, retain_graph=True))
    b = -flat(torch.autograd.grad(before.coverage, parameters))
    c = target - before.coverage.item()
    flat_observations = observations.reshape(-1, observations.shape[-1]).numpy()
    product = FisherProduct(network, flat_observations, metric, region.damping)
    direction, dual = step(product, g, b, c, region.radius)
    origin = flat(parameters)
    old = tuple(d.detach() for d in before.distributions)
    scale = 1.0
    with torch.no_grad():
        for _ in range(region.attempts):
            assign(network, origin + scale * direction)
            after = evaluate(policy_probabilities(network(observations)))
            if _acceptable(after, old, before.cost.item(), c, target, dual.case, region.radius):
                return Improvement(dual.case, c, accepted=True)
            scale *= region.backtrack
        assign(network, origin)
    return Improvement(dual.case, c, accepted=False)


def _acceptable(
    after: Surrogate,
    old: tuple[Tensor, ...],
    cost: float,
    c: float,
    target: float,
    case: Case,
    radius: float,
) -> bool:
    moved = max(
        float(divergence(new, was)) for new, was in zip(after.distributions, old, strict=True)
    )
    if moved > radius:
        return False
    cheaper = c > 0 or case == "recovery" or float(after.cost) <= cost
    return cheaper and target - float(after.coverage) <= max(c, 0.0)
