"""Learn which single models are worth asking, and how far to trust each model in a vote."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.base import Fitted, Progress
from farthing.methods.baselines.models import AlwaysAllPolicy, BestSinglePolicy
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import frontier, tables
from farthing.traces.arrays import TraceArrays


@dataclass(frozen=True)
class BestSingleLearner:
    """Keeps the models that no cheaper one matches on the training questions."""

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,  # noqa: ARG002 - its points are for every level
        seed: int,  # noqa: ARG002 - nothing is drawn
        progress: Progress,
    ) -> Fitted:
        """Keep the training frontier."""
        progress.update(1, 1, {})
        pool = tables(train)
        models = frontier(pool.cost.mean(axis=0), pool.right.mean(axis=0))
        return Fitted(BestSinglePolicy(models.astype(np.float64)))


@dataclass(frozen=True)
class AlwaysAllLearner:
    """Learns how far to trust each model's own signals."""

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,  # noqa: ARG002 - its points are for every level
        seed: int,  # noqa: ARG002 - nothing is drawn
        progress: Progress,
    ) -> Fitted:
        """Fit a scorer for each model."""
        progress.update(1, 1, {})
        tables(train)
        return Fitted(AlwaysAllPolicy(fit_scorers(train), train.n_roles, np.array([0.0, 1.0])))


BEST_SINGLE = BestSingleLearner()
ALWAYS_ALL = AlwaysAllLearner()
