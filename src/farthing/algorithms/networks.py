"""Small torch networks and their analytic Fisher products."""

import numpy as np
import torch
from torch import nn

from farthing.policies.network import NetworkPolicy
from farthing.traces.arrays import FloatArray
from farthing.traces.features import FeatureSet

HIDDEN = (64, 64, 64)
"""Three hidden layers of 64, as in the paper (section 5.1)."""


def multilayer(inputs: int, outputs: int, seed: int, scale: float = 1.0) -> nn.Sequential:
    """Build a tanh network with float64 weights drawn from a seed.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        seed: seeds the weights alone; torch's global generator is left as it was.
        scale: multiplies the last layer's weights; a small one starts close to uniform.
    """
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    widths = (inputs, *HIDDEN, outputs)
    for i, (fan_in, fan_out) in enumerate(zip(widths[:-1], widths[1:], strict=True)):
        layer = nn.Linear(fan_in, fan_out, dtype=torch.float64)
        nn.init.orthogonal_(layer.weight, gain=1.0, generator=generator)
        nn.init.zeros_(layer.bias)
        layers.append(layer)
        if i < len(HIDDEN):
            layers.append(nn.Tanh())
        else:
            layer.weight.data *= scale
    return nn.Sequential(*layers)


def flat(tensors: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> FloatArray:
    """Lay tensors end to end in one numpy vector, [P]."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).numpy()


def assign(network: nn.Module, vector: FloatArray) -> None:
    """Write a vector, [P], into the network's parameters in their order."""
    torch.nn.utils.vector_to_parameters(torch.from_numpy(vector), network.parameters())


def to_policy(network: nn.Sequential, features: FeatureSet) -> NetworkPolicy:
    """Copy a torch network into a policy that runs with numpy."""
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    return NetworkPolicy(
        features,
        [np.ascontiguousarray(layer.weight.detach().numpy().T) for layer in layers],
        [layer.bias.detach().numpy().copy() for layer in layers],
    )


class FisherProduct:
    """Multiply H = (1/N) sum_i J_i' M_i J_i + damping I with vectors, without autograd.

    J_i is the Jacobian of observation i's logits and M_i the metric of its action distribution: one
    forward-mode and one reverse-mode pass by hand cost a tenth of double back-propagation.

    Args:
        network: alternating linear and tanh layers, as `multilayer` builds.
        inputs: [N, F] observations.
        metric: [N, A, A] one matrix an observation.
        damping: added to the diagonal.
    """

    def __init__(
        self, network: nn.Sequential, inputs: FloatArray, metric: FloatArray, damping: float
    ) -> None:
        self._metric = metric / len(inputs)
        self._damping = damping
        layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self._weights = [layer.weight.detach().numpy() for layer in layers]  # [out, in]
        self._activations = [inputs]
        for layer, weight in zip(layers[:-1], self._weights[:-1], strict=True):
            before = self._activations[-1] @ weight.T + layer.bias.detach().numpy()
            self._activations.append(np.tanh(before))
        self._slopes = [1.0 - a * a for a in self._activations[1:]]

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """Return H v for each row v of `vectors`, [k, P]."""
        tangent = self._forward(vectors)
        pulled = np.einsum("nab,knb->kna", self._metric, tangent)
        return self._backward(pulled) + self._damping * vectors

    def _forward(self, vectors: FloatArray) -> FloatArray:
        """Push directions through the network: [k, P] to changes of the logits, [k, N, A]."""
        tangent: FloatArray | None = None
        start = 0
        for i, weight in enumerate(self._weights):
            rows, columns = weight.shape
            change = vectors[:, start : start + weight.size].reshape(-1, rows, columns)
            start += weight.size
            bias = vectors[:, None, start : start + rows]
            start += rows
            moved = self._activations[i] @ change.transpose(0, 2, 1) + bias
            tangent = moved if tangent is None else moved + tangent @ weight.T
            if i < len(self._slopes):
                tangent = tangent * self._slopes[i]
        assert tangent is not None  # noqa: S101 - a network has a layer
        return tangent

    def _backward(self, pulled: FloatArray) -> FloatArray:
        """Pull changes of the logits, [k, N, A], back to the parameters, [k, P]."""
        parts: list[FloatArray] = []
        for i in reversed(range(len(self._weights))):
            gradient = pulled.transpose(0, 2, 1) @ self._activations[i]
            parts += [pulled.sum(axis=1), gradient.reshape(len(pulled), -1)]
            if i > 0:
                pulled = (pulled @ self._weights[i]) * self._slopes[i - 1]
        return np.concatenate(parts[::-1], axis=1)
