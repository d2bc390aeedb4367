"""The two critics: a value of the cost and a value of the constraint."""

import itertools

import torch
from torch import Tensor

from farthing.rl.networks import HIDDEN
from farthing.traces.arrays import BoolArray, FloatArray


class Critics:
    """Two value networks of three hidden layers, trained side by side in one set of tensors."""

    def __init__(self, inputs: int, seed: int, learning_rate: float = 1e-3) -> None:
        generator = torch.Generator().manual_seed(seed)
        widths = (inputs, *HIDDEN, 1)
        self._weights: list[Tensor] = []
        self._biases: list[Tensor] = []
        for fan_in, fan_out in itertools.pairwise(widths):
            weight = torch.empty(2, fan_in, fan_out, dtype=torch.float64)
            for half in weight:
                torch.nn.init.orthogonal_(half, generator=generator)
            self._weights.append(weight.requires_grad_())
            self._biases.append(torch.zeros(2, 1, fan_out, dtype=torch.float64, requires_grad=True))
        self._optimiser = torch.optim.Adam(
            [*self._weights, *self._biases], lr=learning_rate, foreach=True
        )

    def values(self, observations: Tensor) -> Tensor:
        """Return (cost, constraint) values of [B, T, F] observations: [2, B, T]."""
        batch, rounds, width = observations.shape
        hidden = observations.reshape(1, batch * rounds, width).expand(2, -1, -1)
        for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
            hidden = torch.tanh(torch.baddbmm(bias, hidden, weight))
        out = torch.baddbmm(self._biases[-1], hidden, self._weights[-1])
        return out.reshape(2, batch, rounds)

    def fit(self, values: Tensor, targets: FloatArray, taken: BoolArray) -> None:
        """Take one gradient step on sum_t (v_t - V(o_t))^2 (equation 5, descended).

        Args:
            values: [2, B, T] as `values` returned them.
            targets: [2, B, T] V-trace targets.
            taken: [B, T] which steps count.
        """
        error = (values - torch.from_numpy(targets)) * torch.from_numpy(taken)
        loss = 0.5 * (error * error).sum() / values.shape[1]
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
