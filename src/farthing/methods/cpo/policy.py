"""A policy network: trained with torch, run with numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.features.rounds import FeatureSet
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays

BLOCK = 4096
"""Questions whose features are computed at a time, so that memory does not grow with n."""
PASS = 128
"""Rounds that go through the layers at a time, always so many.

Where fewer are left, zeros fill up. How a product of matrices rounds depends on their sizes: with
one size only, a question alone scores to the bit what it scores among thousands.
"""
Layers = Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]


@dataclass(frozen=True)
class NetworkPolicy(InRounds):
    """A multilayer perceptron with tanh units and a softmax over the actions.

    It is trained in double precision and runs in single, which takes a third of the time.
    """

    features: FeatureSet
    """What it sees of a round."""
    weights: Sequence[FloatArray]
    """One [inputs, outputs] matrix a layer."""
    biases: Sequence[FloatArray]
    """One [outputs] vector a layer."""
    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the probability of each action, [n, T, L + 1]."""
        layers = [
            (weight.astype(np.float32), bias.astype(np.float32))
            for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        found = np.empty((*traces.answer.shape[:2], traces.n_roles + 1))
        for start in range(0, len(traces), BLOCK):
            rows = slice(start, start + BLOCK)
            seen = self.features.transform(traces.rows(rows))
            logits = _logits(seen.reshape(-1, seen.shape[2]), layers)
            found[rows] = logits.reshape(found[rows].shape)
            found[rows, -1, -1] = -np.inf
            found[rows] = softmax(found[rows])
        return found

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


def _logits(rows: FloatArray, layers: Layers) -> NDArray[np.float32]:
    """Map features, [R, F], to what softmax turns into probabilities, [R, L + 1]."""
    *below, (last, constant) = layers
    filled = -(-len(rows) // PASS) * PASS
    seen = np.zeros((filled, rows.shape[1]), dtype=np.float32)
    seen[: len(rows)] = rows
    logits = np.empty((filled, len(constant)), dtype=np.float32)
    for start in range(0, filled, PASS):
        hidden = seen[start : start + PASS]
        for weight, bias in below:
            hidden = hidden @ weight
            hidden += bias
            np.tanh(hidden, out=hidden)
        np.matmul(hidden, last, out=logits[start : start + PASS])
    logits += constant
    return logits[: len(rows)]


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(logits) normalised over the last axis.

    >>> softmax(np.array([0.0, -np.inf, 0.0]))
    array([0.5, 0. , 0.5])
    """
    actions = np.ascontiguousarray(np.moveaxis(logits, -1, 0))  # few: long rows are quicker
    weight = np.exp(actions - actions.max(axis=0))
    weight /= weight.sum(axis=0)
    return np.ascontiguousarray(np.moveaxis(weight, 0, -1))
