"""FrugalGPT's learned cascade: which models to ask, in which order, and when to believe them.

A scorer judges each reply; the cascade returns the first reply whose score reaches its model's
threshold. List and thresholds maximise training accuracy at a mean cost; the parameter is that
cost.

Source: Chen, Zaharia and Zou 2023, arXiv:2305.05176, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.methods.pool_policy import RowPolicy, Stages, everyone
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class FrugalGptPolicy(RowPolicy):
    """A list of three models and two thresholds for each point; the last model is believed."""

    scorers: Scorers
    models: IntArray
    """[G, 3]; a shorter list repeats its last model."""
    thresholds: FloatArray
    """[G, 2]; minus infinity where the list ends."""
    values: FloatArray
    """[G] mean cost on the training questions, in dollars."""

    def row(self, point: int) -> Sequence[int]:
        """Ask the models of the point's list."""
        return list(dict.fromkeys(self.models[point].tolist()))

    def stages(self, traces: TraceArrays) -> Stages:
        """Read how likely each model is right."""
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the score does not reach the model's threshold."""
        model, score = int(self.models[point, k]), stages[0]
        goes_on = score[:, model] < self.thresholds[point, min(k, 1)]
        return goes_on, everyone(stages.traces, model)
