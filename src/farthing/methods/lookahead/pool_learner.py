"""Fit look-ahead over a pool, and who leads after any of its calls."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.methods.base import Silent
from farthing.methods.fit_answer_posterior import fit_leading_answer
from farthing.methods.lookahead.learner import LAZY_LEARNER
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.lookahead.pool_policy import LazySinglePolicy
from farthing.methods.pool import quantiles, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import TraceArrays

ALPHA = Fraction(1, 10)
"""The share of the solvable questions that training aims to miss; it moves no order."""


@dataclass(frozen=True)
class LazySingleLearner(PoolLearner):
    """Fits the policy of single calls; the thresholds are quantiles of its scores."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn from training questions."""
        tables(train)
        policy = LAZY_LEARNER.fit(train, ALPHA, seed, Silent()).policy
        if not isinstance(policy, LookaheadPolicy):
            raise TypeError("only a look-ahead policy has an order of its own")
        score = policy.followed(train).scores[:, :-1, 1]
        return LazySinglePolicy(policy, fit_leading_answer(train, seed), quantiles(-score))


LAZY_SINGLE = LazySingleLearner()
