"""Optimal stopping by estimated gain: go on while the rounds to come are worth their price.

Adding an answer to the set is free, so the only paid decision is `next`. The gain of going on is
P(a later round is right and nothing so far is | o_t); thresholded exactly, a calibrated estimate of
it is close to the cheapest policy there is (`docs/stopping.md`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class StoppingPolicy(InRounds):
    """Returns every answer reached; `next` scores a logistic model's estimate of the gain."""

    features: FeatureSet
    """What it sees of a round."""
    coefficients: FloatArray
    """[T - 1, F] weights of the features, a row for each round but the last."""
    intercepts: FloatArray
    """[T - 1]"""
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role and the estimated gain, in (0, 1), for `next`."""
        scores = np.ones((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, -1, -1] = 0.0
        paid = traces.horizon - 1
        seen = self.features.transform(traces)[:, :-1]
        logit = (seen * self.coefficients[:paid]).sum(axis=2) + self.intercepts[:paid]
        scores[:, :-1, -1] = 1.0 / (1.0 + np.exp(-logit))
        return scores

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays = {"coefficients": self.coefficients, "intercepts": self.intercepts}
        return arrays, {"features": self.features.to_json()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        features = FeatureSet.from_json(settings["features"])
        return cls(features, arrays["coefficients"], arrays["intercepts"])
