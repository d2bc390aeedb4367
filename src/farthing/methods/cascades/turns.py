"""Models in turn, each trusted from a threshold of its own on: MiCP and Trust or Escalate."""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.methods.pool import RowPolicy, Stages, everyone, list_of
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class TurnsPolicy(RowPolicy):
    """Models in the order of asking, and a threshold for each but the last, for each point."""

    scorers: Scorers
    models: IntArray
    """[K]"""
    values: FloatArray
    """[G] what the method trades, descending."""
    thresholds: FloatArray
    """[G, K - 1]"""

    def row(self, point: int) -> Sequence[int]:
        """Ask the models in turn."""
        del point
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Read how likely each model is right."""
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the model's score is below its threshold; the last one is believed."""
        model, score = int(self.models[k]), stages[0]
        believed = k == self.thresholds.shape[1]
        goes_on = (score[:, model] < self.thresholds[point, k]) if not believed else score[:, 0] < 0
        return goes_on, everyone(stages.traces, model)
