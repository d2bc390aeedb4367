"""Look-ahead over a pool with one answer: its own order, and the leading answer where it ends.

The order of purchases and what each is worth come from the policy `lazy`; the parameter is the
worth below which nothing more is bought. The single answer is the leading one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import LAZY_LEARNER
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.pool import PoolLearner, PoolPolicy, pool_method, quantiles, tables
from farthing.methods.scorer import AnswerPosterior, fit_leading_answer
from farthing.methods.serialization import finite, rebuilt, state_of, under
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

ALPHA = Fraction(1, 10)
"""The share of the solvable questions that training aims to miss; it moves no order."""


@dataclass(frozen=True)
class LazySinglePolicy(PoolPolicy):
    """A policy with an order of its own for each question."""

    inner: LookaheadPolicy
    leading: AnswerPosterior
    values: FloatArray
    """[G] of minus the score of going on, ascending."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        decision = self.inner.decide(state)
        wanted = -decision.go_on < self.values[point]
        replies = self.leading.replies(state.seen)
        single = self.leading.after(replies, state.known).model
        return decision.line, wanted & (decision.line != NOTHING), single

    def points(self, traces: TraceArrays) -> OperatingPoints:
        along = self.inner.followed(traces)
        line, minus = along.calls[:, :, 0], -along.scores[:, :-1, 1]
        ends = along.bought.sum(axis=1)
        worst = np.maximum.accumulate(minus, axis=1)[:, None]
        stop = (worst < self.values[:, None]).sum(axis=2)
        stop = np.minimum(stop, ends[:, None] - 1)
        rows = np.arange(len(traces))[:, None]
        place = np.full((len(traces), traces.n_roles), traces.n_roles)
        where, steps = np.nonzero(along.bought)
        place[where, line[where, steps]] = steps
        made = place[:, None, :] <= stop[:, :, None]
        replies, calls = self.leading.replies(traces), range(along.bought.shape[1])
        leaders = np.stack([self.leading.after(replies, place <= k).model for k in calls], axis=1)
        return of_calls(traces, self.values, made, leaders[rows, np.maximum(stop, 0)])

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        theirs, inner = self.inner.to_state()
        arrays, settings = state_of(self.leading)
        own = {f"leading.{name}": values for name, values in arrays.items()}
        arrays = own | {f"inner.{name}": values for name, values in theirs.items()}
        return arrays | {"values": finite(self.values)}, {"inner": inner, "leading": settings}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        inner = LookaheadPolicy.from_state(under("inner.", arrays), settings["inner"])
        leading = rebuilt(AnswerPosterior, under("leading.", arrays), settings["leading"])
        return cls(inner, leading, arrays["values"])


@dataclass(frozen=True)
class LazySingleLearner(PoolLearner):
    """Fits the policy of single calls; the thresholds are quantiles of its scores."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        tables(train)
        policy = LAZY_LEARNER.fit(train, ALPHA, seed, Silent()).policy
        if not isinstance(policy, LookaheadPolicy):
            raise TypeError("only a look-ahead policy has an order of its own")
        score = policy.followed(train).scores[:, :-1, 1]
        return LazySinglePolicy(policy, fit_leading_answer(train, seed), quantiles(-score))


LAZY_SINGLE = pool_method(
    name="lazy-single",
    label="Lazy, one answer",
    meaning="Buys as lazy does, and answers with the one that the replies make likeliest",
    policy=LazySinglePolicy,
    learner=LazySingleLearner(),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    place=79,
)
