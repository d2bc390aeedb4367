"""Ask a few cheap models, stop where the leading answer is sure enough; the strong model ends it.

After each call the probability that the leading answer is right is estimated from every reply so
far: how sure each model is, and who agrees with whom. Which models come before the strong one, and
in which order, is looked ahead on the training questions: of all rows, the one that costs least
where it loses next to nothing against the strong model. The knob is the probability asked for.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.algorithms.leading_answer import LeadingAnswer
from farthing.algorithms.rivals.base import quantiles, strongest, tables
from farthing.environments.menu import Menu, sweep
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

ROW = 2
"""Models before the strong one, at most: more overfit a few hundred questions."""
LOSS = 0.01
"""Share of the training questions that a row may lose against the strong model."""
Row = tuple[int, ...]


@dataclass(frozen=True)
class PoolGain:
    """Fits the leading answer's probability and chooses a row of models."""

    strong: str | None = None
    """The model that ends every row; none: the most accurate one in training."""

    def fit(self, train: TraceArrays, seed: int) -> "RowPolicy":
        """Fit once for all sets of models, then compare rows."""
        pool = tables(train)
        strong = strongest(train, self.strong)
        leading = LeadingAnswer.fit(train, seed)
        others = [m for m in range(train.n_roles) if m != strong]
        rows = [(*row, strong) for k in range(ROW + 1) for row in combinations(others, k)]
        fits = [_swept(train, leading, row) for row in rows]
        spent = [_least_cost(fit.menu(train), pool.right[:, strong]) for fit in fits]
        return fits[int(np.argmin(spent))]


@dataclass(frozen=True)
class RowPolicy:
    """A row of models and thresholds on the leading answer's probability."""

    leading: LeadingAnswer
    row: Row
    knobs: FloatArray
    """[G] ascending."""

    def menu(self, traces: TraceArrays) -> Menu:
        """Go along the row until the leading answer is sure; the last model's answer stands."""
        score, chosen = _along(self.leading, self.row, traces)
        return sweep(traces, np.array(self.row), score, chosen, self.knobs)


def _swept(train: TraceArrays, leading: LeadingAnswer, row: Row) -> RowPolicy:
    """Place the thresholds where the training questions are."""
    score = _along(leading, row, train)[0][:, :-1]
    return RowPolicy(leading, row, quantiles(score))


def _along(leading: LeadingAnswer, row: Row, traces: TraceArrays) -> tuple[FloatArray, np.ndarray]:
    """Return how sure the leading answer is after each call, [n, K], and who gives it."""
    replies = leading.replies(traces)
    models = np.arange(traces.n_roles)
    steps = [leading.after(replies, np.isin(models, row[: k + 1])) for k in range(len(row) - 1)]
    last = np.ones(len(traces)), np.full(len(traces), row[-1])
    score = np.stack([*(step.probability for step in steps), last[0]], axis=1)
    return score, np.stack([*(step.model for step in steps), last[1]], axis=1)


def _least_cost(menu: Menu, strong: BoolArray) -> float:
    """Return the mean cost of the cheapest setting from which on up little is lost."""
    lost = (strong[:, None] & ~menu.correct).mean(axis=0)
    safe = np.logical_and.accumulate((lost <= LOSS)[::-1])[::-1]
    return float(menu.cost_nano[:, safe].mean(axis=0).min())
