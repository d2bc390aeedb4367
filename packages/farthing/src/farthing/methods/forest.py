"""A forest of regression trees as plain arrays: no scikit-learn where it serves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import FloatArray, IntArray

Nodes = NDArray[np.int32]
LEAF = -1
"""What stands for the feature of a node that asks nothing more."""
BLOCK = 1_024
"""Cases that move through all trees at a time."""


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

    @cached_property
    def _ways(self) -> tuple[IntArray, NDArray[np.float32], IntArray]:
        """Feature, threshold and node for yes, ready to walk by: nothing is above a leaf's."""
        limit = np.where(self.feature == LEAF, np.float32(np.inf), self.threshold)
        return self.feature.astype(np.int64), limit, self.left.astype(np.int64)

    def predict(self, features: FloatArray) -> FloatArray:
        """Return the mean over trees, [R, O], of cases with features [R, F]."""
        asked = features.astype(np.float32)
        parts = [
            self._total(asked[start : start + BLOCK])
            for start in range(0, max(len(asked), 1), BLOCK)
        ]
        return np.concatenate(parts) / len(self.roots)

    def _total(self, asked: NDArray[np.float32]) -> FloatArray:
        """Return the sum over trees, [R, O], each added to those before it."""
        feature, limit, left = self._ways
        flat, row = asked.reshape(-1), np.arange(len(asked)) * asked.shape[1]
        node = np.repeat(self.roots.astype(np.int64)[:, None], len(asked), axis=1)
        for _ in range(self.depth):
            node = left[node] + (flat[row + feature[node]] > limit[node])
        total: FloatArray = np.add.accumulate(self.value[node], axis=0)[-1]
        return total


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
