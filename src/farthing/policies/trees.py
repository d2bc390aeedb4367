"""A forest of regression trees as plain arrays: no scikit-learn where it serves."""

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

    def predict_one(self, features: FloatArray) -> FloatArray:
        """Return the mean over trees, [O], of one case; all trees are walked at once."""
        asked = np.append(features.astype(np.float32), np.float32(-np.inf))  # a leaf stays
        node = self.roots
        for _ in range(self.depth):
            node = self.left[node] + (asked[self.feature[node]] > self.threshold[node])
        mean: FloatArray = self.value[node].mean(axis=0)
        return mean
