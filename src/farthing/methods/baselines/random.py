"""Choose among the allowed actions by lot."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class RandomPolicy(DataclassState, InRounds):
    """Every allowed action is equally likely: the floor that any policy must beat."""

    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 / (L + 1) for each action, and 1 / L for each role in the last round."""
        n_roles = traces.n_roles
        scores = np.full((len(traces), traces.horizon, n_roles + 1), 1 / (n_roles + 1))
        scores[:, -1] = [1 / n_roles] * n_roles + [0.0]
        return scores
