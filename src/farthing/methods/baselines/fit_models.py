"""Learn which single models are worth asking, and how far to trust each model in a vote."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.baselines.models import AlwaysAllPolicy, BestSinglePolicy
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import frontier, possible_answers, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import TraceArrays


@dataclass(frozen=True)
class BestSingleLearner(PoolLearner):
    """Keeps the models that no cheaper one matches on the training questions."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Keep the training frontier."""
        pool = tables(train)
        models = frontier(pool.cost.mean(axis=0), pool.right.mean(axis=0))
        return BestSinglePolicy(models.astype(np.float64))


@dataclass(frozen=True)
class AlwaysAllLearner(PoolLearner):
    """Learns how far to trust each model's own signals, and how many answers are possible."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Fit a scorer for each model."""
        tables(train)
        points, answers = np.array([0.0, 1.0]), possible_answers(train)
        return AlwaysAllPolicy(fit_scorers(train), train.n_roles, points, answers)


BEST_SINGLE = BestSingleLearner()
ALWAYS_ALL = AlwaysAllLearner()
