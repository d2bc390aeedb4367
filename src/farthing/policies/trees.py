"""A forest of regression trees as plain arrays: no scikit-learn where it serves."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import FloatArray

Nodes = NDArray[np.int32]
LEAF = -1
"""What stands for the feature of a node that asks nothing more."""


@dataclass(frozen=True)
class Forest:
    """Averages trees that each ask of one feature a node whether it is at most a threshold."""

    feature: Nodes
    """[N] the feature that a node asks about; -1 in a leaf. Trees lie one after another."""
    threshold: NDArray[np.float32]
    """[N] at most this goes left."""
    left: Nodes
    """[N] the node for yes; the one for no is the next after it. A leaf's is itself."""
    value: FloatArray
    """[N, O] what a leaf predicts."""
    roots: Nodes
    """[B] where each tree begins."""
    depth: int
    """Questions on the longest way from a root to a leaf."""

    def predict(self, features: FloatArray) -> FloatArray:
        """Return the mean over trees, [R, O], of cases with features [R, F]."""
        asked = features.astype(np.float32)
        out = np.zeros((len(features), self.value.shape[1]))
        every = np.arange(len(features))
        for root in self.roots:
            node = np.full(len(features), root)
            for _ in range(self.depth):
                feature = self.feature[node]
                right = asked[every, feature] > self.threshold[node]
                node = np.where(feature == LEAF, node, self.left[node] + right)
            out += self.value[node]
        return out / len(self.roots)


class Walker:
    """The same forest in plain lists: for one case they are some ten times as quick as arrays."""

    def __init__(self, forest: Forest) -> None:
        self._feature = forest.feature.tolist()
        self._threshold = forest.threshold.tolist()
        self._left = forest.left.tolist()
        self._roots = forest.roots.tolist()
        self._values = forest.value.T.tolist()

    def predict(self, features: Sequence[float]) -> list[float]:
        """Return the mean over trees, [O], of one case."""
        feature, threshold, left = self._feature, self._threshold, self._left
        asked = array("f", features).tolist()
        leaves = []
        for root in self._roots:
            node, place = root, feature[root]
            while place >= 0:
                node = left[node] + (asked[place] > threshold[node])
                place = feature[node]
            leaves.append(node)
        return [sum([values[leaf] for leaf in leaves]) / len(leaves) for values in self._values]
