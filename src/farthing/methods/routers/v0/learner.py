"""Learn what V_0's router knows of a pool, and let a model join it."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.estimators.fit_v0 import V0Estimator
from farthing.methods.estimators.v0 import Ability, ItemResponse
from farthing.methods.pool import SETTINGS
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.methods.routers.v0.policy import V0Policy
from farthing.traces.arrays import FloatArray, TraceArrays

PRICES = np.geomspace(30.0, 1e-3, SETTINGS - 2)
"""(1 - beta) / beta: right answers that the dearest model's price is worth; 0 and 1 beside them."""
BETAS = np.concatenate([[0.0], 1.0 / (1.0 + PRICES), [1.0]])


@dataclass(frozen=True)
class V0Learner(PoolLearner):
    """Learns directions from all models, and each one's ability from its own outcomes.

    A model that was asked a few of the questions takes part like the others.
    """

    estimator: V0Estimator = V0Estimator()  # noqa: RUF009  # it is frozen

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn from training questions.

        Raises:
            InputError: the questions have no text.
        """
        made = train.made[:, 0]
        mean = train.cost_nano[:, 0].sum(axis=0) / np.maximum(made.sum(axis=0), 1)
        return router(self.estimator.fit(train, seed), mean)


def router(found: ItemResponse, cost_nano: FloatArray) -> V0Policy:
    """Return the policy that routes by what was learned.

    Args:
        found: what was learned of the models.
        cost_nano: [L] mean price of a question.
    """
    return V0Policy(
        found.directions,
        np.array([one.mode for one in found.abilities]),
        np.array([one.spread for one in found.abilities]),
        _shares(cost_nano),
        BETAS,
    )


def with_one_more(policy: V0Policy, ability: Ability, cost_nano: FloatArray) -> V0Policy:
    """Return the policy after a model has joined, as the last one; nothing is learned again.

    Args:
        policy: routes without it.
        ability: of the model that joins.
        cost_nano: [L + 1] mean price of a question, its own last.
    """
    return replace(
        policy,
        mode=np.concatenate([policy.mode, ability.mode[None]]),
        spread=np.concatenate([policy.spread, ability.spread[None]]),
        cost=_shares(cost_nano),
    )


def _shares(cost_nano: FloatArray) -> FloatArray:
    shares: FloatArray = cost_nano / max(float(cost_nano.max()), 1.0)
    return shares


V0 = V0Learner()
