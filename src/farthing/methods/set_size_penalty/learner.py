"""Learn which answers are worth returning, on top of what to buy."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.methods.base import Fitted, Progress
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.set_size_penalty.policy import SetSizePenaltyPolicy, evidence
from farthing.traces.arrays import NO_ANSWER, TraceArrays

DEFAULT = LookaheadConfig()


@dataclass(frozen=True)
class SetSizePenaltyLearner:
    """Fits what to buy as `LookaheadLearner` does, and P(right) of each answer that is bought."""

    config: LookaheadConfig = DEFAULT
    set_size_price: float = 0.86
    """Price of an answer in the set, in mean costs of a round (lambda of the paper)."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train on recorded questions for miscoverage `alpha`."""
        policy = LookaheadLearner(self.config).fit(train, alpha, seed, progress).policy
        if not isinstance(policy, LookaheadPolicy):
            raise TypeError("only a look-ahead policy can be made thrifty")
        along = policy.followed(train)
        laid, scores = along.traces, along.scores
        given = laid.answer != NO_ANSWER
        model = LogisticRegression(C=1.0, solver="newton-cholesky")
        model.fit(evidence(laid, scores[:, :, -1])[given], laid.correct[given])
        weights = np.append(model.coef_[0], model.intercept_[0])
        price = self.set_size_price * float(train.round_cost_nano.mean())
        return Fitted(SetSizePenaltyPolicy(policy, weights, price))


LOOKAHEAD_LAMBDA = SetSizePenaltyLearner()
