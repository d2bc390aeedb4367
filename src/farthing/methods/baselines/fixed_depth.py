"""Run a fixed number of rounds and return every answer on the way."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class FixedDepthPolicy(DataclassState, InRounds):
    """Runs `depth` rounds whatever happens; its sets are the same at every threshold above 0.

    The largest depth is "ask everything": no policy covers more, and none costs more.
    """

    depth: int
    """Rounds to run, from 1; a depth beyond the last round runs them all."""
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role, and for `next` 1 before the depth is reached and 0 from there."""
        scores = np.ones((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, self.depth - 1 :, -1] = 0.0
        scores[:, -1, -1] = 0.0
        return scores
