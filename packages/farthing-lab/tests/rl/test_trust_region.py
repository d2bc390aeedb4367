"""One improvement keeps inside the region, and never buys what it may not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from farthing_lab.rl.networks import Network, multilayer
from farthing_lab.rl.soft_set import (
    divergence,
    policy_metric,
    set_metric,
    soft_cost,
    soft_coverage,
    soft_mask_log,
    soft_paths,
    soft_set_policy,
)
from farthing_lab.rl.trust_region import StepProblem, Surrogate, TrustRegion, improve, probabilities

B, T, L, F = 6, 4, 2, 5
EPSILON, KAPPA = 0.01, 0.3
REGION = TrustRegion()


def start(seed: int) -> tuple[Network, Callable[[Tensor], Surrogate], StepProblem]:
    rng = np.random.default_rng(seed)
    network = multilayer(F, L + 1, seed)
    network = network.moved(rng.normal(size=len(network.parameters)) * 0.1)
    seen = rng.normal(size=(B, T, F))
    right = torch.from_numpy(rng.random((B, T, L)) < 0.4)
    paid = torch.from_numpy(rng.uniform(0.5, 1.5, size=(B, T)))

    def evaluate(pi: Tensor) -> Surrogate:
        reach, path = soft_paths(pi)
        return Surrogate(
            soft_cost(reach, paid, KAPPA, EPSILON),
            soft_coverage(path, right, KAPPA, EPSILON),
            (pi, soft_set_policy(soft_mask_log(pi, KAPPA, EPSILON))),
        )

    pi = probabilities(network, seen)
    metric = policy_metric(pi) + set_metric(pi, soft_mask_log(pi, KAPPA, EPSILON), EPSILON)
    return network, evaluate, StepProblem(seen, evaluate, metric, 0.7)


@pytest.mark.parametrize("seed", range(40))
def test_both_divergences_stay_within_the_radius_and_nothing_gets_worse(seed: int) -> None:
    network, evaluate, problem = start(seed)
    old = evaluate(probabilities(network, problem.observations))
    kept = network.parameters.copy()
    done = improve(network, problem, REGION)
    new = evaluate(probabilities(done.network, problem.observations))
    for after, before in zip(new.distributions, old.distributions, strict=True):
        assert divergence(after, before).item() <= REGION.radius
    assert done.violation == pytest.approx(0.7 - old.coverage.item())
    if done.violation > 0:
        assert new.coverage.item() >= old.coverage.item()
    else:
        assert new.cost.item() <= old.cost.item()
        assert new.coverage.item() >= 0.7
    np.testing.assert_array_equal(network.parameters, kept)
    assert done.accepted == (done.network is not network)


@pytest.mark.slow
def test_most_steps_are_accepted_and_improve() -> None:
    better = []
    for seed in range(40):
        network, evaluate, problem = start(seed)
        old = evaluate(probabilities(network, problem.observations))
        done = improve(network, problem, REGION)
        new = evaluate(probabilities(done.network, problem.observations))
        gain = new.coverage - old.coverage if done.violation > 0 else old.cost - new.cost
        better.append(gain.item() > 0)
    assert np.mean(better) > 0.8


def test_the_policys_own_divergence_is_bounded_where_the_set_policy_does_not_move() -> None:
    """Far from kappa the soft mask is flat: S alone would let pi run away."""
    network, _, problem = start(0)

    def evaluate(pi: Tensor) -> Surrogate:
        s = soft_set_policy(soft_mask_log(pi, -2.0, EPSILON))
        return Surrogate(pi[:, 0, 0].mean(), torch.ones((), dtype=pi.dtype) + 0 * pi.sum(), (pi, s))

    pi = probabilities(network, problem.observations)
    flat = set_metric(pi, soft_mask_log(pi, -2.0, EPSILON), EPSILON)
    assert flat.abs().max() < 1e-20
    done = improve(network, StepProblem(problem.observations, evaluate, flat, 0.7), REGION)
    moved = probabilities(done.network, problem.observations)
    assert 0 < divergence(moved, pi).item() <= REGION.radius


def test_a_step_that_never_passes_leaves_the_network_alone() -> None:
    network, evaluate, problem = start(1)
    calls = 0

    def worse_every_time(pi: Tensor) -> Surrogate:
        nonlocal calls
        calls += 1
        found = evaluate(pi)
        return Surrogate(found.cost + calls, found.coverage - 0.1 * calls, found.distributions)

    done = improve(
        network,
        StepProblem(problem.observations, worse_every_time, problem.metric, problem.target),
        REGION,
    )
    assert not done.accepted
    assert done.network is network
    assert calls == REGION.attempts + 1
