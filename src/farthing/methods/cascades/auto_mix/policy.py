"""AutoMix: a small model answers, a verifier doubts, a POMDP decides whether to go up a size.

Which of the models are right is the hidden state; the verifier's confidence in each reply, in bins,
is all that is observed. The policy maximises P(right) minus a price times the cost, exactly, by
backward induction over the observations of a row of models. The parameter is that price.

Source: Aggarwal, Madaan and others 2024, arXiv:2310.12963, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.methods.pool_policy import RowPolicy, Stages, everyone, list_of
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

Go = tuple[BoolArray, ...]
"""Whether to ask the next model after the first, second, ... observation: [BINS] * k each."""


@dataclass(frozen=True)
class AutoMixPolicy(RowPolicy):
    """A row of models and what to do after each observation, for each price."""

    scorers: Scorers
    edges: FloatArray
    """[BINS - 1, L] between the bins of each model's verifier."""
    values: FloatArray
    """[G] price of a dollar in right answers, descending."""
    rows: tuple[IntArray, ...]
    """[G] the models of each point, in the order of asking."""
    plans: tuple[Go, ...]
    """[G]"""

    def row(self, point: int) -> Sequence[int]:
        """Ask the models of the point's row."""
        return list_of(self.rows[point])

    def stages(self, traces: TraceArrays) -> Stages:
        """Read the bin of each model's verifier."""
        return Stages(traces, lambda of, _: bins_of(self.scorers.p_right(of), self.edges))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the plan says so of all that was observed."""
        row, go, observed = self.row(point), self.plans[point], stages[0]
        chosen = everyone(stages.traces, row[k])
        if k >= len(go):
            return chosen < 0, chosen
        return go[k][tuple(observed[:, m] for m in row[: k + 1])], chosen


def bins_of(score: FloatArray, edges: FloatArray) -> IntArray:
    """[n, L] which bin each score falls into."""
    bins: IntArray = (score[None] >= edges[:, None]).sum(axis=0)
    return bins
