"""Fit what is still to be gained along every row of models, and choose a row."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np

from farthing.methods.answer_posterior import AnswerPosterior, Replies
from farthing.methods.fit_answer_posterior import fit_leading_answer
from farthing.methods.pool import strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.methods.routers.pool_gain.policy import PoolGainPolicy, features_after
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

ROW = 2
"""Models before the strong one, at most: more overfit a few hundred questions."""
FOLDS = 3
RIDGE = 5.0
"""Pull of each weight towards 0, in questions."""
PRICES = np.geomspace(2.0, 0.01, 60)
"""Shares of the answers that the strong model's mean cost is worth."""
COMPARED = slice(18, 48)
"""The prices at which rows are compared, 0.4 to 0.03: parity is not had for more or less."""
WIN = 0.25
"""What a win is worth in losses when rows are compared."""
DEARER = 1.1
"""In a row no model costs less than the one before it by more than this factor."""
Row = tuple[int, ...]


@dataclass(frozen=True)
class Steps:
    """A row of K models on some questions."""

    seen: tuple[FloatArray, ...]
    """[n, F] after each call but the last."""
    lost: FloatArray
    """[n, K] 1 where the answer after that call loses against the strong model."""
    won: FloatArray
    """[n, K] 1 where it wins."""
    cost: FloatArray
    """[n, K] of each call, as a multiple of the strong model's mean cost."""

    def take(self, rows: BoolArray) -> "Steps":
        """Return some of the questions."""
        return Steps(
            tuple(seen[rows] for seen in self.seen),
            self.lost[rows],
            self.won[rows],
            self.cost[rows],
        )


@dataclass(frozen=True)
class PoolGainLearner(PoolLearner):
    """Fits what is still to be gained along every row of models, and chooses a row."""

    strong: str | None = None
    """The model that ends every row; None: the most accurate one in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Fit once for all sets of models, then compare rows on questions left out."""
        strong = strongest(train, self.strong)
        unit = max(float(tables(train).cost[:, strong].mean()), 1e-9)
        leading = fit_leading_answer(train, seed)
        fold = np.random.default_rng(seed).permutation(len(train)) % FOLDS
        rows = list(_rows(train, strong))
        replies = leading.replies(train)
        steps = [_steps(leading, replies, row, train, unit) for row in rows]
        value = np.array([_left_out(each, fold) for each in steps])
        best = int(np.argmin(value[:, COMPARED].mean(axis=1)))
        row = np.array(rows[best])
        return PoolGainPolicy(leading, row, weights(steps[best]), PRICES)


def weights(steps: Steps) -> tuple[FloatArray, ...]:
    """Fit backwards what going on gains net of its price, [F, G] after each call but the last.

    Ridge regression of what the fitted decisions after it would lose and pay; a constant, which is
    the first column, is not pulled towards 0.
    """
    after = np.repeat(-steps.lost[:, -1:], len(PRICES), axis=1)
    found: list[FloatArray] = []
    for k in range(len(steps.seen) - 1, -1, -1):
        seen, now = steps.seen[k], -steps.lost[:, k, None]
        going = after - PRICES * steps.cost[:, k + 1, None]
        pull = RIDGE * np.eye(seen.shape[1])
        pull[0, 0] = 1e-3
        solved = np.linalg.solve(seen.T @ seen + pull, seen.T @ (going - now))
        weight = solved.astype(np.float64)
        after = np.where(seen @ weight > 0, going, now)
        found.insert(0, weight)
    return tuple(found)


def stops(steps: Steps, fitted: tuple[FloatArray, ...]) -> IntArray:
    """Return at which call of the row each setting stops, [n, G]."""
    on = np.ones((len(steps.lost), len(PRICES)), dtype=bool)
    stop = np.zeros(on.shape, dtype=np.int64)
    for seen, weight in zip(steps.seen, fitted, strict=True):
        on &= seen @ weight > 0
        stop += on
    return stop


def _left_out(steps: Steps, fold: IntArray) -> FloatArray:
    """[G] mean net loss and price paid at each price, on questions left out of the fit."""
    paid = np.cumsum(steps.cost, axis=1)
    net = steps.lost - WIN * steps.won
    total = np.zeros(len(PRICES))
    for k in range(FOLDS):
        held = steps.take(fold == k)
        stop = stops(held, weights(steps.take(fold != k)))
        lost, spent = (np.take_along_axis(x[fold == k], stop, axis=1) for x in (net, paid))
        total += (lost + PRICES * spent).sum(axis=0)
    return total / len(fold)


def _rows(train: TraceArrays, strong: int) -> Iterator[Row]:
    """Every row that ends in the strong model and does not fall in price."""
    cost = tables(train).cost.mean(axis=0)
    others = [m for m in range(train.n_roles) if m != strong and cost[m] < cost[strong]]
    for k in range(ROW + 1):
        for row in permutations(others, k):
            if all(cost[a] <= DEARER * cost[b] for a, b in pairwise(row)):
                yield (*row, strong)


def _steps(
    leading: AnswerPosterior, replies: Replies, row: Row, traces: TraceArrays, unit: float
) -> Steps:
    """Follow a row to its end."""
    every, pool = np.arange(len(traces)), tables(traces)
    after = [features_after(leading, replies, row, traces, k) for k in range(len(row) - 1)]
    chosen = [leads for _, leads in after] + [np.full(len(traces), row[-1])]
    given = np.stack(chosen, axis=1)
    right = pool.right[every[:, None], given] & (given >= 0)
    reference = pool.right[:, row[-1]][:, None]
    lost, won = (reference & ~right).astype(float), (right & ~reference).astype(float)
    seen = tuple(known for known, _ in after)
    return Steps(seen, lost, won, pool.cost[:, list(row)] / unit)


POOL_GAIN = PoolGainLearner()
