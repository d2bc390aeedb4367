"""RouteLLM's threshold routers: one of two models is asked, by the question's embedding alone.

A router estimates the probability that the strong model would win against the weak one; above the
threshold the strong model answers. The parameter is that threshold.

Source: Ong and others 2024, arXiv:2406.18665, section 4 (similarity-weighted ranking, matrix
factorisation), and the package `routellm`: a tie counts as half a win for the ranking and not at
all for the factorisation, which has no constant.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.features.question_text import embedded
from farthing.methods.pool_policy import PoolPolicy
from farthing.process.base import State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

Kind = Literal["similarity", "factorisation"]
GAMMA = 10.0
"""How fast the weight of a training question falls with its distance (the paper's gamma)."""


@dataclass(frozen=True)
class RouteLlmPolicy(PoolPolicy):
    """Two models and what is known of the questions that the strong one wins."""

    embedding: str
    """How questions become vectors: a name of `features.question_text`."""
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

    def win(self, traces: TraceArrays) -> FloatArray:
        """Return the estimated chance that the strong model's answer is the better one, [n].

        Raises:
            InputError: the questions have no text.
        """
        vectors = embedded(traces, self.embedding)
        if self.kind == "factorisation":
            return _rounded(1 / (1 + np.exp(-(vectors @ self.weights))))
        near = vectors @ self.seen.T
        near /= np.maximum(near.max(axis=1, keepdims=True), 1e-9)
        weight = GAMMA ** (1 + near)
        return _rounded((weight @ self.won) / weight.sum(axis=1))

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Ask the strong model where it is likely enough to win, else the weak one."""
        chosen = self._chosen(state.recorded, point)
        rows = np.arange(len(state))
        asks = ~state.known[rows, chosen] & state.can_buy[rows, chosen]
        return np.where(asks, chosen, -1), asks, chosen

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Route every question at every threshold."""
        win = self.win(traces)[:, None]
        chosen = np.where(win >= self.values, self.strong, self.weak)
        made = chosen[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, self.values, made, chosen)

    def _chosen(self, traces: TraceArrays, point: int) -> IntArray:
        return np.where(self.win(traces) >= self.values[point], self.strong, self.weak)


def _rounded(win: FloatArray) -> FloatArray:
    """Drop the last digits, in which a product of matrices depends on how many rows it has."""
    return np.round(win, 9)
