"""A policy on recorded questions, ready to act at any threshold: what `play` does, for many.

Two kinds. A policy that acts through a threshold has nested sets, and its critical thresholds are
exact. A policy with operating points of its own is covered at a point if it is covered there and
at all dearer ones; so its sets count as nested too, and the same calibration is valid for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from farthing.process import latency
from farthing.process.action_space import action_space
from farthing.process.base import Budget, InRounds, Policy
from farthing.process.operating_points import OperatingPoints
from farthing.process.play import PolicyOrder, follow, outcome_of, play, points_of
from farthing.process.replay import Paths, ReplayOutcome, outcome, paths, sample
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@runtime_checkable
class Priced(Protocol):
    """A policy whose decisions may cost money, where it asks a model what to do."""

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:
        """Return what deciding costs after each purchase, [n, S] nano-dollars; None: no model."""
        ...


@runtime_checkable
class Quick(Protocol):
    """A policy that follows its own order through many questions more quickly than `follow`."""

    def followed(self, traces: TraceArrays, budget: Budget | None = None) -> PolicyOrder:
        """Return what `follow` does."""
        ...


@runtime_checkable
class Pointwise(Protocol):
    """A policy with operating points that works all of them out at once."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Return what each of its `parameters` costs and answers, in their order."""
        ...


class Replayed(Protocol):
    """What both kinds can do."""

    @property
    def critical(self) -> FloatArray:
        """[n] kappa*: the largest threshold that covers a question; inf where none can."""
        ...

    def __len__(self) -> int:
        """Return the number of questions."""
        ...

    def take(self, index: IntArray) -> "Replayed":
        """Return the same for the questions at an index."""
        ...

    def act(self, kappa: float) -> ReplayOutcome:
        """Act on every question with one threshold."""
        ...

    def thresholds(self) -> FloatArray:
        """Return the thresholds in (0, 1] at which something changes, rising."""
        ...


@dataclass(frozen=True)
class NestedReplay:
    """A policy's scores over some questions, in the order in which it buys."""

    traces: TraceArrays
    followed: Paths
    probabilities: FloatArray
    """[n, T, L + 1]"""
    decision_cost_nano: IntArray | None
    """[n, T]"""
    latency_s: FloatArray | None = None
    """[n, T] seconds of each purchase; None where they were not recorded."""

    @property
    def critical(self) -> FloatArray:
        """[n] kappa*."""
        return self.followed.critical

    def __len__(self) -> int:
        return len(self.traces)

    def take(self, index: IntArray) -> "NestedReplay":
        """Return the same for the questions at an index."""
        decision, seconds = self.decision_cost_nano, self.latency_s
        return NestedReplay(
            self.traces.take(index),
            Paths(
                self.followed.reach[index],
                self.followed.leaf[index],
                self.followed.critical[index],
                self.followed.score[index],
            ),
            self.probabilities[index],
            None if decision is None else decision[index],
            None if seconds is None else seconds[index],
        )

    def act(self, kappa: float) -> ReplayOutcome:
        """Act on every question with one threshold."""
        found = outcome(self.followed, self.traces, kappa, self.decision_cost_nano)
        return replace(found, latency_s=latency.after(self.latency_s, found.length))

    def draw(self, rng: np.random.Generator) -> ReplayOutcome:
        """Draw one action a round on every question."""
        found = sample(self.probabilities, self.traces, rng, self.decision_cost_nano)
        return replace(found, latency_s=latency.after(self.latency_s, found.length))

    def thresholds(self) -> FloatArray:
        """Return the thresholds in (0, 1] at which something changes, rising."""
        scores = np.concatenate([self.followed.reach.ravel(), self.followed.leaf.ravel()])
        return np.unique(scores[(scores > 0) & (scores <= 1)])


@dataclass(frozen=True)
class PointReplay:
    """What each of a policy's operating points costs and answers on some questions."""

    parameters: FloatArray
    """[G] falling from 1, above 0."""
    points: OperatingPoints
    solvable: BoolArray
    """[n] whether any recorded answer is right."""
    ask_all: Callable[[], ReplayOutcome]
    """Works out what asking all that can be asked comes to: threshold 0."""

    @cached_property
    def everything(self) -> ReplayOutcome:
        """What that comes to; it is played call by call, and only where somebody wants to know."""
        return self.ask_all()

    @property
    def critical(self) -> FloatArray:
        """[n] the parameter of the cheapest point from which all dearer ones cover it as well.

        0 where only asking everything does, inf where the question is not solvable.
        """
        onwards = np.logical_and.accumulate(self.points.covered[:, ::-1], axis=1).sum(axis=1)
        reached = np.append(self.parameters[::-1], 0.0)[onwards - 1]
        reached = np.where(self.everything.in_set | (onwards > 0), reached, -np.inf)
        critical: FloatArray = np.where(self.solvable, reached, np.inf)
        return critical

    def __len__(self) -> int:
        return len(self.points)

    def take(self, index: IntArray) -> "PointReplay":
        """Return the same for the questions at an index."""
        points, solvable = self.points.take(index), self.solvable[index]
        return PointReplay(self.parameters, points, solvable, lambda: self.everything.take(index))

    def act(self, kappa: float) -> ReplayOutcome:
        """Act on every question at the cheapest point whose parameter is at most the threshold."""
        if kappa <= 0:
            return self.everything
        at = point_at(self.parameters, kappa)
        points, solvable = self.points, self.solvable
        in_set = points.covered[:, at] & solvable
        return ReplayOutcome(
            cost_nano=points.cost_nano[:, at],
            in_set=in_set,
            covered=in_set | ~solvable,
            solvable=solvable,
            best_correct=points.correct[:, at],
            length=points.calls[:, at],
            set_size=points.set_size[:, at],
            set_size_leaves=points.answers[:, at],
            latency_s=None if points.latency_s is None else points.latency_s[:, at],
        )

    def thresholds(self) -> FloatArray:
        """Return the parameters, rising."""
        return self.parameters[::-1]


def descending_grid(points: int) -> FloatArray:
    """Return the parameters of so many operating points, from the cheapest on: 1 down to 1 / G.

    >>> descending_grid(4)
    array([1.  , 0.75, 0.5 , 0.25])
    """
    return np.arange(points, 0, -1) / points


def point_at(parameters: FloatArray, kappa: float) -> int:
    """Return the index of the cheapest point whose parameter is at most kappa; else the dearest.

    >>> [point_at(descending_grid(4), kappa) for kappa in (1.0, 0.8, 0.75, 0.1)]
    [0, 1, 1, 3]
    """
    return min(int((parameters > min(kappa, 1.0)).sum()), len(parameters) - 1)


def replay(
    policy: Policy, traces: TraceArrays, empty: str = "argmax", budget: Budget | None = None
) -> NestedReplay | PointReplay:
    """Work out what a policy does on every question, at every threshold.

    Args:
        policy: any policy.
        traces: the questions.
        empty: see `replay.paths`.
        budget: what each question may cost.
    """
    if policy.parameters is not None:
        return _points(policy, policy.parameters, traces, budget)
    along = followed(policy, traces, budget)
    decision = policy.decision_cost_nano(traces) if isinstance(policy, Priced) else None
    bought = None if budget is None else along.bought
    then = paths(along.scores, along.traces, empty, bought)
    # How long a model takes to decide was not recorded.
    seconds = (
        None if decision is not None else latency.of_purchases(traces, along.calls, along.waits)
    )
    return NestedReplay(along.traces, then, along.scores, decision, seconds)


def followed(policy: Policy, traces: TraceArrays, budget: Budget | None = None) -> PolicyOrder:
    """Follow a policy's own order through many questions, in the quickest way that it has."""
    if isinstance(policy, Quick):
        return policy.followed(traces, budget)
    if not isinstance(policy, InRounds):
        return follow(policy, traces, budget)
    calls = action_space("rounds", traces.horizon, traces.n_roles).cells[0]
    bare = replace(traces, signals={}, replies={})  # what is needed on, quick to take from
    every = np.broadcast_to(calls, (len(traces), *calls.shape))
    return PolicyOrder(bare, policy.scores(traces), every, affordable_rounds(traces, budget))


def affordable_rounds(traces: TraceArrays, budget: Budget | None) -> BoolArray:
    """Return which rounds a budget allows one after another, [n, T]."""
    shape = (len(traces), traces.horizon)
    if budget is None:
        return np.ones(shape, dtype=bool)
    cost = traces.round_cost_nano
    if budget.asking_nano is not None:
        cost = cost + budget.asking_nano
    left = budget.nano - (cost.cumsum(axis=1) - cost)
    largest = budget.largest_nano.reshape(*shape, -1).sum(axis=2) + budget.largest_asking_nano
    allowed: BoolArray = np.logical_and.accumulate(largest <= left, axis=1)
    return allowed


def _points(
    policy: Policy, parameters: FloatArray, traces: TraceArrays, budget: Budget | None
) -> PointReplay:
    if isinstance(policy, Pointwise) and budget is None:
        points = policy.points(traces)
    else:
        played = [play(policy, traces, float(at), "allow", budget) for at in parameters]
        points = points_of(parameters, played)

    def ask_all() -> ReplayOutcome:
        return outcome_of(play(policy, traces, 0.0, "allow", budget))

    return PointReplay(parameters, points, traces.solvable, ask_all)
