"""Stop a thought once its answer has stayed the same for k cuts: what people write first."""

from dataclasses import dataclass

import numpy as np

from farthing.features.rounds import unchanged
from farthing.methods.base import Method
from farthing.methods.baselines.fixed import FixedLearner
from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class RepeatsPolicy(DataclassState, InRounds):
    """Thinks on while the answer has stayed for fewer than k cuts; the threshold says k."""

    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for the answer and 1 / (k + 1) for `next`, where it has stayed for k cuts.

        A threshold in (1 / (k + 1), 1 / k] stops at k; where a cut gives no answer, k is 0.
        """
        scores = np.ones((len(traces), traces.horizon, 2))
        scores[:, :, 1] = 1.0 / (1.0 + unchanged(traces))
        scores[:, -1, 1] = 0.0
        return scores


REPEATS = Method(
    name="repeats",
    label="Answer repeats",
    meaning="Stops a thought once its answer has stayed the same for k cuts",
    policy=RepeatsPolicy,
    learner=FixedLearner(RepeatsPolicy()),
    action_spaces=("cuts",),
    varies_with=frozenset(),
    tried_for=frozenset({"one"}),
    place=61,
)
