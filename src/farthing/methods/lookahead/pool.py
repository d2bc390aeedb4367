"""The default policy `lazy` as a rival among others: its own order of a pool, one knob.

The order of purchases and what each is worth come from the policy; the knob is the worth below
which nothing more is bought. Where a single answer is asked for, it is the leading one.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from farthing.methods.base import Silent
from farthing.methods.leading_answer import LeadingAnswer
from farthing.methods.lookahead.learner import LAZY, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.pool import quantiles, tables
from farthing.process.operating_points import OperatingPoints, sweep
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

ALPHA = Fraction(1, 10)
"""The share of the solvable questions that training aims to miss; it moves no order."""


@dataclass(frozen=True)
class PoolLookahead:
    """Fits the default policy of single calls, and who leads after any of them."""

    def fit(self, train: TraceArrays, seed: int) -> "LookaheadRow":
        """Learn from training questions; the thresholds are quantiles of what calls are worth."""
        tables(train)
        fitted = LookaheadLearner(LAZY).fit(train, ALPHA, seed, Silent())
        policy = cast("LookaheadPolicy", fitted.policy)
        worth = policy.order(train).worth[:, 1:]
        return LookaheadRow(policy, LeadingAnswer.fit(train, seed), quantiles(-worth))


@dataclass(frozen=True)
class LookaheadRow:
    """A policy with an order of its own for each question."""

    policy: LookaheadPolicy
    leading: LeadingAnswer
    knobs: FloatArray
    """[G] of minus the gain per nano-dollar, ascending."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Buy in the policy's order while the next call is worth it."""
        order = self.policy.order(traces)
        ends = np.zeros((len(traces), 1))
        score = np.concatenate([-order.worth[:, 1:], ends], axis=1)
        return sweep(traces, order.line, score, self._leaders(order.line, traces), self.knobs)

    def _leaders(self, line: IntArray, traces: TraceArrays) -> IntArray:
        """[n, L] who gives the leading answer after each call."""
        replies = self.leading.replies(traces)
        place = line.argsort(axis=1)
        steps = range(line.shape[1])
        return np.stack([self.leading.after(replies, place <= k).model for k in steps], axis=1)
