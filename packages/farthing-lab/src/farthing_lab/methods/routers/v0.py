"""V_0's router: ask the model with the largest beta p + (1 - beta) (1 - cost).

p is the estimated probability that a model is right on a question; its cost is its mean price as a
share of the dearest model's. The parameter is beta: at 1 the likeliest model is asked, at 0 the
cheapest. Of equals the likelier one is asked, then the earlier.

Source: V_0, arXiv 2602.03584. The estimate is that of `methods/estimators/v0.py`.
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.pool import SETTINGS, PoolLearner, PoolPolicy, pool_method
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.features.question import QuestionFeatures, embedded
from farthing_lab.methods.estimators.v0 import (
    Ability,
    Directions,
    ItemResponse,
    V0Estimator,
    chance,
)

TIE = 1e-12
"""What a certain answer is worth beside the score, so that it decides between equals alone."""
PRICES = np.geomspace(30.0, 1e-3, SETTINGS - 2)
"""(1 - beta) / beta: right answers that the dearest model's price is worth; 0 and 1 beside them."""
BETAS = np.concatenate([[0.0], 1.0 / (1.0 + PRICES), [1.0]])


@dataclass(frozen=True)
class V0Policy(PoolPolicy):
    """What is known of the models, and beta at each operating point."""

    directions: Directions
    mode: FloatArray
    """[L, K] abilities."""
    spread: FloatArray
    """[L, K, K] how far each is known."""
    cost: FloatArray
    """[L] mean price, as a share of the dearest one."""
    values: FloatArray
    """[G] beta, ascending."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Of questions that it learned from; it decides by them."""
        return self.directions.groups

    def success(self, traces: TraceArrays) -> FloatArray:
        """Return how likely each model is right on each question, [n, L]."""
        embedded(traces)  # refuses what has no text
        z = self.directions.coordinates(QuestionFeatures.of(traces))
        known = zip(self.mode, self.spread, strict=True)
        each = [chance(z, Ability(*one), 0.0, self.directions.own) for one in known]
        return np.stack(each, axis=1)

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        done = state.known.any(axis=1)
        beta = self.values[point : point + 1]
        best = chosen(self.success(state.recorded), self.cost, beta, state.can_buy)[:, 0]
        asks = np.asarray(~done & state.can_buy.any(axis=1))
        single = np.where(done, state.known.argmax(axis=1), -1)
        return np.where(asks, best, NOTHING), asks, single

    def points(self, traces: TraceArrays) -> OperatingPoints:
        offered = np.ones((len(traces), traces.n_roles), dtype=bool)
        best = chosen(self.success(traces), self.cost, self.values, offered)
        made = best[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, self.values, made, best)


def chosen(success: FloatArray, cost: FloatArray, beta: FloatArray, offered: BoolArray) -> IntArray:
    """Return argmax of beta p + (1 - beta) (1 - cost) over the models on offer, [n, G].

    Args:
        success: [n, L]
        cost: [L] in [0, 1].
        beta: [G] in [0, 1].
        offered: [n, L]

    >>> p, cost = np.array([[0.5, 0.9]]), np.array([0.1, 1.0])
    >>> chosen(p, cost, np.array([0.0, 0.5, 0.8, 1.0]), np.ones((1, 2), dtype=bool)).tolist()
    [[0, 0, 1, 1]]
    """
    weight = beta[:, None]
    best = np.zeros((len(success), len(beta)), dtype=np.int64)
    for first in range(0, len(success), 1_000):  # [rows, G, L] stays small
        rows = slice(first, first + 1_000)
        p = success[rows, None]
        score = np.round(weight * p + (1.0 - weight) * (1.0 - cost), 9) + TIE * p
        best[rows] = np.where(offered[rows, None], score, -np.inf).argmax(axis=2)
    return best


@dataclass(frozen=True)
class V0Learner(PoolLearner):
    """Learns directions from all models, and each one's ability from its own outcomes.

    A model that was asked a few of the questions takes part like the others.
    """

    estimator: V0Estimator = V0Estimator()  # noqa: RUF009  # it is frozen

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
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


V0 = pool_method(
    name="v0",
    label="V_0 (routing)",
    meaning="One model is asked, by estimated success and cost; a few outcomes of each are enough",
    paper="2602.03584",
    policy=V0Policy,
    learner=V0Learner(),
    needs=("pool", "text"),
    place=91,
)
