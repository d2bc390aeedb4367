"""Error budgets for each turn (MiCP): stopping in turn t may go wrong on a share alpha_t only.

Turns are models, from the cheapest on. Training questions set a threshold for each turn in turn:
the lowest at which, among all questions, those that stop there wrongly are at most alpha_t. The
knob is the whole budget, the sum of alpha_t.

Source: Zhou and others 2026, arXiv:2604.01413.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import SETTINGS, ladder, strongest, tables
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class MiCP:
    """Splits the budget so that dearer turns get more, in proportion to `share ** turn`."""

    share: float = 1.0
    """1 splits it evenly."""
    strong: str | None = None
    """The model of the last turn; none: the most accurate one in training."""

    def fit(self, train: TraceArrays, seed: int) -> "Turns":  # noqa: ARG002
        """Set the thresholds of every turn for every budget."""
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        turns = ladder(pool, strongest(train, self.strong))
        budgets = np.linspace(0.5, 0.0, SETTINGS)
        weights = self.share ** np.arange(len(turns) - 1)
        weights /= max(weights.sum(), 1)
        thresholds = [
            _thresholds(score[:, turns], pool.right[:, turns], budget * weights)
            for budget in budgets
        ]
        return Turns(scorers, turns, budgets, np.array(thresholds))


@dataclass(frozen=True)
class Turns:
    """Models in the order of asking and a threshold for each but the last, for each budget."""

    scorers: Scorers
    models: IntArray
    """[K]"""
    knobs: FloatArray
    """[G] error budgets, descending."""
    thresholds: FloatArray
    """[G, K - 1]"""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Stop in the first turn whose score reaches its threshold."""
        score = self.scorers.p_right(traces)[:, self.models]
        n, shape = len(traces), (len(traces), len(self.knobs))
        made = np.zeros((*shape, traces.n_roles), dtype=bool)
        chosen = np.broadcast_to(self.models[0], shape)
        on = np.ones(shape, dtype=bool)
        for turn, model in enumerate(self.models):
            made[:, :, model] = on
            chosen = np.where(on, model, chosen)
            if turn < self.thresholds.shape[1]:
                on = on & (score[:, turn].reshape(n, 1) < self.thresholds[:, turn])
        return of_calls(traces, self.knobs, made, chosen)


def _thresholds(score: FloatArray, right: BoolArray, budget: FloatArray) -> FloatArray:
    """Return the lowest threshold of each turn that keeps within its budget, [K - 1].

    Args:
        score: [n, K].
        right: [n, K].
        budget: [K - 1] shares of all questions.
    """
    n = len(score)
    left = np.ones(n, dtype=bool)
    thresholds = np.empty(len(budget))
    for turn, alpha in enumerate(budget):
        wrong = np.sort(score[left & ~right[:, turn], turn])[::-1]
        allowed = int(np.floor(alpha * (n + 1))) - 1  # the next question may be wrong as well
        if allowed < 0:
            thresholds[turn] = np.inf
        elif allowed >= len(wrong):
            thresholds[turn] = -np.inf
        else:
            thresholds[turn] = np.nextafter(wrong[allowed], np.inf)
        left &= score[:, turn] < thresholds[turn]
    return thresholds
