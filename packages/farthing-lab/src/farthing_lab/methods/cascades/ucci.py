"""Two models in a row, the first one's confidence calibrated by isotonic regression (UCCI).

The cheap model answers; its confidence is mapped to a probability of being right; below a threshold
the dear model is asked and its answer returned. The parameter is the threshold.

Source: arXiv 2605.18796.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    PoolTables,
    RowPolicy,
    Stages,
    cheapest_first,
    everyone,
    list_of,
    pair,
    pool_method,
    strongest,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
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
        del point
        return list_of(pair(self.first, self.second))

    def stages(self, traces: TraceArrays) -> Stages:
        return Stages(traces, lambda of, _: self.isotonic.probability(self.scorers.p_right(of)))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the model is not sure enough."""
        model = self.row(point)[k]
        return stages[0][:, model] < self.values[point], everyone(stages.traces, model)


@dataclass(frozen=True)
class UcciLearner(PoolLearner):
    """The first model is the one that saves most at about the second one's training accuracy."""

    strong: str | None = None
    """The model that is asked second; None: the most accurate one in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool, scorers = tables(train), fit_scorers(train)
        second = strongest(train, self.strong)
        score = scorers.p_right(train)
        isotonic = fit_isotonic(score, pool)
        first = cheapest_first(pool, isotonic.probability(score), second)
        values = np.unique(np.append(isotonic.value[first], np.inf))
        return UcciPolicy(scorers, isotonic, first, second, values)


def fit_isotonic(score: FloatArray, pool: PoolTables) -> Isotonic:
    """Fit one step function a model; score and grades are [n, L]."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - training alone

    fits = [
        IsotonicRegression(out_of_bounds="clip").fit(score[:, m], pool.right[:, m])
        for m in range(score.shape[1])
    ]
    return Isotonic(
        tuple(fit.X_thresholds_.astype(np.float64) for fit in fits),
        tuple(fit.y_thresholds_.astype(np.float64) for fit in fits),
    )


UCCI = pool_method(
    name="ucci",
    label="UCCI",
    meaning="The small model's confidence, calibrated, decides whether to ask the large one",
    policy=UcciPolicy,
    learner=UcciLearner(),
    paper="2605.18796",
    needs=("pool", "confidences"),
    imports=(
        "sklearn.isotonic",
        "sklearn.linear_model",
    ),
    tried_for=frozenset({"one"}),
    place=84,
)
