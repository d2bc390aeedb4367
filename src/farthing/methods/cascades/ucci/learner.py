"""Calibrate every model by isotonic regression, and choose the first of two."""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

from farthing.methods.cascades.ucci.policy import Isotonic, UcciPolicy
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import PoolTables, cheapest_first, strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class UcciLearner(PoolLearner):
    """The first model is the one that saves most at about the second one's training accuracy."""

    strong: str | None = None
    """The model that is asked second; None: the most accurate one in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Calibrate every model, choose the first one; its steps are the thresholds."""
        pool, scorers = tables(train), fit_scorers(train)
        second = strongest(train, self.strong)
        score = scorers.p_right(train)
        isotonic = fit_isotonic(score, pool)
        first = cheapest_first(pool, isotonic.probability(score), second)
        values = np.unique(np.append(isotonic.value[first], np.inf))
        return UcciPolicy(scorers, isotonic, first, second, values)


def fit_isotonic(score: FloatArray, pool: PoolTables) -> Isotonic:
    """Fit one step function a model; score and grades are [n, L]."""
    fits = [
        IsotonicRegression(out_of_bounds="clip").fit(score[:, m], pool.right[:, m])
        for m in range(score.shape[1])
    ]
    return Isotonic(
        tuple(fit.X_thresholds_.astype(np.float64) for fit in fits),
        tuple(fit.y_thresholds_.astype(np.float64) for fit in fits),
    )


UCCI = UcciLearner()
