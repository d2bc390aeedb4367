"""A policy network: trained with torch, run with numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.features import FeatureSet

BLOCK = 2048
"""Questions that are scored at a time: the hidden layers of so many stay in a core's cache."""


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
        """Return the probability of each action, [n, T, L + 1].

        Works through blocks of questions, so that memory beyond the result does not grow with n.
        """
        layers = list(zip(self.weights, self.biases, strict=True))
        found = np.empty((*traces.answer.shape[:2], traces.n_roles + 1))
        for start in range(0, len(traces), BLOCK):
            rows = slice(start, start + BLOCK)
            seen = self.features.transform(traces.rows(rows))
            logits = _logits(seen.reshape(-1, seen.shape[2]), layers)
            found[rows] = logits.reshape(found[rows].shape)
            found[rows, -1, -1] = -np.inf
            found[rows] = softmax(found[rows])
        return found

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


def _logits(rows: FloatArray, layers: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Map features, [R, F], to what softmax turns into probabilities, [R, L + 1]."""
    *below, (weight, bias) = layers
    for w, b in below:
        rows = rows @ w
        rows += b
        np.tanh(rows, out=rows)
    logits: FloatArray = rows @ weight + bias
    return logits


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(logits) normalised over the last axis.

    >>> softmax(np.array([0.0, -np.inf, 0.0]))
    array([0.5, 0. , 0.5])
    """
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    normalised: FloatArray = weight / weight.sum(axis=-1, keepdims=True)
    return normalised
