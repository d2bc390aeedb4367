"""Ask a pool of models until too little is left to gain for the money; every answer is handed over.

The row of models is built on the training questions: each next one adds the most newly solved
questions per dollar. After each call a logistic regression estimates the probability that nothing
so far is right and something later in the row is; divided by the cost of the next call it is the
score. The knob is the worth of a dollar below which to stop.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.leading_answer import Leading, LeadingAnswer
from farthing.methods.pool import quantiles, tables
from farthing.methods.scorer import logistic
from farthing.process.operating_points import OperatingPoints, sweep
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays

LEAST_COST = 1e-9
"""Dollars; no call is taken to cost less."""
STRENGTH = 0.1
"""Inverse strength of the L2 penalty on standardised features."""


@dataclass(frozen=True)
class PoolCover:
    """Builds the row, then fits what is left to gain after each of its calls."""

    def fit(self, train: TraceArrays, seed: int) -> "CoverPolicy":
        """Learn from training questions."""
        pool = tables(train)
        leading = LeadingAnswer.fit(train, seed)
        cost = np.maximum(pool.cost.mean(axis=0), LEAST_COST)
        row = _row(pool.right.astype(float), cost)
        seen = _features(leading, row, train)[:, :-1]
        mean, scale = seen.mean(axis=0), seen.std(axis=0) + 1e-9
        solved = np.logical_or.accumulate(pool.right[:, row], axis=1)
        left = ~solved[:, :-1] & solved[:, -1:]
        weights = np.array(
            [
                logistic((seen[:, k] - mean[k]) / scale[k], left[:, k], STRENGTH)
                for k in range(len(row) - 1)
            ]
        )
        weights = weights.reshape(-1, seen.shape[2] + 1)
        policy = CoverPolicy(leading, row, cost[row], mean, scale, weights, np.empty(0))
        knobs = quantiles(policy.score(train)[:, :-1])
        return CoverPolicy(**{**vars(policy), "knobs": knobs})


@dataclass(frozen=True)
class CoverPolicy:
    """A row of models and what is left to gain after each."""

    leading: LeadingAnswer
    row: IntArray
    """[K] all models, in the order of asking."""
    cost: FloatArray
    """[K] mean dollars."""
    mean: FloatArray
    """[K - 1, F]"""
    scale: FloatArray
    """[K - 1, F]"""
    weights: FloatArray
    """[K - 1, F + 1]"""
    knobs: FloatArray
    """[G] of minus the gain per dollar, ascending."""

    def score(self, traces: TraceArrays) -> FloatArray:
        """Return minus the gain per dollar of going on, [n, K]."""
        seen = (_features(self.leading, self.row, traces)[:, :-1] - self.mean) / self.scale
        logit = (seen * self.weights[:, :-1]).sum(axis=2) + self.weights[:, -1]
        worth = 1 / (1 + np.exp(-logit)) / self.cost[1:]
        return np.concatenate([-worth, np.zeros((len(traces), 1))], axis=1)

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Go along the row while a dollar gains enough; the leading answer is the single one."""
        chosen = np.stack([step.model for step in _steps(self.leading, self.row, traces)], axis=1)
        return sweep(traces, self.row, self.score(traces), chosen, self.knobs)


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


def _steps(leading: LeadingAnswer, row: IntArray, traces: TraceArrays) -> list[Leading]:
    replies = leading.replies(traces)
    models = np.arange(traces.n_roles)
    return [leading.after(replies, np.isin(models, row[: k + 1])) for k in range(len(row))]


def _features(leading: LeadingAnswer, row: IntArray, traces: TraceArrays) -> FloatArray:
    """[n, K, F] after each call: the leading answer's log-odds, its votes, answers, silences."""
    answer = traces.answer[:, 0, :][:, row]
    said = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & said[:, :, None] & said[:, None, :]
    found = []
    for k, step in enumerate(_steps(leading, row, traces)):
        p = np.clip(step.probability, 0.01, 0.99)
        so_far = same[:, : k + 1, : k + 1]
        votes = so_far.sum(axis=2).max(axis=1)
        fresh = said[:, : k + 1] & ~np.tril(so_far, -1).any(axis=2)
        silent = (~said[:, : k + 1]).sum(axis=1)
        columns = [np.log(p / (1 - p)), votes, fresh.sum(axis=1), silent]
        found.append(np.stack(columns, axis=1).astype(np.float64))
    return np.stack(found, axis=1)
