"""Two models in a row, the first one's confidence calibrated by isotonic regression (UCCI).

The cheap model answers; its confidence is mapped to a probability of being right; below a threshold
the dear model is asked and its answer returned. The parameter is the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import pair
from farthing.methods.pool_policy import RowPolicy, Stages, everyone, list_of
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class Isotonic:
    """A step function per model, from its score to a probability of being right."""

    at: tuple[FloatArray, ...]
    value: tuple[FloatArray, ...]

    def probability(self, score: FloatArray) -> FloatArray:
        """Return [n, L]."""
        columns = [
            np.interp(score[:, m], at, value)
            for m, (at, value) in enumerate(zip(self.at, self.value, strict=True))
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class UcciPolicy(RowPolicy):
    """Two models and the thresholds of the first one's calibrated probability."""

    scorers: Scorers
    isotonic: Isotonic
    first: int
    second: int
    values: FloatArray
    """[G] thresholds, ascending."""

    def row(self, point: int) -> Sequence[int]:
        """Ask the cheap model, then the dear one."""
        del point
        return list_of(pair(self.first, self.second))

    def stages(self, traces: TraceArrays) -> Stages:
        """Read every model's calibrated probability."""
        return Stages(traces, lambda of, _: self.isotonic.probability(self.scorers.p_right(of)))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the model is not sure enough."""
        model = self.row(point)[k]
        return stages[0][:, model] < self.values[point], everyone(stages.traces, model)
