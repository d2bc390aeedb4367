"""The network and its products by hand, against torch's autograd."""

import itertools

import numpy as np
import torch
from torch import Tensor

from farthing.features.rounds import FeatureSet
from farthing.traces.arrays import FloatArray
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.learner import to_policy
from farthing_lab.rl.networks import Network, Tangent, fisher_product, multilayer
from farthing_lab.rl.trust_region import probabilities

F, A, N = 3, 3, 6
WIDTHS = (F, 5, 4, A)


def network(seed: int = 0) -> Network:
    size = sum((i + 1) * o for i, o in itertools.pairwise(WIDTHS))
    return Network(WIDTHS, np.random.default_rng(seed).normal(size=size) * 0.7)


def inputs(seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(N, F))


def by_torch(parameters: Tensor, seen: Tensor) -> Tensor:
    """Run the network with torch alone, reading the vector as its docstring says."""
    hidden, start = seen, 0
    for i, o in itertools.pairwise(WIDTHS):
        weight = parameters[start : start + i * o].reshape(i, o)
        bias = parameters[start + i * o : start + (i + 1) * o]
        start += (i + 1) * o
        hidden = hidden @ weight + bias
        if start < len(parameters):
            hidden = torch.tanh(hidden)
    return hidden


def jacobian(net: Network, seen: FloatArray) -> FloatArray:
    """Return the [N, A, P] Jacobian by autograd."""
    found: Tensor = torch.func.jacrev(lambda p: by_torch(p, torch.from_numpy(seen)))(
        torch.from_numpy(net.parameters)
    )
    array: FloatArray = found.detach().numpy()
    return array


def test_outputs_equal_those_of_torch() -> None:
    want = by_torch(torch.from_numpy(network().parameters), torch.from_numpy(inputs())).numpy()
    np.testing.assert_allclose(network().outputs(inputs()), want, rtol=1e-12)
    np.testing.assert_allclose(Tangent(network(), inputs()).outputs, want, rtol=1e-12)


def test_push_and_pull_multiply_with_the_jacobian() -> None:
    j, tangent = jacobian(network(), inputs()), Tangent(network(), inputs())
    rng = np.random.default_rng(2)
    changes, gradients = rng.normal(size=(2, j.shape[2])), rng.normal(size=(2, N, A))
    pushed, pulled = np.einsum("nap,kp->kna", j, changes), np.einsum("nap,kna->kp", j, gradients)
    np.testing.assert_allclose(tangent.push(changes), pushed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tangent.pull(gradients), pulled, rtol=1e-9, atol=1e-12)


def test_pull_equals_central_differences() -> None:
    net, weight = network(), np.random.default_rng(3).normal(size=(N, A))
    step = 1e-6
    want = [
        ((net.moved(d).outputs(inputs()) - net.moved(-d).outputs(inputs())) * weight).sum()
        / (2 * step)
        for d in step * np.eye(len(net.parameters))
    ]
    np.testing.assert_allclose(Tangent(net, inputs()).pull(weight[None])[0], want, atol=1e-7)


def test_fisher_product_equals_the_explicit_matrix() -> None:
    rng = np.random.default_rng(4)
    root = rng.normal(size=(N, A, A))
    metric = root @ root.transpose(0, 2, 1)
    j = jacobian(network(), inputs())
    explicit = np.einsum("nap,nab,nbq->pq", j, metric, j) / N + 0.1 * np.eye(j.shape[2])
    vectors = rng.normal(size=(3, j.shape[2]))
    product = fisher_product(Tangent(network(), inputs()), metric, damping=0.1)
    np.testing.assert_allclose(product(vectors), vectors @ explicit, rtol=1e-9, atol=1e-10)


def test_fisher_product_equals_double_back_propagation() -> None:
    """Of the mean divergence of a softmax policy, whose Hessian at the policy is Fisher's."""
    net, seen = network(), torch.from_numpy(inputs())
    pi = torch.softmax(torch.from_numpy(net.outputs(inputs())), dim=1)
    parameters = torch.from_numpy(net.parameters).requires_grad_()
    vector = torch.from_numpy(np.random.default_rng(5).normal(size=len(net.parameters)))
    log_new = torch.log_softmax(by_torch(parameters, seen), dim=1)
    divergence = (pi * (pi.log() - log_new)).sum(dim=1).mean()
    (gradient,) = torch.autograd.grad(divergence, parameters, create_graph=True)
    (want,) = torch.autograd.grad(gradient @ vector, parameters)
    metric = (torch.diag_embed(pi) - pi[:, :, None] * pi[:, None, :]).numpy()
    product = fisher_product(Tangent(net, inputs()), metric, damping=0.0)
    np.testing.assert_allclose(product(vector.numpy()[None])[0], want.numpy(), rtol=1e-8)


def test_a_network_is_drawn_from_its_seed_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = multilayer(4, 3, 0), multilayer(4, 3, 0), multilayer(4, 3, 1)
    assert first.parameters.tobytes() == again.parameters.tobytes()
    assert first.parameters.tobytes() != other.parameters.tobytes()
    assert torch.equal(torch.get_rng_state(), state)
    for weight, bias in first.layers():
        small = min(weight.shape)
        gram = weight @ weight.T if weight.shape[0] == small else weight.T @ weight
        np.testing.assert_allclose(gram, np.eye(small), atol=1e-12)
        assert not bias.any()


def test_the_policy_that_ships_says_what_the_network_says() -> None:
    traces = generate(preset("mmlu-llama2-7b").config, 20, np.random.default_rng(0))
    features = FeatureSet.fit(traces)
    seen = features.transform(traces)
    net = multilayer(seen.shape[2], 3, seed=0)
    net = net.moved(np.random.default_rng(1).normal(size=len(net.parameters)) * 0.1)
    shipped = to_policy(net, features).scores(traces)
    np.testing.assert_allclose(shipped, probabilities(net, seen).numpy(), rtol=1e-5)
