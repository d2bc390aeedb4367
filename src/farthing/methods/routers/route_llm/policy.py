"""RouteLLM's threshold routers: one of two models is asked, by the question's embedding alone.

A router estimates the probability that the strong model would win against the weak one; above the
threshold the strong model answers. The knob is that threshold.

Source: Ong and others 2024, arXiv:2406.18665, section 4 (similarity-weighted ranking, matrix
factorisation), and the package `routellm`: a tie counts as half a win for the ranking and not at
all for the factorisation, which has no constant.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.methods.pool import PoolTables, quantiles, strongest, tables
from farthing.methods.routers.embedding import Embedding
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import FloatArray, TraceArrays

Kind = Literal["similarity", "factorisation"]
GAMMA = 10.0
"""How fast the weight of a training question falls with its distance (the paper's gamma)."""
LEAST_LOSS = 0.01
"""A weak model is not taken to lose less than this share of the answers."""
STRENGTH = 0.3
"""Inverse strength of the L2 penalty on the factors."""


@dataclass(frozen=True)
class RouteLlm:
    """Learns who wins which questions, from the embeddings of the training questions."""

    embedding: Embedding
    kind: Kind = "similarity"
    strong: str | None = None
    """The strong model; none: the most accurate one in training."""

    def fit(self, train: TraceArrays, seed: int) -> "Router":  # noqa: ARG002
        """Choose the weak model and learn which questions it loses."""
        pool = tables(train)
        strong = strongest(train, self.strong)
        weak = _weak(pool, strong)
        won = (1 + pool.right[:, strong].astype(float) - pool.right[:, weak]) / 2
        seen = self.embedding.of(train)
        weights = _factors(seen, won)
        router = Router(self.embedding, self.kind, weak, strong, seen, won, weights, np.empty(0))
        return Router(**{**vars(router), "knobs": -quantiles(-router.win(train))})


@dataclass(frozen=True)
class Router:
    """Two models and what is known of the questions that the strong one wins."""

    embedding: Embedding
    kind: Kind
    weak: int
    strong: int
    seen: FloatArray
    """[m, d] embeddings of the training questions."""
    won: FloatArray
    """[m] 1 where the strong model alone was right, 0 where the weak one was, else a half."""
    weights: FloatArray
    """[d] of the factorisation: with two models it is linear in the embedding."""
    knobs: FloatArray
    """[G] thresholds on the chance that the strong model wins, descending."""

    def win(self, traces: TraceArrays) -> FloatArray:
        """Return the estimated chance that the strong model's answer is the better one, [n]."""
        vectors = self.embedding.of(traces)
        if self.kind == "factorisation":
            return _rounded(1 / (1 + np.exp(-(vectors @ self.weights))))
        near = vectors @ self.seen.T
        near /= np.maximum(near.max(axis=1, keepdims=True), 1e-9)
        weight = GAMMA ** (1 + near)
        return _rounded((weight @ self.won) / weight.sum(axis=1))

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Ask the strong model where it is likely enough to win, else the weak one."""
        strong = self.win(traces)[:, None] >= self.knobs
        chosen = np.where(strong, self.strong, self.weak)
        made = chosen[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, self.knobs, made, chosen)


def _rounded(win: FloatArray) -> FloatArray:
    """Drop the last digits, in which a product of matrices depends on how many rows it has."""
    return np.round(win, 9)


def _factors(seen: FloatArray, won: FloatArray) -> FloatArray:
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
