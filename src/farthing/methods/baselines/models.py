"""The yardsticks of a pool: one model for everything, and every model for everything."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.pool_policy import RowPolicy, Stages, everyone
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class BestSinglePolicy(RowPolicy):
    """One model answers everything; the operating point says which."""

    values: FloatArray
    """[G] the models, from the cheapest to the dearest."""

    def row(self, point: int) -> Sequence[int]:
        """Ask one model."""
        return [int(self.values[point])]

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh nothing."""
        return Stages(traces, lambda _, k: k)

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """End, with its answer."""
        del k
        chosen = everyone(stages.traces, int(self.values[point]))
        return chosen < 0, chosen


@dataclass(frozen=True)
class AlwaysAllPolicy(RowPolicy):
    """Every model answers everything; point 0 counts votes, point 1 weighs them."""

    scorers: Scorers
    models: int
    values: FloatArray

    def row(self, point: int) -> Sequence[int]:
        """Ask everybody."""
        del point
        return range(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh the votes."""
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on to the last; of equals, the answer of the dearest model wins."""
        p = np.clip(stages[0], 0.01, 0.99)
        votes = np.log(p / (1 - p)) if point else np.ones_like(p)
        goes_on = np.full(len(p), k + 1 < self.models)
        if goes_on.all() and len(p) > 1:
            return goes_on, np.full(len(p), -1)  # who leads on the way decides nothing
        return goes_on, _leading(stages.traces, votes)


def _leading(traces: TraceArrays, votes: FloatArray) -> IntArray:
    """Return a model that gives the answer with the most votes, [n]; -1 where nobody answers."""
    answer = traces.answer[:, 0, :]
    said = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & said[:, None, :]
    total = np.where(said, (same * votes[:, None, :]).sum(axis=2), -np.inf)
    last = traces.n_roles - 1 - np.argmax(total[:, ::-1], axis=1)
    return np.where(said.any(axis=1), last, -1)
