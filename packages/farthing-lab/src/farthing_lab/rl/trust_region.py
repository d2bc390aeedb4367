"""Constrained policy optimisation (Achiam et al. 2017): one step inside a trust region.

Minimise g'x subject to c + b'x <= 0 and x'Hx / 2 <= delta, for one linearised constraint. The dual
has two variables and is solved in closed form; `improve` takes the step on a policy network, as far
along as a line search lets it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from farthing.traces.arrays import FloatArray
from farthing_lab.rl.networks import Network, Tangent, fisher_product
from farthing_lab.rl.soft_set import divergence, policy_probabilities

Case = Literal["unconstrained", "recovery", "constrained", "touching"]
_NO_GRADIENT = 1e-200
"""Below this value of b'b the constraint does not depend on the step."""
_PARALLEL = 1e-10
"""Below this part of q, what is left of g beside b is rounding error."""


@dataclass(frozen=True)
class Dual:
    """The multipliers of a step x = -H^-1 (g + nu b) / lam.

    Two cases have no such form: `recovery` (infeasible: straight back, x = -sqrt(2 delta / s)
    H^-1 b) and `touching` (g is parallel to b, lam -> 0: up to the constraint, x = -c/s H^-1 b).
    """

    case: Case
    lam: float
    """Multiplier of the trust region; > 0."""
    nu: float
    """Multiplier of the constraint; >= 0."""


def conjugate_gradient(
    product: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    iterations: int = 10,
    tolerance: float = 1e-10,
) -> FloatArray:
    """Solve H x = right for several right-hand sides at once.

    Args:
        product: maps [k, P] to H times each row.
        right: [k, P] right-hand sides.
        iterations: the most iterations; each costs one product.
        tolerance: stop when every residual's squared norm is below this part of its first.

    Returns:
        x, [k, P].
    """
    x = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    square = (residual * residual).sum(axis=1)
    first = square.copy()
    for _ in range(iterations):
        active = square > tolerance * first
        if not active.any():
            break
        image = product(direction)
        curvature = (direction * image).sum(axis=1)
        step = np.where(active, square / np.where(active, curvature, 1.0), 0.0)
        x += step[:, None] * direction
        residual -= step[:, None] * image
        new = (residual * residual).sum(axis=1)
        ratio = np.where(active, new / np.where(active, square, 1.0), 0.0)
        direction = residual + ratio[:, None] * direction
        square = np.where(active, new, square)
    return x


def solve_dual(q: float, r: float, s: float, c: float, delta: float) -> Dual:
    """Solve the dual of the step (Achiam et al. 2017, appendix; signs as in their theorem 2).

    Args:
        q: g'H^-1 g.
        r: g'H^-1 b.
        s: b'H^-1 b.
        c: present violation of the constraint; <= 0 is feasible.
        delta: radius of the trust region.
    """
    unconstrained = Dual("unconstrained", max(np.sqrt(q / (2 * delta)), 1e-12), 0.0)
    if s <= 0:
        return unconstrained
    margin = 2 * delta - c * c / s
    if margin < 0:
        return unconstrained if c < 0 else Dual("recovery", 1.0, 0.0)
    return _binding_or_slack(q, r, s, c, delta)


def _binding_or_slack(q: float, r: float, s: float, c: float, delta: float) -> Dual:
    """Choose between the dual's two branches: the constraint binds (a), or it is slack (b).

    nu(lam) = max(0, (lam c - r) / s), so branch (a) is where lam c > r.
    """
    curvature = max(q - r * r / s, 0.0)
    margin = 2 * delta - c * c / s
    binding, slack = _branches(r, c)
    candidates: list[tuple[float, float, bool]] = []
    if binding is not None:
        lam = _clip(np.sqrt(curvature / margin) if margin > 0 else np.inf, binding)
        value = -0.5 * (curvature / lam + margin * lam) - r * c / s
        candidates.append((value, lam, True))
    if slack is not None:
        lam = _clip(np.sqrt(q / (2 * delta)), slack)
        value = -0.5 * (q / lam + 2 * delta * lam)
        candidates.append((value, lam, False))
    _, lam, binds = max(candidates)
    if not binds:
        return Dual("constrained", lam, 0.0)
    nu = max(0.0, (lam * c - r) / s)
    return Dual("touching" if curvature <= _PARALLEL * q else "constrained", lam, nu)


Interval = tuple[float, float]


def _branches(r: float, c: float) -> tuple[Interval | None, Interval | None]:
    """Return the ranges of lam > 0 on which the constraint binds and on which it is slack."""
    everything: Interval = (0.0, np.inf)
    if c == 0:
        return (everything, None) if r < 0 else (None, everything)
    below = (0.0, r / c) if r / c > 0 else None
    above = (max(r / c, 0.0), np.inf)
    return (below, above) if c < 0 else (above, below)


def _clip(lam: float, interval: Interval) -> float:
    low, high = interval
    largest = high if np.isfinite(high) else 1e12
    return float(min(max(lam, low, 1e-12), largest))


def step(
    product: Callable[[FloatArray], FloatArray],
    g: FloatArray,
    b: FloatArray,
    c: float,
    delta: float,
) -> tuple[FloatArray, Dual]:
    """Return the step x, [P], and the dual that it came from.

    Args:
        product: maps [k, P] to H times each row, damping included.
        g: [P] gradient of the objective.
        b: [P] gradient of the constraint.
        c: present violation of the constraint.
        delta: radius of the trust region.
    """
    if b @ b <= _NO_GRADIENT:
        (hg,) = conjugate_gradient(product, g[None])
        dual = solve_dual(float(g @ hg), 0.0, 0.0, c, delta)
        return -hg / dual.lam, dual
    hg, hb = conjugate_gradient(product, np.stack([g, b]))
    q, r, s = float(g @ hg), float(g @ hb), float(b @ hb)
    dual = solve_dual(q, r, s, c, delta)
    if dual.case == "recovery":
        return -np.sqrt(2 * delta / s) * hb, dual
    if dual.case == "touching":
        return -c / s * hb, dual
    return -(hg + dual.nu * hb) / dual.lam, dual


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
class StepProblem:
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


def improve(network: Network, problem: StepProblem, region: TrustRegion) -> Improvement:
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
