"""How fast is a CCPO training, and what does working on whole batches save?

    python benchmarks/ccpo_speed.py

Times 2,000 updates at batch 10 on 1,000 generated traces, and next to it a straightforward
alternative: the same update with one pass a round of each episode, and Fisher products by double
back-propagation. Process time on one core; both start from the same network and batch.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Silent
from farthing.traces.arrays import FloatArray
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner
from farthing_lab.rl.actor_critic import Questions
from farthing_lab.rl.networks import HIDDEN, Network, multilayer
from farthing_lab.rl.trust_region import step

EPSILON, KAPPA, TARGET, RADIUS, DAMPING = 0.01, 0.2, 0.9, 0.01, 0.1
LOOPED_UPDATES = 3


def torch_network(network: Network) -> torch.nn.Sequential:
    """Copy our network into torch's layers."""
    layers: list[torch.nn.Module] = []
    for weight, bias in network.layers():
        layer = torch.nn.Linear(weight.shape[0], weight.shape[1], dtype=torch.float64)
        layer.weight.data = torch.from_numpy(weight.T.copy())
        layer.bias.data = torch.from_numpy(bias.copy())
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def one_question(
    network: torch.nn.Sequential, batch: Questions, i: int
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return soft cost, soft coverage and the distributions of a question, round by round."""
    reach = torch.ones((), dtype=torch.float64)
    cost, best = torch.zeros((), dtype=torch.float64), torch.tensor(-torch.inf, dtype=torch.float64)
    distributions = []
    rounds, roles = batch.correct.shape[1:]
    for t in range(rounds):
        logits = network(torch.from_numpy(batch.observations[i, t]))
        pi = torch.softmax(logits[:roles] if t == rounds - 1 else logits, dim=0)
        soft = torch.softmax(torch.nn.functional.logsigmoid((pi - KAPPA) / EPSILON), dim=0)
        distributions += [pi, soft]
        cost = cost + batch.cost[i, t] * torch.sigmoid((reach - KAPPA) / EPSILON)
        for a in range(roles):
            if batch.correct[i, t, a]:
                best = torch.maximum(best, torch.minimum(reach, pi[a]))
        if t < rounds - 1:
            reach = torch.minimum(reach, pi[roles])
    covered = torch.sigmoid((best - KAPPA) / EPSILON) if batch.solvable[i] else torch.ones(())
    return cost, covered, distributions


def everyone(network: torch.nn.Sequential, batch: Questions) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the batch's mean cost, mean coverage and all distributions."""
    found = [one_question(network, batch, i) for i in range(len(batch.solvable))]
    costs, covered, distributions = zip(*found, strict=True)
    flat = [d for of_question in distributions for d in of_question]
    return torch.stack(costs).mean(), torch.stack(covered).mean(), flat


def looped_update(network: torch.nn.Sequential, batch: Questions) -> None:
    """Take one CPO step on the exact cost and constraint, the obvious way."""
    parameters = list(network.parameters())
    cost, coverage, new = everyone(network, batch)
    old = [d.detach() for d in new]
    rounds = len(new) / 2

    def flat(tensors: tuple[Tensor, ...]) -> Tensor:
        return torch.cat([tensor.reshape(-1) for tensor in tensors])

    def divergence(now: list[Tensor]) -> Tensor:
        terms = [(d * (d.log() - o.log())).sum() for d, o in zip(now, old, strict=True)]
        return torch.stack(terms).sum() / rounds

    slope = flat(torch.autograd.grad(divergence(new), parameters, create_graph=True))

    def product(rows: FloatArray) -> FloatArray:
        found = [
            flat(torch.autograd.grad(slope @ row, parameters, retain_graph=True))
            for row in torch.from_numpy(rows)
        ]
        return torch.stack(found).numpy() + DAMPING * rows

    g = flat(torch.autograd.grad(cost, parameters, retain_graph=True)).numpy()
    b = -flat(torch.autograd.grad(coverage, parameters, retain_graph=True)).numpy()
    change, _ = step(product, g, b, TARGET - coverage.item(), RADIUS)
    origin = torch.nn.utils.parameters_to_vector(parameters).detach()
    with torch.no_grad():
        for attempt in range(15):
            moved = origin + 0.8**attempt * torch.from_numpy(change)
            torch.nn.utils.vector_to_parameters(moved, parameters)
            if divergence(everyone(network, batch)[2]).item() <= RADIUS:
                return
        torch.nn.utils.vector_to_parameters(origin, parameters)


def main() -> None:
    """Time both and print a table."""
    torch.set_num_threads(1)
    traces = generate(preset("hotpotqa-llama2-7b").config, 1_000, np.random.default_rng(0))
    CcpoLearner(CcpoConfig(updates=1)).fit(traces, Fraction(1, 10), 0, Silent())  # first use
    start = time.process_time()
    CcpoLearner(CcpoConfig(updates=2_000)).fit(traces, Fraction(1, 10), 0, Silent())
    whole = time.process_time() - start
    seen = FeatureSet.fit(traces).transform(traces)
    questions = Questions.of(traces, seen)
    network = torch_network(multilayer(seen.shape[2], 3, seed=0, scale=0.01))
    rng = np.random.default_rng(1)
    start = time.process_time()
    for _ in range(LOOPED_UPDATES):
        looped_update(network, questions.take(rng.choice(1_000, 10, replace=False)))
    looped = (time.process_time() - start) / LOOPED_UPDATES
    print(f"{'whole training, 2,000 updates':40} {whole:8.1f} s")
    print(f"{'one update, critics included':40} {whole / 2.0:8.1f} ms")
    print(f"{'one update, looped, without critics':40} {1e3 * looped:8.1f} ms")
    print(f"{'ratio':40} {2_000 * looped / whole:8.0f}")
    print(f"hidden layers {HIDDEN}, {seen.shape[2]} features")


if __name__ == "__main__":
    main()
