"""Policies that choose between two models of a pool."""

from abc import abstractmethod
from typing import final

import numpy as np

from farthing.methods.pool import LEAST_LOSS, PoolPolicy, PoolTables
from farthing.process.base import State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


class TwoModelPolicy(PoolPolicy):
    """Asks one of two models, by a score of the question alone."""

    weak: int
    strong: int

    @abstractmethod
    def score(self, traces: TraceArrays) -> FloatArray:
        """Return how much speaks for the strong model, [n]; nobody's reply is read."""

    @property
    @abstractmethod
    def cuts(self) -> FloatArray:
        """[G] the least score at which the strong model is asked, at each operating point."""

    @final
    def rounded(self, traces: TraceArrays) -> FloatArray:
        """Return the scores without the digits in which a product of matrices depends on n."""
        return np.round(self.score(traces), 9)

    @final
    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Ask the strong model where enough speaks for it, else the weak one."""
        score = self.rounded(state.recorded)
        chosen = np.where(score >= self.cuts[point], self.strong, self.weak)
        rows = np.arange(len(state))
        asks = ~state.known[rows, chosen] & state.can_buy[rows, chosen]
        return np.where(asks, chosen, -1), asks, chosen

    @final
    def points(self, traces: TraceArrays) -> OperatingPoints:
        score = self.rounded(traces)[:, None]
        chosen = np.where(score >= self.cuts, self.strong, self.weak)
        made = chosen[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, self.values, made, chosen)


def weak_beside(pool: PoolTables, strong: int) -> int:
    """Return the model that saves most money for each answer that it gets wrong instead."""
    cost, right = pool.cost.mean(axis=0), pool.right.mean(axis=0)
    saved = np.maximum(cost[strong] - cost, 0)
    lost = np.maximum(right[strong] - right, 0) + LEAST_LOSS
    return int(np.argmax(saved / lost))
