"""The yardsticks of a pool: one model for everything, and every model for everything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.methods.base import Dataset, Method, Variant
from farthing.methods.baselines.fixed import FixedLearner
from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    RowPolicy,
    Stages,
    everyone,
    frontier,
    pool_method,
    possible_answers,
    strongest,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

NOT_ALONE = "not recorded alone"
"""Why nothing is known of a role by itself: its calls saw those of others."""


@dataclass(frozen=True)
class BestSinglePolicy(RowPolicy):
    """One model answers everything; the operating point says which."""

    values: FloatArray
    """[G] the models, from the cheapest to the dearest."""

    def row(self, point: int) -> Sequence[int]:
        """Ask one model."""
        return [int(self.values[point])]

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh nothing."""
        return Stages(traces, lambda _, k: k)

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """End, with its answer."""
        del k
        chosen = everyone(stages.traces, int(self.values[point]))
        return chosen < 0, chosen


@dataclass(frozen=True)
class AlwaysPolicy(PoolPolicy):
    """One role answers everything with its first call: a model of a pool, or a role of rounds."""

    role: int
    """Its place among the roles."""
    values: FloatArray = field(default_factory=lambda: np.ones(1))
    """[1] there is one operating point."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Buy the first item of the role's line, and nothing after it."""
        del point
        asks = (state.bought[:, self.role] == 0) & state.can_buy[:, self.role]
        line = np.where(asks, self.role, NOTHING)
        return line, asks, everyone(state.recorded, self.role)  # in round 1 a call is its role

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Price and grade the role's first calls."""
        first = _first_round(traces)
        made = np.zeros((len(traces), 1, traces.n_roles), dtype=bool)
        made[:, :, self.role] = True
        return of_calls(first, self.values, made, everyone(traces, self.role)[:, None])


def _first_round(traces: TraceArrays) -> TraceArrays:
    """Return questions with nothing but round 1, [n, 1, L]."""
    return replace(
        traces,
        answer=traces.answer[:, :1],
        correct=traces.correct[:, :1],
        cost_nano=traces.cost_nano[:, :1],
        largest_cost_nano=traces.largest_cost_nano[:, :1],
        made=traces.made[:, :1],
        signals={name: values[:, :1] for name, values in traces.signals.items()},
        recorded=np.minimum(traces.recorded, 1),
        replies={},
    )


@dataclass(frozen=True)
class AlwaysAllPolicy(RowPolicy):
    """Every model answers everything; point 0 counts votes, point 1 weighs them.

    A vote weighs log(p (K - 1) / (1 - p)), the log likelihood ratio of the answer that it is for to
    any other, where a model is right with probability p, independently, and else says one of K - 1
    wrong answers, each as likely. The answer that weighs most is the likeliest by Bayes' rule of
    those that were given. At K = 2 the weight is the log-odds of p. On a question with many wrong
    answers a model that is mostly wrong speaks for its answer all the same.

    Source: Nitzan and Paroush 1982, "Optimal decision rules in uncertain dichotomous choice
    situations", for K = 2.
    """

    scorers: Scorers
    models: int
    values: FloatArray
    answers: float
    """K, above 1."""

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy; those saved without K decide as they did, by the log-odds."""
        return super().from_state(arrays, {"answers": 2.0, **settings})

    def row(self, point: int) -> Sequence[int]:
        """Ask everybody."""
        del point
        return range(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh the votes."""
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on to the last; of equals, the answer of the dearest model wins."""
        p = np.clip(stages[0], 0.01, 0.99)
        votes = np.log(p * (self.answers - 1) / (1 - p)) if point else np.ones_like(p)
        goes_on = np.full(len(p), k + 1 < self.models)
        if goes_on.all() and len(p) > 1:
            return goes_on, np.full(len(p), -1)  # who leads on the way decides nothing
        return goes_on, _leading(stages.traces, votes)


def _leading(traces: TraceArrays, votes: FloatArray) -> IntArray:
    """Return a model that gives the answer with the most votes, [n]; -1 where nobody answers."""
    answer = traces.answer[:, 0, :]
    said = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & said[:, None, :]
    total = np.where(said, (same * votes[:, None, :]).sum(axis=2), -np.inf)
    last = traces.n_roles - 1 - np.argmax(total[:, ::-1], axis=1)
    return np.where(said.any(axis=1), last, -1)


@dataclass(frozen=True)
class AlwaysLearner(PoolLearner):
    """Keeps one model of a pool."""

    strong: str | None = None
    """Its name; None: the one that is right most often in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Look the model up."""
        tables(train)
        return AlwaysPolicy(strongest(train, self.strong))


@dataclass(frozen=True)
class BestSingleLearner(PoolLearner):
    """Keeps the models that no cheaper one matches on the training questions."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Keep the training frontier."""
        pool = tables(train)
        models = frontier(pool.cost.mean(axis=0), pool.right.mean(axis=0))
        return BestSinglePolicy(models.astype(np.float64))


@dataclass(frozen=True)
class AlwaysAllLearner(PoolLearner):
    """Learns how far to trust each model's own signals, and how many answers are possible."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Fit a scorer for each model."""
        tables(train)
        points, answers = np.array([0.0, 1.0]), possible_answers(train)
        return AlwaysAllPolicy(fit_scorers(train), train.n_roles, points, answers)


def _roles(dataset: Dataset) -> Sequence[Variant]:
    """Return a variant for each role; what one says alone is known where no call saw another."""
    traces = dataset.arranged("pool")
    alone = bool(traces.independent.all())
    return [
        Variant(
            f"{ALWAYS.name}-{role}",
            f"Always {role}",
            FixedLearner(AlwaysPolicy(place)) if alone else None,
            "" if alone else NOT_ALONE,
        )
        for place, role in enumerate(traces.roles)
    ]


ALWAYS = Method(
    name="always",
    label="Always one model",
    meaning="One model answers everything: what anything else is held against",
    policy=AlwaysPolicy,
    learner=AlwaysLearner(),
    action_spaces=("pool", "calls", "cuts"),
    needs=("independent calls",),
    calibration="none",
    varies_with=frozenset(),
    variants=_roles,
    tried_for=frozenset({"one"}),
    place=92,
)
BEST_SINGLE = Method(
    name="best-single",
    label="Best single model",
    meaning="One model answers everything; which one is the operating point",
    policy=BestSinglePolicy,
    learner=BestSingleLearner(),
    action_spaces=("pool", "cuts"),
    needs=("pool",),
    varies_with=frozenset(),
    tried_for=frozenset({"one"}),
    place=93,
)
ALWAYS_ALL = pool_method(
    name="always-all",
    label="Always all",
    meaning="Every model answers everything, and a vote decides",
    policy=AlwaysAllPolicy,
    learner=AlwaysAllLearner(),
    varies_with=frozenset(),
    place=94,
)
