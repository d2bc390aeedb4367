"""Which model does the next step: a logistic score of what is seen, behind the budget's mask."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.serialization import DataclassState
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

NOBODY = -1
"""The action where no model can be paid for."""


@dataclass(frozen=True)
class StepPolicy(DataclassState):
    """The probability that the large model does a step, from F numbers that are seen before it."""

    weight: FloatArray
    """[F]"""

    def large(self, features: FloatArray) -> FloatArray:
        """Return the probability of the large model before the mask, [n].

        Args:
            features: [n, F]
        """
        logit = np.clip(np.einsum("nf,f->n", features, self.weight), -30.0, 30.0)
        p: FloatArray = 1.0 / (1.0 + np.exp(-logit))
        return p

    def chances(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the probability of each model under a mask, [n, 2]; both 0 where none fits."""
        return masked(self.large(features), mask)

    def surely(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the chances of who chooses the likelier model each time, [n, 2]."""
        chosen: FloatArray = (self.choose(features, mask)[:, None] == np.arange(2)).astype(float)
        return chosen

    def choose(self, features: FloatArray, mask: BoolArray) -> IntArray:
        """Return the likelier model of those that fit, [n], else `NOBODY`; of equals the small."""
        chances = self.chances(features, mask)
        return np.where(mask.any(axis=1), chances.argmax(axis=1), NOBODY)


def masked(large: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the probability of each model, [n, 2], where only some may be asked.

    >>> masked(np.array([0.3, 0.3, 0.3]), np.array([[True, True], [True, False], [False, False]]))
    array([[0.7, 0.3],
           [1. , 0. ],
           [0. , 0. ]])
    """
    either = np.stack([1.0 - large, large], axis=1) * mask
    total = either.sum(axis=1, keepdims=True)
    alone = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, either / np.where(total > 0, total, 1.0), alone)
