"""Ask the cheapest model; the strongest answers where it says nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    RowPolicy,
    Stages,
    everyone,
    list_of,
    pair,
    pool_method,
    strongest,
    tables,
)
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class SilentFirstPolicy(RowPolicy):
    """Two models, and one operating point."""

    models: IntArray
    values: FloatArray

    def row(self, point: int) -> Sequence[int]:
        """Ask the cheap one, then the strong one."""
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Look whether anything was said."""
        model = self.models
        return Stages(traces, lambda of, k: of.answer[:, 0, model[k]] == NO_ANSWER)

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where nothing was said."""
        return stages[k], everyone(stages.traces, int(self.models[k]))


@dataclass(frozen=True)
class SilentFirstLearner(PoolLearner):
    """Looks prices and accuracy up."""

    strong: str | None = None

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Choose the two."""
        cheap = int(tables(train).cost.mean(axis=0).argmin())
        return SilentFirstPolicy(pair(cheap, strongest(train, self.strong)), np.ones(1))


SILENT_FIRST = pool_method(
    name="silent-first",
    label="Silent first",
    meaning="Asks the cheapest model; the strongest answers where it says nothing",
    policy=SilentFirstPolicy,
    learner=SilentFirstLearner(),
    place=99,
)
