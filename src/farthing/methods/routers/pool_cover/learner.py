"""Build the row of pool cover, then fit what is left to gain after each of its calls."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.fit_answer_posterior import fit_leading_answer
from farthing.methods.fit_scorer import logistic
from farthing.methods.pool import quantiles, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.methods.routers.pool_cover.policy import PoolCoverPolicy, features_after, leader
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

LEAST_COST = 1e-9
"""Dollars; no call is taken to cost less."""
STRENGTH = 0.1
"""Inverse strength of the L2 penalty on standardised features."""


@dataclass(frozen=True)
class PoolCoverLearner(PoolLearner):
    """Builds the row, then fits what is left to gain after each of its calls."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn from training questions."""
        pool = tables(train)
        leading = fit_leading_answer(train, seed)
        cost = np.maximum(pool.cost.mean(axis=0), LEAST_COST)
        row = _row(pool.right.astype(float), cost)
        turns, replies = range(len(row) - 1), leading.replies(train)
        known = [features_after(leader(leading, replies, row, k), row, train, k) for k in turns]
        seen = np.stack(known, axis=1) if known else np.zeros((len(train), 0, 4))
        mean, scale = seen.mean(axis=0), seen.std(axis=0) + 1e-9
        solved = np.logical_or.accumulate(pool.right[:, row], axis=1)
        left = ~solved[:, :-1] & solved[:, -1:]
        weights = np.array(
            [logistic((seen[:, k] - mean[k]) / scale[k], left[:, k], STRENGTH) for k in turns]
        ).reshape(-1, seen.shape[2] + 1)
        policy = PoolCoverPolicy(leading, row, cost[row], mean, scale, weights, np.empty(0))
        score = [policy.score(known[k], k) for k in turns]
        values = quantiles(np.stack(score, axis=1) if score else np.empty((len(train), 0)))
        return replace(policy, values=values)


def _row(right: FloatArray, cost: FloatArray) -> IntArray:
    """[L] each next model solves the most questions per dollar that none before it solves."""
    row: list[int] = []
    unsolved = np.ones(len(right))
    while len(row) < len(cost):
        gain = (right * unsolved[:, None]).mean(axis=0) + 1e-6
        gain[row] = -1.0
        row.append(int(np.argmax(gain / cost)))
        unsolved *= 1 - right[:, row[-1]]
    return np.array(row)


POOL_COVER = PoolCoverLearner()
