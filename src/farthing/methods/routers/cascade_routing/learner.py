"""Fit the Gaussian over grades and scores that cascade routing decides by."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.methods.routers.cascade_routing.policy import CascadeRoutingPolicy
from farthing.traces.arrays import TraceArrays

PRICES = np.append(np.geomspace(3e4, 30.0, 29), 0.0)
"""What a dollar costs in right answers, at each setting."""
DRAWS = 32
"""Normal draws that the expected best quality of a set is averaged over."""
SHRINK = 0.1
"""Weight of the diagonal in the estimated covariance."""


@dataclass(frozen=True)
class CascadeRoutingLearner(PoolLearner):
    """Fits the Gaussian and the mean costs."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn means and covariances of grades and scores."""
        pool, scorers = tables(train), fit_scorers(train)
        both = np.concatenate([pool.right.astype(float), scorers.p_right(train)], axis=1)
        covariance = np.cov(both, rowvar=False)
        covariance = (1 - SHRINK) * covariance + np.diag(SHRINK * np.diag(covariance) + 1e-6)
        draws = np.random.default_rng(seed).normal(size=(DRAWS, train.n_roles))
        mean, cost = both.mean(axis=0), pool.cost.mean(axis=0)
        return CascadeRoutingPolicy(scorers, mean, covariance, cost, draws, PRICES)


CASCADE_ROUTING = CascadeRoutingLearner()
