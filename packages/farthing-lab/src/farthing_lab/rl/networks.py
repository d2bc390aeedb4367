"""The policy network as a pure function of one vector of parameters, with its derivatives by hand.

The step needs a forward pass, gradients and Fisher products of one small network. Written out they
are two short loops over the layers, several times faster than autograd at this size.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from farthing.traces.arrays import FloatArray

HIDDEN = (64, 64, 64)
"""Three hidden layers of 64, as in the paper (section 5.1)."""

Layer = tuple[FloatArray, FloatArray]
"""[..., inputs, outputs] weights and [..., outputs] biases."""


@dataclass(frozen=True)
class Network:
    """A multilayer perceptron with tanh units and linear outputs."""

    widths: tuple[int, ...]
    """Inputs, each hidden layer, outputs."""
    parameters: FloatArray
    """[P] layer by layer: weights, [inputs, outputs] in C order, then biases."""

    def layers(self, vectors: FloatArray | None = None) -> list[Layer]:
        """Cut parameters into layers: views of the network's own, or of `vectors`, [..., P]."""
        flat = self.parameters if vectors is None else vectors
        layers: list[Layer] = []
        start = 0
        for rows, columns in itertools.pairwise(self.widths):
            middle, end = start + rows * columns, start + (rows + 1) * columns
            weight = flat[..., start:middle].reshape(*flat.shape[:-1], rows, columns)
            layers.append((weight, flat[..., middle:end]))
            start = end
        return layers

    def moved(self, change: FloatArray) -> "Network":
        """Return the network with a change, [P], added to its parameters."""
        return Network(self.widths, self.parameters + change)

    def outputs(self, inputs: FloatArray) -> FloatArray:
        hidden = inputs
        *below, (weight, bias) = self.layers()
        for w, b in below:
            hidden = np.tanh(hidden @ w + b)
        return hidden @ weight + bias


def multilayer(inputs: int, outputs: int, seed: int, scale: float = 1.0) -> Network:
    """Draw a network with orthogonal weights and no biases.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        seed: seeds the weights alone; torch's global generator is left as it was.
        scale: multiplies the last layer's weights; a small one starts close to uniform.
    """
    generator = torch.Generator().manual_seed(seed)
    parts: list[FloatArray] = []
    widths = (inputs, *HIDDEN, outputs)
    for fan_in, fan_out in itertools.pairwise(widths):
        weight = torch.empty(fan_in, fan_out, dtype=torch.float64)
        torch.nn.init.orthogonal_(weight, generator=generator)
        parts += [weight.numpy().reshape(-1), np.zeros(fan_out)]
    parts[-2] *= scale
    return Network(widths, np.concatenate(parts))


class Tangent:
    """A network's outputs at some inputs, and their Jacobian J as two products.

    Args:
        network: the network.
        inputs: [N, F].
    """

    def __init__(self, network: Network, inputs: FloatArray) -> None:
        self._network = network
        self._layers = network.layers()
        self._activations = [inputs]
        for weight, bias in self._layers[:-1]:
            self._activations.append(np.tanh(self._activations[-1] @ weight + bias))
        self._slopes = [1.0 - a * a for a in self._activations[1:]]
        weight, bias = self._layers[-1]
        self.outputs: FloatArray = self._activations[-1] @ weight + bias
        """[N, A]"""

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J v for each row v: changes of parameters, [k, P], to those of outputs, [k, N, A].

        This is forward-mode differentiation.
        """
        changes = self._network.layers(vectors)
        change, bias = changes[0]
        moved = self._activations[0] @ change + bias[:, None]
        for i in range(1, len(changes)):
            (change, bias), (weight, _) = changes[i], self._layers[i]
            moved = (
                self._activations[i] @ change
                + bias[:, None]
                + (moved * self._slopes[i - 1]) @ weight
            )
        return moved

    def pull(self, vectors: FloatArray) -> FloatArray:
        """Return J'u for each u: gradients in the outputs, [k, N, A], to parameters, [k, P].

        This is reverse-mode differentiation.
        """
        parts: list[FloatArray] = []
        for i in reversed(range(len(self._layers))):
            gradient = self._activations[i].T @ vectors
            parts += [vectors.sum(axis=1), gradient.reshape(len(vectors), -1)]
            if i > 0:
                vectors = (vectors @ self._layers[i][0].T) * self._slopes[i - 1]
        return np.concatenate(parts[::-1], axis=1)


def fisher_product(
    tangent: Tangent, metric: FloatArray, damping: float
) -> Callable[[FloatArray], FloatArray]:
    """Return the product of rows, [k, P], with H = (1/N) sum_i J_i' M_i J_i + damping I.

    Args:
        tangent: the network at N observations; J_i is the Jacobian of observation i's outputs.
        metric: [N, A, A] the Fisher matrix M_i of each observation's action distribution.
        damping: added to the diagonal.
    """
    mean = metric / len(metric)

    def product(vectors: FloatArray) -> FloatArray:
        pushed = tangent.push(vectors)[..., None]
        return tangent.pull((mean @ pushed)[..., 0]) + damping * vectors

    return product
