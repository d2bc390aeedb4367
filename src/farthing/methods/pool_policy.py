"""What pool methods share while they serve: operating points, and rows of models.

A pool method asks models side by side, [n, 1, L], one after another, and gives a single answer. Its
operating points are numbered from the cheapest on. All answers that were paid for are its set.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from farthing.methods.serialization import DataclassState
from farthing.process.action_space import SpaceName
from farthing.process.base import NOTHING, Decision, State
from farthing.process.batch_replay import descending_grid, point_at
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


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
        """Return who is asked next, [n], whether, [n], and who gives the single answer, [n].

        Args:
            state: what is known.
            point: index of the operating point.
        """

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
        """Return what is known after model k of the row, from 0."""
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
