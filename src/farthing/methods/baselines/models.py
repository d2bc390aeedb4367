"""The yardsticks: one model for everything, every model for everything, and perfect foresight."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import SETTINGS, frontier, tables
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class BestSingle:
    """One model answers everything; the knob says which, among those on the training frontier."""

    def fit(self, train: TraceArrays, seed: int) -> "FixedModels":  # noqa: ARG002
        """Keep the models that no cheaper one matches on the training questions."""
        pool = tables(train)
        return FixedModels(frontier(pool.cost.mean(axis=0), pool.right.mean(axis=0)))


@dataclass(frozen=True)
class FixedModels:
    """Models to ask, alone, one a setting."""

    models: IntArray
    """[G]"""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Ask one model a setting and return its answer."""
        shape = (len(traces), len(self.models))
        one_hot = np.arange(traces.n_roles) == self.models[:, None]
        made = np.broadcast_to(one_hot, (*shape, traces.n_roles))
        return of_calls(
            traces, self.models.astype(float), made, np.broadcast_to(self.models, shape)
        )


@dataclass(frozen=True)
class AlwaysAll:
    """Every model answers everything; setting 0 counts votes, setting 1 weighs them."""

    def fit(self, train: TraceArrays, seed: int) -> "Vote":  # noqa: ARG002
        """Learn how far to trust each model's own signals."""
        tables(train)
        return Vote(fit_scorers(train))


@dataclass(frozen=True)
class Vote:
    """A vote among all models."""

    scorers: Scorers

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Ask everybody; of equals, the answer of the dearest model wins."""
        p = np.clip(self.scorers.p_right(traces), 0.01, 0.99)
        weighed = np.log(p / (1 - p))
        each = np.ones_like(weighed)
        chosen = np.stack([_leading(traces, votes) for votes in (each, weighed)], axis=1)
        made = np.ones((*chosen.shape, traces.n_roles), dtype=bool)
        return of_calls(traces, np.array([0.0, 1.0]), made, chosen)


def _leading(traces: TraceArrays, votes: FloatArray) -> IntArray:
    """[n] a model that gives the answer with the most votes; -1 where nobody answers."""
    answer = traces.answer[:, 0, :]
    said = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & said[:, None, :]
    total = np.where(said, (same * votes[:, None, :]).sum(axis=2), -np.inf)
    last = traces.n_roles - 1 - np.argmax(total[:, ::-1], axis=1)
    return np.where(said.any(axis=1), last, -1)


@dataclass(frozen=True)
class Oracle:
    """Perfect foresight: asks the cheapest model that is right, if its price is worth it.

    The only policy that sees calls before they are made. No other answers as many questions rightly
    for less, which makes it the limit to compare with.
    """

    def fit(self, train: TraceArrays, seed: int) -> "Foresight":  # noqa: ARG002
        """Learn the prices that right answers have, for the knob."""
        price = _cheapest_right(train)
        paid = price[price < NEVER]
        levels = np.quantile(paid, np.linspace(0, 1, SETTINGS - 1)) if paid.size else paid
        return Foresight(np.append(np.unique(levels), NEVER / 2))


NEVER = 2**62
"""A price that no knob reaches."""


@dataclass(frozen=True)
class Foresight:
    """Pays for a question whatever its right answer costs, up to the knob; otherwise nothing."""

    knobs: FloatArray
    """[G] nano-dollars, ascending."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Buy the cheapest right answer where it costs at most the knob."""
        price = _cheapest_right(traces)
        model = np.where(traces.correct[:, 0, :], traces.cost_nano[:, 0, :], NEVER).argmin(axis=1)
        chosen = np.where(price[:, None] <= self.knobs, model[:, None], -1)
        made = chosen[:, :, None] == np.arange(traces.n_roles)
        return of_calls(traces, self.knobs, made, chosen)


def _cheapest_right(traces: TraceArrays) -> IntArray:
    tables(traces)
    cost: IntArray = np.where(traces.correct, traces.cost_nano, NEVER).min(axis=(1, 2))
    return cost
