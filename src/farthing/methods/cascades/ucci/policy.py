"""Two models in a row, the first one's confidence calibrated by isotonic regression (UCCI).

The cheap model answers; its confidence is mapped to a probability of being right by isotonic
regression; below a threshold the dear model is asked and its answer returned.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

from farthing.methods.pool import PoolTables, cheapest_first, pair, strongest, tables
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.operating_points import OperatingPoints, sweep
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class Isotonic:
    """A step function per model, from its score to a probability of being right."""

    at: tuple[FloatArray, ...]
    value: tuple[FloatArray, ...]

    @classmethod
    def fit(cls, score: FloatArray, pool: PoolTables) -> "Isotonic":
        """Fit one a model; score and grades are [n, L]."""
        fits = [
            IsotonicRegression(out_of_bounds="clip").fit(score[:, m], pool.right[:, m])
            for m in range(score.shape[1])
        ]
        return cls(
            tuple(fit.X_thresholds_ for fit in fits), tuple(fit.y_thresholds_ for fit in fits)
        )

    def probability(self, score: FloatArray) -> FloatArray:
        """Return [n, L]."""
        columns = [
            np.interp(score[:, m], at, value)
            for m, (at, value) in enumerate(zip(self.at, self.value, strict=True))
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Ucci:
    """The first model is the one that saves most at about the second one's training accuracy."""

    strong: str | None = None
    """The model that is asked second; none: the most accurate one in training."""

    def fit(self, train: TraceArrays, seed: int) -> "TwoModels":  # noqa: ARG002
        """Calibrate every model, choose the first one; its steps are the thresholds."""
        pool, scorers = tables(train), fit_scorers(train)
        second = strongest(train, self.strong)
        score = scorers.p_right(train)
        isotonic = Isotonic.fit(score, pool)
        first = cheapest_first(pool, isotonic.probability(score), second)
        return TwoModels(scorers, isotonic, first, second, np.append(isotonic.value[first], np.inf))


@dataclass(frozen=True)
class TwoModels:
    """Two models and the thresholds of the first one's calibrated probability."""

    scorers: Scorers
    isotonic: Isotonic
    first: int
    second: int
    knobs: FloatArray
    """[G] ascending."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Ask the first, and the second where the first is not sure enough."""
        p = self.isotonic.probability(self.scorers.p_right(traces))
        order = pair(self.first, self.second)
        score = p[:, order]
        return sweep(
            traces, order, score, np.broadcast_to(order, score.shape), np.unique(self.knobs)
        )
