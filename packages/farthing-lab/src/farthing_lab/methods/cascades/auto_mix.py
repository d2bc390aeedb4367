"""AutoMix: a small model answers, a verifier doubts, a POMDP decides whether to go up a size.

Which of the models are right is the hidden state; the verifier's confidence in each reply, in bins,
is all that is observed. The policy maximises P(right) minus a price times the cost, exactly, by
backward induction over the observations of a row of models. The parameter is that price.

Source: Aggarwal, Madaan and others 2024, arXiv:2310.12963, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from farthing.methods.pool import (
    SETTINGS,
    PoolLearner,
    PoolPolicy,
    PoolTables,
    RowPolicy,
    Stages,
    everyone,
    list_of,
    pool_method,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

Go = tuple[BoolArray, ...]
"""Whether to ask the next model after the first, second, ... observation: [BINS] * k each."""
BINS = 4
"""Bins of the verifier's confidence."""
ROW = 3
"""Models in a row: small, medium, large."""
PRIOR = 1.0
"""Imagined observations in each bin of the observation model."""


@dataclass(frozen=True)
class AutoMixPolicy(RowPolicy):
    """A row of models and what to do after each observation, for each price."""

    scorers: Scorers
    edges: FloatArray
    """[BINS - 1, L] between the bins of each model's verifier."""
    values: FloatArray
    """[G] price of a dollar in right answers, descending."""
    rows: tuple[IntArray, ...]
    """[G] the models of each point, in the order of asking."""
    plans: tuple[Go, ...]
    """[G]"""

    def row(self, point: int) -> Sequence[int]:
        return list_of(self.rows[point])

    def stages(self, traces: TraceArrays) -> Stages:
        return Stages(traces, lambda of, _: bins_of(self.scorers.p_right(of), self.edges))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the plan says so of all that was observed."""
        row, go, observed = self.row(point), self.plans[point], stages[0]
        chosen = everyone(stages.traces, row[k])
        if k >= len(go):
            return chosen < 0, chosen
        return go[k][tuple(observed[:, m] for m in row[: k + 1])], chosen


def bins_of(score: FloatArray, edges: FloatArray) -> IntArray:
    """[n, L] which bin each score falls into."""
    bins: IntArray = (score[None] >= edges[:, None]).sum(axis=0)
    return bins


@dataclass(frozen=True)
class AutoMixLearner(PoolLearner):
    """Fits one POMDP to each row of models, and keeps the best row for each price."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        inner = np.linspace(0, 1, BINS + 1)[1:-1]
        edges = np.quantile(score, inner, axis=0)
        seen = bins_of(score, edges)
        chance = _observation_model(seen, pool.right)
        prices = np.append(np.geomspace(3e5, 3.0, SETTINGS - 1), 0.0)
        length = min(ROW, train.n_roles)
        rows = [r for k in range(1, length + 1) for r in combinations(range(train.n_roles), k)]
        solved = [_solve(pool, chance, row, prices) for row in rows]
        best = np.argmax([value for value, _ in solved], axis=0)
        chosen = tuple(np.array(rows[b]) for b in best)
        plans = tuple(tuple(solved[b][1][g]) for g, b in enumerate(best))
        return AutoMixPolicy(scorers, edges, prices, chosen, plans)


def _observation_model(seen: IntArray, right: BoolArray) -> FloatArray:
    """[2, BINS, L] P(bin | that model is wrong, right), counted with a little smoothing."""
    in_bin = seen[None] == np.arange(BINS)[:, None, None]
    counts = np.stack([(in_bin & (right == state)).sum(axis=1) for state in (False, True)])
    chance: FloatArray = (counts + PRIOR) / (counts.sum(axis=1, keepdims=True) + PRIOR * BINS)
    return chance


def _solve(
    pool: PoolTables, chance: FloatArray, row: tuple[int, ...], prices: FloatArray
) -> tuple[FloatArray, list[Go]]:
    """Return the value of a row at each price, [G], and its plans."""
    cost = pool.cost.mean(axis=0)
    states = np.array(list(product((0, 1), repeat=len(row))))
    code = pool.right[:, row] @ (2 ** np.arange(len(row))[::-1])
    prior = np.bincount(code, minlength=len(states)) / len(code)
    joint = [prior]  # P(observations so far, state): [BINS] * k + [S]
    for place, model in enumerate(row):
        joint.append(joint[-1][..., None, :] * chance[states[:, place], :, model].T)
    value = (joint[-1] @ states[:, -1])[..., None] + np.zeros(len(prices))
    plans: list[BoolArray] = []
    for place in range(len(row) - 2, -1, -1):
        weight = joint[place + 1].sum(axis=-1)[..., None]
        on = value.sum(axis=-2) - prices * cost[row[place + 1]] * weight
        stop = (joint[place + 1] @ states[:, place])[..., None]
        plans.insert(0, on > stop)
        value = np.maximum(on, stop)
    total = value.sum(axis=0) - prices * cost[row[0]]
    return total, [tuple(go[..., g] for go in plans) for g in range(len(prices))]


AUTO_MIX = pool_method(
    name="auto-mix",
    label="AutoMix",
    meaning="A verifier doubts each reply, and a POMDP decides whether to go up a size",
    paper="2310.12963",
    policy=AutoMixPolicy,
    learner=AutoMixLearner(),
    tried_for=frozenset({"one"}),
    place=83,
)
