"""Learn who wins which questions, from the embeddings of the training questions."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.features.question_text import HASHED_WORDS, embedded
from farthing.methods.pool import PoolTables, quantiles, strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.methods.routers.route_llm.policy import Kind, RouteLlmPolicy
from farthing.traces.arrays import FloatArray, TraceArrays

LEAST_LOSS = 0.01
"""A weak model is not taken to lose less than this share of the answers."""
STRENGTH = 0.3
"""Inverse strength of the L2 penalty on the factors."""


@dataclass(frozen=True)
class RouteLlmLearner(PoolLearner):
    """Chooses the weak model and learns which questions it loses."""

    kind: Kind = "similarity"
    strong: str | None = None
    """The strong model; None: the most accurate one in training."""
    embedding: str = HASHED_WORDS
    """How questions become vectors."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn from training questions.

        Raises:
            InputError: the questions have no text.
        """
        pool = tables(train)
        strong = strongest(train, self.strong)
        weak = _weak(pool, strong)
        won = (1 + pool.right[:, strong].astype(float) - pool.right[:, weak]) / 2
        seen = embedded(train, self.embedding)
        weights = factors(seen, won)
        policy = RouteLlmPolicy(
            self.embedding, self.kind, weak, strong, seen, won, weights, np.empty(0)
        )
        return replace(policy, values=-quantiles(-policy.win(train)))


def factors(seen: FloatArray, won: FloatArray) -> FloatArray:
    """Return what of a question's vector speaks for the strong model, [d]; 0 without a loser."""
    clear = won != 0.5
    if not 0 < won[clear].sum() < clear.sum():
        return np.zeros(seen.shape[1])
    model = LogisticRegression(C=STRENGTH, fit_intercept=False, max_iter=1_000)
    weights: FloatArray = model.fit(seen[clear], won[clear] > 0).coef_[0]
    return weights


def _weak(pool: PoolTables, strong: int) -> int:
    """Return the model that saves most money for each answer that it gets wrong instead."""
    cost, right = pool.cost.mean(axis=0), pool.right.mean(axis=0)
    saved = np.maximum(cost[strong] - cost, 0)
    lost = np.maximum(right[strong] - right, 0) + LEAST_LOSS
    return int(np.argmax(saved / lost))


ROUTE_LLM = RouteLlmLearner()
ROUTE_LLM_FACTORISATION = RouteLlmLearner("factorisation")
