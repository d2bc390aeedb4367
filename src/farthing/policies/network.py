"""A policy network: trained with torch, run with numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.features import FeatureSet


@dataclass(frozen=True)
class NetworkPolicy:
    """A multilayer perceptron with tanh units and a softmax over the actions."""

    features: FeatureSet
    """What it sees of a round."""
    weights: Sequence[FloatArray]
    """One [inputs, outputs] matrix a layer."""
    biases: Sequence[FloatArray]
    """One [outputs] vector a layer."""
    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the probability of each action, [n, T, L + 1]."""
        hidden = self.features.transform(traces)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.tanh(hidden @ weight + bias)
        logits = hidden @ self.weights[-1] + self.biases[-1]
        logits[:, -1, -1] = -np.inf
        return softmax(logits)

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:  # noqa: ARG002
        """Deciding costs nothing."""
        return None

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays = {f"weight.{i}": w for i, w in enumerate(self.weights)}
        arrays |= {f"bias.{i}": b for i, b in enumerate(self.biases)}
        return arrays, {"features": self.features.to_json(), "layers": len(self.weights)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        layers = range(int(settings["layers"]))
        return cls(
            FeatureSet.from_json(settings["features"]),
            [arrays[f"weight.{i}"] for i in layers],
            [arrays[f"bias.{i}"] for i in layers],
        )


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(logits) normalised over the last axis.

    >>> softmax(np.array([0.0, -np.inf, 0.0]))
    array([0.5, 0. , 0.5])
    """
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    normalised: FloatArray = weight / weight.sum(axis=-1, keepdims=True)
    return normalised
