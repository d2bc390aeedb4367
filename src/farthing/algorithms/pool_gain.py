"""Ask a pool of models by estimated gain per dollar, and answer with whatever answer leads.

For a row of models and a price of a right answer, backward induction estimates after each call what
going on would still gain, minus its cost; the row is chosen on the training questions, for each
price. The knob is the price.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.algorithms.leading_answer import Leading, LeadingAnswer, Replies
from farthing.algorithms.rivals.base import tables
from farthing.environments.menu import Menu, of_calls
from farthing.traces.arrays import FloatArray, TraceArrays

PRICES = np.geomspace(1e-4, 2e-2, 40)
"""Dollars that a right answer is taken to be worth, at each setting."""
ROW = 3
"""Models in a row, at most."""
RIDGE = 1.0
Row = tuple[int, ...]


@dataclass(frozen=True)
class PoolGain:
    """Fits the leading answer's probability and the gain of going on along every row."""

    def fit(self, train: TraceArrays, seed: int) -> "GainPolicy":
        """Choose the best row for each price."""
        pool = tables(train)
        leading = LeadingAnswer.fit(train, seed)
        seen = _Seen(leading, leading.replies(train), {})
        rows = [
            row
            for k in range(1, min(ROW, train.n_roles) + 1)
            for row in combinations(range(train.n_roles), k)
        ]
        plans = [max((_plan(seen, pool.cost, row, p) for row in rows), key=_value) for p in PRICES]
        return GainPolicy(leading, tuple((row, gain) for _, row, gain in plans))


Plan = tuple[float, Row, FloatArray]
"""Value on the training questions, the models to ask, [K - 1, 3] what going on is worth."""


def _value(plan: Plan) -> float:
    return plan[0]


@dataclass(frozen=True)
class GainPolicy:
    """A row of models and what going on is worth after each, for each price."""

    leading: LeadingAnswer
    plans: tuple[tuple[Row, FloatArray], ...]
    """[G]"""

    def menu(self, traces: TraceArrays) -> Menu:
        """Go on along each row while that is worth its cost; answer with the leading answer."""
        seen = _Seen(self.leading, self.leading.replies(traces), {})
        n = len(traces)
        made = np.zeros((n, len(self.plans), traces.n_roles), dtype=bool)
        chosen = np.zeros((n, len(self.plans)), dtype=np.int64)
        for g, (row, gain) in enumerate(self.plans):
            on = np.ones(n, dtype=bool)
            for step, model in enumerate(row):
                made[on, g, model] = True
                now = seen.after(row[: step + 1])
                chosen[on, g] = now.model[on]
                if step < len(gain):
                    on &= _basis(now.probability) @ gain[step] > 0
        return of_calls(traces, PRICES, made, chosen)


@dataclass(frozen=True)
class _Seen:
    """Leading answers of sets of models, computed once each."""

    leading: LeadingAnswer
    replies: Replies
    known: dict[Row, Leading]

    def after(self, row: Row) -> Leading:
        if row not in self.known:
            asked = np.isin(np.arange(self.replies.log_odds.shape[1]), row)
            self.known[row] = self.leading.after(self.replies, asked)
        return self.known[row]


def _plan(seen: _Seen, cost: FloatArray, row: Row, price: float) -> Plan:
    """Estimate the worth of going on after each call of a row, from the last one back."""
    steps = [seen.after(row[: k + 1]) for k in range(len(row))]
    worth = price * steps[-1].right
    gains: list[FloatArray] = []
    for k in range(len(row) - 2, -1, -1):
        going = worth - cost[:, row[k + 1]]
        stopping = price * steps[k].right
        basis = _basis(steps[k].probability)
        gain = _least_squares(basis, going - stopping)
        gains.insert(0, gain)
        worth = np.where(basis @ gain > 0, going, stopping)
    return float(worth.mean() - cost[:, row[0]].mean()), row, np.array(gains).reshape(-1, 3)


def _basis(probability: FloatArray) -> FloatArray:
    """[n, 3] a parabola in the probability that the leading answer is wrong."""
    wrong = 1 - probability
    return np.stack([np.ones_like(wrong), wrong, wrong**2], axis=1)


def _least_squares(basis: FloatArray, target: FloatArray) -> FloatArray:
    penalty = RIDGE * np.diag([0.0, 1.0, 1.0])
    return np.asarray(np.linalg.solve(basis.T @ basis + penalty, basis.T @ target))
