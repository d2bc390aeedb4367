"""RouteLLM's threshold routers: one of two models is asked, by the question's embedding alone.

A router estimates the probability that the strong model would win against the weak one; above the
threshold the strong model answers. The parameter is that threshold.

Source: Ong and others 2024, arXiv:2406.18665, section 4 (similarity-weighted ranking, matrix
factorisation), and the package `routellm`: a tie counts as half a win for the ranking and not at
all for the factorisation, which has no constant.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from farthing.methods.pool import PoolLearner, PoolPolicy, pool_method, quantiles, strongest, tables
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.features.question import HASHED_WORDS, embedded
from farthing_lab.methods.routers.two_models import TwoModelPolicy, weak_beside

Kind = Literal["similarity", "factorisation"]
GAMMA = 10.0
"""How fast the weight of a training question falls with its distance (the paper's gamma)."""
STRENGTH = 0.3
"""Inverse strength of the L2 penalty on the factors."""


@dataclass(frozen=True)
class RouteLlmPolicy(TwoModelPolicy):
    """Two models and what is known of the questions that the strong one wins."""

    embedding: str
    """How questions become vectors: a name of `features.question`."""
    kind: str
    """`similarity` or `factorisation`."""
    weak: int
    strong: int
    seen: FloatArray
    """[m, d] embeddings of the training questions."""
    won: FloatArray
    """[m] 1 where the strong model alone was right, 0 where the weak one was, else a half."""
    weights: FloatArray
    """[d] of the factorisation: with two models it is linear in the embedding."""
    values: FloatArray
    """[G] thresholds on the chance that the strong model wins, descending."""

    def score(self, traces: TraceArrays) -> FloatArray:
        vectors = embedded(traces, self.embedding)
        if self.kind == "factorisation":
            return np.asarray(1 / (1 + np.exp(-(vectors @ self.weights))))
        near = vectors @ self.seen.T
        near /= np.maximum(near.max(axis=1, keepdims=True), 1e-9)
        weight = GAMMA ** (1 + near)
        return np.asarray((weight @ self.won) / weight.sum(axis=1))

    @property
    def cuts(self) -> FloatArray:
        return self.values


@dataclass(frozen=True)
class RouteLlmLearner(PoolLearner):
    """Chooses the weak model and learns which questions it loses."""

    kind: Kind = "similarity"
    strong: str | None = None
    """The strong model; None: the most accurate one in training."""
    embedding: str = HASHED_WORDS
    """How questions become vectors."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool = tables(train)
        strong = strongest(train, self.strong)
        weak = weak_beside(pool, strong)
        won = (1 + pool.right[:, strong].astype(float) - pool.right[:, weak]) / 2
        seen = embedded(train, self.embedding)
        weights = factors(seen, won)
        policy = RouteLlmPolicy(
            self.embedding, self.kind, weak, strong, seen, won, weights, np.empty(0)
        )
        return replace(policy, values=-quantiles(-policy.rounded(train)))


def factors(seen: FloatArray, won: FloatArray) -> FloatArray:
    """Return what of a question's vector speaks for the strong model, [d]; 0 without a loser."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - training alone

    clear = won != 0.5
    if not 0 < won[clear].sum() < clear.sum():
        return np.zeros(seen.shape[1])
    model = LogisticRegression(C=STRENGTH, fit_intercept=False, max_iter=1_000)
    weights: FloatArray = model.fit(seen[clear], won[clear] > 0).coef_[0]
    return weights


ROUTE_LLM = pool_method(
    name="route-llm",
    label="RouteLLM (similarity)",
    meaning="One of two models is asked, by which of them won the training questions most like it",
    paper="2406.18665",
    policy=RouteLlmPolicy,
    learner=RouteLlmLearner(),
    needs=("pool", "text"),
    tried_for=frozenset({"one"}),
    place=89,
)
ROUTE_LLM_FACTORISATION = pool_method(
    name="route-llm-factorisation",
    label="RouteLLM (factorisation)",
    meaning="One of two models is asked, by a linear score of the question's text",
    paper="2406.18665",
    policy=RouteLlmPolicy,
    learner=RouteLlmLearner("factorisation"),
    needs=("pool", "text"),
    place=90,
)
