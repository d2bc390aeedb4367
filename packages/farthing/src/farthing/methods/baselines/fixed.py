"""Fixed depths, which methods in rounds are held against, and what learns nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.base import Dataset, Fitted, Method, Progress, Variant
from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds, Policy
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


@dataclass(frozen=True)
class FixedLearner:
    """Hands back the policy that it was given, whatever the traces."""

    policy: Policy

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Return the policy."""
        progress.update(1, 1, {})
        return Fitted(self.policy)


def _depths(dataset: Dataset) -> Sequence[Variant]:
    return [
        Variant(f"fixed-{depth}", f"Fixed depth {depth}", FixedLearner(FixedDepthPolicy(depth)))
        for depth in range(1, dataset.arranged("rounds").horizon + 1)
    ]


FIXED = Method(
    name="fixed",
    label="Fixed depth",
    meaning="Runs 1, 2, ... or all rounds, whatever happens",
    policy=FixedDepthPolicy,
    action_spaces=("rounds", "cascade"),
    calibration="none",
    varies_with=frozenset(),
    variants=_depths,
    tried_for=frozenset({"one", "set"}),
    place=20,
)
