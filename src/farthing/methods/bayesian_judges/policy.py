"""Bayesian orchestration over a pool: opinions until one more is worth less than it costs.

After each reply every judge that is left has a value: what a wrong answer costs, times what its
reply adds to the chance that the best answer is right (`judges.py`). While some value exceeds its
judge's mean price, the judge with the largest value per dollar is asked; else the likeliest answer
is given. Since what a wrong answer costs divides out of that choice, all operating points follow
one order a question and stop at different places. The parameter is that cost; it is kept as minus
its inverse, minus wrong answers per dollar.

Source: arXiv 2601.01522; who is asked first among those worth their price is ours.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.bayesian_judges.judges import Judges, Replies
from farthing.methods.pool_policy import PoolPolicy
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, sweep
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

ROWS = 500
"""Questions whose replies are weighed at once, so that little memory is needed."""


@dataclass(frozen=True)
class OpinionsPolicy(PoolPolicy):
    """What is known of the judges, and their prices."""

    judges: Judges
    price_usd: FloatArray
    """[L] mean price of a reply; above 0."""
    values: FloatArray
    """[G] minus one over the cost of a wrong answer in dollars, ascending to 0."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Ask the judge worth most per dollar, if its value exceeds its price."""
        belief = self.judges.belief(self.judges.said(state.seen), state.known)
        worth = self._worth(self.judges.gain(belief), state.can_buy & ~state.known)
        line, best = worth.argmax(axis=1), worth.max(axis=1)
        first = ~state.known.any(axis=1) & (best >= 0)
        asks = first | ((best >= 0) & (-best < self.values[point]))
        return np.where(asks, line, NOTHING), asks, belief.leader

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Follow the order of each question, and stop at each point where it says so."""
        replies = self.judges.said(traces)
        offered = np.ones((len(traces), traces.n_roles), dtype=bool)
        parts = [
            self._along(
                Replies(replies.answer[first : first + ROWS], replies.bins[first : first + ROWS]),
                offered[first : first + ROWS],
            )
            for first in range(0, max(len(traces), 1), ROWS)
        ]
        order, score, leader = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sweep(traces, order, score, leader, self.values)

    def _along(self, replies: Replies, offered: BoolArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Return who is asked in which order, the score after each reply, and who leads: [n, L]."""
        n, judges = offered.shape
        known, rows = np.zeros((n, judges), dtype=bool), np.arange(n)
        order, leader = np.zeros((2, n, judges), dtype=np.int64)
        score = np.zeros((n, judges))
        worth = self._of(replies, known, offered)[0]
        for k in range(judges):
            order[:, k] = np.where(known, -np.inf, worth).argmax(axis=1)
            known[rows, order[:, k]] = True
            worth, leader[:, k] = self._of(replies, known, offered)
            score[:, k] = -np.maximum(worth.max(axis=1), 0.0)
        return order, score, leader

    def _of(
        self, replies: Replies, known: BoolArray, offered: BoolArray
    ) -> tuple[FloatArray, IntArray]:
        belief = self.judges.belief(replies, known & offered)
        return self._worth(self.judges.gain(belief), offered & ~known), belief.leader

    def _worth(self, gain: FloatArray, can: BoolArray) -> FloatArray:
        """Return the gain per dollar of each judge, [n, L]; -1 where it cannot be asked."""
        return np.where(can, gain / self.price_usd, -1.0)
