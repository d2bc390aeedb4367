"""Ask a few cheap models, stop where going on is not worth its price; the strong model ends it.

What is lost against the strong model is what counts: the questions that it answers rightly and
the answer given does not. After each call a linear regression on every reply so far estimates how
much less is lost by going on, net of what that costs at a price, by backward induction along the
row of models. Which models come before the strong one, and in which order, is decided by the
training questions, cross-fitted. The parameter is the price.

Decisions count losses alone, because wins over the strong model are the first thing that fails to
come true where some models find training questions easier than those to come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np

from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    RowPolicy,
    Stages,
    everyone,
    list_of,
    pool_method,
    strongest,
    tables,
)
from farthing.methods.scorer import AnswerPosterior, ReplyEvidence, fit_leading_answer
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

_CLIP = 0.01
_NOBODY = -2
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
class PoolGainPolicy(RowPolicy):
    """A row of models, and after each what going on would gain at each price."""

    leading: AnswerPosterior
    models: IntArray
    """[K] the row; the strong model ends it."""
    weights: tuple[FloatArray, ...]
    """[F, G] after each call but the last."""
    values: FloatArray
    """[G] prices, descending."""

    def row(self, point: int) -> Sequence[int]:
        """Ask the models of the row."""
        del point
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh the replies up to each model of the row."""
        row = self.models.tolist()
        replies = self.leading.replies(traces)
        return Stages(traces, lambda of, k: features_after(self.leading, replies, row, of, k))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on while it gains more than it costs; the strong model has the last word."""
        if k == len(self.weights):
            last = everyone(stages.traces, int(self.models[-1]))
            return last < 0, last
        known, leads = stages[k]
        return (known * self.weights[k][:, point]).sum(axis=1) > 0, leads


def features_after(
    leading: AnswerPosterior,
    replies: ReplyEvidence,
    row: Sequence[int],
    traces: TraceArrays,
    k: int,
) -> tuple[FloatArray, IntArray]:
    """Return what is known after model k of a row, [n, F], and who leads, [n].

    A constant, the log-odds of the leading answer and of each reply, and who backs the leader.
    """
    asked = list(row[: k + 1])
    step = leading.after(replies, np.isin(np.arange(traces.n_roles), asked))
    p = np.clip(step.probability, _CLIP, 1 - _CLIP / 2)
    answer = traces.answer[:, 0, :]
    leads = np.where(step.model >= 0, answer[np.arange(len(traces)), step.model], _NOBODY)
    agrees = answer[:, asked] == leads[:, None]
    columns = [np.ones(len(p)), np.log(p / (1 - p)), *(replies.log_odds[:, asked] / 2).T]
    return np.stack([*columns, *(agrees.T if k else [])], axis=1), step.model


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
    cost = tables(train).cost.mean(axis=0)
    others = [m for m in range(train.n_roles) if m != strong and cost[m] < cost[strong]]
    for k in range(ROW + 1):
        for row in permutations(others, k):
            if all(cost[a] <= DEARER * cost[b] for a, b in pairwise(row)):
                yield (*row, strong)


def _steps(
    leading: AnswerPosterior, replies: ReplyEvidence, row: Row, traces: TraceArrays, unit: float
) -> Steps:
    every, pool = np.arange(len(traces)), tables(traces)
    after = [features_after(leading, replies, row, traces, k) for k in range(len(row) - 1)]
    chosen = [leads for _, leads in after] + [np.full(len(traces), row[-1])]
    given = np.stack(chosen, axis=1)
    right = pool.right[every[:, None], given] & (given >= 0)
    reference = pool.right[:, row[-1]][:, None]
    lost, won = (reference & ~right).astype(float), (right & ~reference).astype(float)
    seen = tuple(known for known, _ in after)
    return Steps(seen, lost, won, pool.cost[:, list(row)] / unit)


POOL_GAIN = pool_method(
    name="pool-gain",
    label="Pool gain",
    meaning="A row of models before a strong one; goes on while an answer may be lost against it",
    policy=PoolGainPolicy,
    learner=PoolGainLearner(),
    proof_share=Fraction(1, 4),
    tried_for=frozenset({"one"}),
    place=80,
)
