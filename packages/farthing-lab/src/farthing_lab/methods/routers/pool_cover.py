"""Ask a pool of models until too little is left to gain for the money; every answer is handed over.

The row of models is built on the training questions: each next one adds the most newly solved
questions per dollar. After each call a logistic regression estimates the probability that nothing
so far is right and something later in the row is; divided by the cost of the next call it is the
score. The parameter is the worth of a dollar below which to stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    RowPolicy,
    Stages,
    list_of,
    pool_method,
    quantiles,
    tables,
)
from farthing.methods.scorer import (
    AnswerPosterior,
    LeadingAnswer,
    ReplyEvidence,
    fit_leading_answer,
    logistic,
)
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

LEAST_COST = 1e-9
"""Dollars; no call is taken to cost less."""
STRENGTH = 0.1
"""Inverse strength of the L2 penalty on standardised features."""


@dataclass(frozen=True)
class PoolCoverPolicy(RowPolicy):
    """A row of models and what is left to gain after each."""

    leading: AnswerPosterior
    models: IntArray
    """[K] all models, in the order of asking."""
    cost: FloatArray
    """[K] mean dollars."""
    mean: FloatArray
    """[K - 1, F]"""
    scale: FloatArray
    """[K - 1, F]"""
    weights: FloatArray
    """[K - 1, F + 1]"""
    values: FloatArray
    """[G] of minus the gain per dollar, ascending."""

    def row(self, point: int) -> Sequence[int]:
        del point
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        replies = self.leading.replies(traces)

        def stage(of: TraceArrays, k: int) -> tuple[FloatArray, IntArray]:
            step = leader(self.leading, replies, self.models, k)
            return self.score(features_after(step, self.models, of, k), k), step.model

        return Stages(traces, stage)

    def score(self, known: FloatArray, k: int) -> FloatArray:
        """Return minus the gain per dollar of going on after model k, [n]; 0 after the last."""
        if k == len(self.models) - 1:
            return np.zeros(len(known))
        standard = (known - self.mean[k]) / self.scale[k]
        logit = (standard * self.weights[k, :-1]).sum(axis=1) + self.weights[k, -1]
        worth: FloatArray = 1 / (1 + np.exp(-logit)) / self.cost[k + 1]
        return -worth

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on while a dollar gains enough; the leading answer is the single one."""
        score, leads = stages[k]
        return score < self.values[point], leads


def leader(
    leading: AnswerPosterior, replies: ReplyEvidence, row: IntArray, k: int
) -> LeadingAnswer:
    """Return the leading answer after model k of a row."""
    models = replies.log_odds.shape[1]
    return leading.after(replies, np.isin(np.arange(models), row[: k + 1]))


def features_after(step: LeadingAnswer, row: IntArray, traces: TraceArrays, k: int) -> FloatArray:
    """Return the leading answer's log-odds, its votes, answers and silences, [n, 4]."""
    answer = traces.answer[:, 0, :][:, row[: k + 1]]
    said = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & said[:, :, None] & said[:, None, :]
    p = np.clip(step.probability, 0.01, 0.99)
    votes = same.sum(axis=2).max(axis=1)
    fresh = said & ~np.tril(same, -1).any(axis=2)
    columns = [np.log(p / (1 - p)), votes, fresh.sum(axis=1), (~said).sum(axis=1)]
    return np.stack(columns, axis=1).astype(np.float64)


@dataclass(frozen=True)
class PoolCoverLearner(PoolLearner):
    """Builds the row, then fits what is left to gain after each of its calls."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool = tables(train)
        leading = fit_leading_answer(train, seed)
        cost = np.maximum(pool.cost.mean(axis=0), LEAST_COST)
        row = _row(pool.right.astype(float), cost)
        turns, replies = range(len(row) - 1), leading.replies(train)
        known = [features_after(leader(leading, replies, row, k), row, train, k) for k in turns]
        seen = np.stack(known, axis=1) if known else np.zeros((len(train), 0, 4))
        mean, scale = seen.mean(axis=0), seen.std(axis=0) + 1e-9
        solved = np.logical_or.accumulate(pool.right[:, row], axis=1)
        left = ~solved[:, :-1] & solved[:, -1:]
        weights = np.array(
            [logistic((seen[:, k] - mean[k]) / scale[k], left[:, k], STRENGTH) for k in turns]
        ).reshape(-1, seen.shape[2] + 1)
        policy = PoolCoverPolicy(leading, row, cost[row], mean, scale, weights, np.empty(0))
        score = [policy.score(known[k], k) for k in turns]
        values = quantiles(np.stack(score, axis=1) if score else np.empty((len(train), 0)))
        return replace(policy, values=values)


def _row(right: FloatArray, cost: FloatArray) -> IntArray:
    """[L] each next model solves the most questions per dollar that none before it solves."""
    row: list[int] = []
    unsolved = np.ones(len(right))
    while len(row) < len(cost):
        gain = (right * unsolved[:, None]).mean(axis=0) + 1e-6
        gain[row] = -1.0
        row.append(int(np.argmax(gain / cost)))
        unsolved *= 1 - right[:, row[-1]]
    return np.array(row)


POOL_COVER = pool_method(
    name="pool-cover",
    label="Pool cover",
    meaning="A row of models, most newly solved questions per dollar first, while it pays",
    policy=PoolCoverPolicy,
    learner=PoolCoverLearner(),
    tried_for=frozenset({"set"}),
    place=81,
)
