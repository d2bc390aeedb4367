"""A forest of regression trees as plain arrays: no scikit-learn where it serves."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def joined(forests: Sequence[Forest]) -> Forest:
    """Return the forest of all the trees of some."""
    sizes = np.cumsum([0, *(len(forest.feature) for forest in forests)])[:-1].astype(np.int32)
    with_size = list(zip(forests, sizes, strict=True))
    return Forest(
        np.concatenate([forest.feature for forest in forests]),
        np.concatenate([forest.threshold for forest in forests]),
        np.concatenate([forest.left + before for forest, before in with_size]),
        np.concatenate([forest.value for forest in forests]),
        np.concatenate([forest.roots + before for forest, before in with_size]),
        max(forest.depth for forest in forests),
    )


class Walker:
    """The same forest as nested tuples: for one case they are much quicker than arrays.

    A node is (feature, threshold, child for yes, child for no), a leaf (-1, its share of what is
    predicted, and nothing twice): of one length, so that one statement takes any of them apart.
    """

    def __init__(self, forest: Forest) -> None:
        feature, threshold = forest.feature.tolist(), forest.threshold.tolist()
        left, value = forest.left.tolist(), (forest.value / len(forest.roots)).tolist()
        nodes: list[Any] = [None] * len(feature)
        for place in reversed(range(len(feature))):  # children come after their parent
            if feature[place] == LEAF:
                nodes[place] = (LEAF, tuple(value[place]), None, None)
            else:
                yes, no = nodes[left[place]], nodes[left[place] + 1]
                nodes[place] = (feature[place], threshold[place], yes, no)
        self._roots = [nodes[root] for root in forest.roots.tolist()]

    def predict(self, features: Sequence[float]) -> list[float]:
        """Return the mean over trees of every output, for one case."""
        asked = array("f", features).tolist()
        found = []
        for root in self._roots:
            feature, threshold, yes, no = root
            while feature >= 0:
                feature, threshold, yes, no = no if asked[feature] > threshold else yes
            found.append(threshold)
        return list(map(sum, zip(*found, strict=True)))
