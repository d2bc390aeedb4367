"""What pool methods share: policies with operating points, learners, tables to learn from.

A pool method asks models side by side, [n, 1, L], one after another, and gives a single answer. Its
operating points are numbered from the cheapest on. All answers that were paid for are its set.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Protocol, final, runtime_checkable

import numpy as np

from farthing.errors import InputError, UnknownNameError
from farthing.methods.base import Fitted, Method, Progress
from farthing.methods.serialization import DataclassState
from farthing.process.action_space import SpaceName
from farthing.process.base import NOTHING, Decision, State
from farthing.process.batch_replay import descending_grid, point_at
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

SLACK = 0.02
"""Accuracy that a first model may cost in training when first models are compared."""
LEAST_LOSS = 0.01
"""A weak model is not taken to lose less than this share of the answers."""
SETTINGS = 60
"""Operating points, at most."""


pool_method = partial(
    Method,
    action_spaces=("pool",),
    needs=("pool",),
    imports=("sklearn.linear_model",),
    varies_with=frozenset({"seed"}),
)
"""The card of a pool method; it says for itself what differs."""


class PoolPolicy(DataclassState, ABC):
    """A policy over a pool of models, with operating points of its own."""

    space: ClassVar[SpaceName] = "calls"
    stochastic: ClassVar[bool] = False

    values: FloatArray
    """[G] value of its parameter at each operating point, from the cheapest, in its own unit."""

    @property
    @final
    def parameters(self) -> FloatArray:
        """[G] its operating points as numbers in (0, 1], from the cheapest, 1, falling."""
        return descending_grid(len(self.values))

    @final
    def decide(self, state: State) -> Decision:
        """Decide after a call, at the operating point that the state asks for."""
        line, go_on, single = self.next(state, point_at(self.parameters, state.parameter))
        return Decision(line, go_on.astype(np.float64), np.ones((len(state), 1)), single)

    @abstractmethod
    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Return who is asked next, [n], whether, [n], and who gives the single answer, [n]."""

    @abstractmethod
    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Price and grade each operating point on many questions at once."""


@dataclass
class Stages:
    """What replies say after each model of a row, worked out when it is asked for, and once."""

    traces: TraceArrays
    work_out: Callable[[TraceArrays, int], Any]
    _known: dict[int, Any] = field(default_factory=dict)

    def __getitem__(self, k: int) -> Any:
        if k not in self._known:
            self._known[k] = self.work_out(self.traces, k)
        return self._known[k]


class RowPolicy(PoolPolicy):
    """Asks a row of models in their order, and after each decides whether to ask the next.

    A model that cannot be asked, since it was not recorded or is too dear, counts as one that said
    nothing.
    """

    @abstractmethod
    def row(self, point: int) -> Sequence[int]:
        """Return the models of an operating point, in the order of asking."""

    @abstractmethod
    def stages(self, traces: TraceArrays) -> Stages:
        """Return what is known after each model; after k it depends on models 0..k alone."""

    @abstractmethod
    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Return whether to go on after model k, [n], and who would give the answer, [n]."""

    @final
    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Go along the row from the model that was asked last."""
        n, row = len(state), list(self.row(point))
        place = np.full(state.recorded.n_roles, -1)
        place[row] = np.arange(len(row))
        latest = np.where(state.known, place, -1).max(axis=1)
        line, single = np.full(n, NOTHING), np.full(n, -1)
        on, stages = np.ones(n, dtype=bool), self.stages(state.seen)
        for k in range(max(int(latest.min(initial=0)), 0), len(row)):
            here = on & (line == NOTHING) & (latest <= k)
            asks = here & (latest < k) & state.can_buy[:, row[k]]
            line[asks] = row[k]
            passed = here & ~asks
            if passed.any():
                goes_on, chosen = self.after(stages, k, point)
                single[passed] = chosen[passed]
                on[passed] = goes_on[passed] & (k + 1 < len(row))
        return line, line != NOTHING, single

    @final
    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Go along every point's row while it goes on."""
        n, settings, stages = len(traces), len(self.values), self.stages(traces)
        made = np.zeros((n, settings, traces.n_roles), dtype=bool)
        given = np.full((n, settings), -1)
        for point in range(settings):
            on = np.ones(n, dtype=bool)
            row = list(self.row(point))
            for k, model in enumerate(row):
                made[on, point, model] = True
                goes_on, chosen = self.after(stages, k, point)
                given[on, point] = chosen[on]
                on = on & goes_on & (k + 1 < len(row))
        return of_calls(traces, self.values, made, given)


def everyone(traces: TraceArrays, model: int) -> IntArray:
    """Return the same model for all questions, [n]."""
    return np.full(len(traces), model)


def list_of(models: IntArray) -> list[int]:
    """Return the places of some models as a list."""
    return [int(model) for model in models]


class PoolLearner(ABC):
    """Learns a policy over a pool of models from training questions."""

    @final
    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Learn from training questions; the same seed gives the same policy."""
        del alpha  # its points are for every level
        progress.update(1, 1, {})
        return Fitted(self.learn(train, seed))

    @abstractmethod
    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Return the policy; the seed decides whatever is drawn."""


@dataclass(frozen=True)
class Rehearsed:
    """A policy, and what its points came to on training questions that it was fitted without."""

    policy: PoolPolicy
    figures: CrossFitted


@runtime_checkable
class RehearsingLearner(Protocol):
    """A learner that tries several policies by itself, and knows what each would come to.

    It is told what is to be proved: `strong`, the reference; `margin`, what may be lost; `proving`,
    the questions that will prove it.
    """

    def rehearse(self, train: TraceArrays, seed: int) -> Rehearsed:
        """Return the policy that is likely to cost least once it is proved."""
        ...


@dataclass(frozen=True)
class PoolTables:
    """A pool without its axis of rounds."""

    right: BoolArray
    """[n, L]"""
    cost: FloatArray
    """[n, L] dollars, for estimates; what is paid is added up in nano-dollars elsewhere."""


def tables(pool: TraceArrays) -> PoolTables:
    """Drop the axis of rounds."""
    if pool.horizon != 1:
        raise InputError("these traces have rounds; this method chooses among a pool of models")
    return PoolTables(pool.correct[:, 0, :], pool.cost_nano[:, 0, :] / 1e9)


def strongest(train: TraceArrays, name: str | None) -> int:
    """Return the place of the model called `name`, or of the most accurate one in training."""
    if name is None:
        return int(train.correct[:, 0, :].mean(axis=0).argmax())
    if name not in train.roles:
        raise UnknownNameError("model", name, train.roles)
    return train.roles.index(name)


def possible_answers(train: TraceArrays) -> float:
    """Return K, how many answers a question may have, of which all wrong ones are as likely.

    Two wrong answers are the same with probability 1 / (K - 1): K comes from how often they were,
    half a pair counting for either outcome. It is no whole number, and 3 where no pair was seen.
    What was not graded, or not answered, counts for nothing.
    """
    answer = train.answer[:, 0]
    wrong = train.made[:, 0] & ~train.ungraded[:, 0] & ~train.correct[:, 0] & (answer != NO_ANSWER)
    same, pairs = 0, 0
    for one in range(1, train.n_roles):
        both = wrong[:, :one] & wrong[:, one : one + 1]
        same += int((both & (answer[:, :one] == answer[:, one : one + 1])).sum())
        pairs += int(both.sum())
    return 1.0 + (pairs + 1.0) / (same + 0.5)


def frontier(cost: FloatArray, gain: FloatArray) -> IntArray:
    """Return the settings that no other setting beats in both, from the cheapest to the dearest.

    >>> frontier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.4, 0.7, 0.7]))
    array([0, 2])
    """
    order = np.lexsort((-gain, cost))
    best = np.maximum.accumulate(np.append(-np.inf, gain[order][:-1]))
    return order[gain[order] > best]


def quantiles(score: FloatArray, most: int = SETTINGS) -> FloatArray:
    """Return thresholds between which a score falls about equally often, and one above them all."""
    if not score.size:
        return np.array([np.inf])
    inner = np.unique(np.quantile(score, np.linspace(0, 1, most - 1)))
    return np.append(inner, np.inf)


def cheapest_first(pool: PoolTables, score: FloatArray, second: int) -> int:
    """Choose the model to ask before `second`: the one that spends least near its accuracy.

    Args:
        pool: training questions.
        score: [n, L] how sure each model is; below a threshold, `second` is asked as well.
        second: the model to be near to, by `SLACK` of accuracy.
    """
    spent = [_cost_near(pool, score[:, first], first, second) for first in range(score.shape[1])]
    return int(np.argmin(spent))


def pair(first: int, second: int) -> IntArray:
    """Return the order of asking; one model alone where both are the same."""
    return np.array([first, second] if first != second else [first])


def _cost_near(pool: PoolTables, score: FloatArray, first: int, second: int) -> float:
    """Return the least mean cost near the second model's accuracy, in dollars."""
    if first == second:
        return float(pool.cost[:, second].mean())
    below = score[:, None] < quantiles(score)
    right = np.where(below, pool.right[:, second, None], pool.right[:, first, None])
    cost = pool.cost[:, first].mean() + (below * pool.cost[:, second, None]).mean(axis=0)
    near = right.mean(axis=0) >= pool.right[:, second].mean() - SLACK
    return float(cost[near].min())
