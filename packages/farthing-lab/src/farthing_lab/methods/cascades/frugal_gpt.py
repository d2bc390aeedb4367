"""FrugalGPT's learned cascade: which models to ask, in which order, and when to believe them.

A scorer judges each reply; the cascade returns the first reply whose score reaches its model's
threshold. List and thresholds maximise training accuracy at a mean cost; the parameter is that
cost.

Source: Chen, Zaharia and Zou 2023, arXiv:2305.05176, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from farthing.methods.pool import (
    SETTINGS,
    PoolLearner,
    PoolPolicy,
    PoolTables,
    RowPolicy,
    Stages,
    everyone,
    frontier,
    pool_method,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

LEVELS = 12
"""Thresholds tried for each model: quantiles of its scores."""
KEPT = 60
"""Lists of three models that are tried, the most promising first."""


@dataclass(frozen=True)
class FrugalGptPolicy(RowPolicy):
    """A list of three models and two thresholds for each point; the last model is believed."""

    scorers: Scorers
    models: IntArray
    """[G, 3]; a shorter list repeats its last model."""
    thresholds: FloatArray
    """[G, 2]; minus infinity where the list ends."""
    values: FloatArray
    """[G] mean cost on the training questions, in dollars."""

    def row(self, point: int) -> Sequence[int]:
        return list(dict.fromkeys(self.models[point].tolist()))

    def stages(self, traces: TraceArrays) -> Stages:
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the score does not reach the model's threshold."""
        model, score = int(self.models[point, k]), stages[0]
        goes_on = score[:, model] < self.thresholds[point, min(k, 1)]
        return goes_on, everyone(stages.traces, model)


@dataclass(frozen=True)
class FrugalGptLearner(PoolLearner):
    """Searches lists of one to three models and their thresholds."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        found = [_search(pool, score, models) for models in _lists(pool)]
        models = np.concatenate([part[0] for part in found])
        thresholds = np.concatenate([part[1] for part in found])
        cost, gain = (np.concatenate([part[k] for part in found]) for k in (2, 3))
        best = frontier(cost, gain)
        best = best[np.unique(np.linspace(0, len(best) - 1, SETTINGS).round().astype(int))]
        return FrugalGptPolicy(scorers, models[best], thresholds[best], cost[best])


def _lists(pool: PoolTables) -> list[tuple[int, int, int]]:
    """Every single model and pair, and the triples whose members seldom fail together.

    The paper prunes lists whose models agree too much, by how often one is right where the ones
    before it are wrong.
    """
    n_models = pool.right.shape[1]
    singles = [(m, m, m) for m in range(n_models)]
    pairs = [(a, b, b) for a, b in permutations(range(n_models), 2)]
    triples = list(permutations(range(n_models), 3))
    solved = np.array([pool.right[:, list(models)].any(axis=1).mean() for models in triples])
    cost = np.array([pool.cost[:, models[0]].mean() for models in triples])
    order = np.lexsort((cost, -solved))[:KEPT]
    return singles + pairs + [triples[i] for i in order]


def _search(
    pool: PoolTables, score: FloatArray, models: tuple[int, int, int]
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Try every pair of thresholds of one list: models, thresholds, mean cost, mean accuracy."""
    a, b, c = models
    levels = [_levels(score[:, a], ends=a == b), _levels(score[:, b], ends=b == c)]
    on_a, on_b = (
        (score[:, m, None] < level).astype(float) for m, level in zip((a, b), levels, strict=True)
    )
    n = len(score)
    both_cost = (on_a * pool.cost[:, c, None]).T @ on_b
    cost = pool.cost[:, a].sum() + (on_a.T @ pool.cost[:, b])[:, None] + both_cost
    gain_b = (on_a.T @ (pool.right[:, b].astype(float) - pool.right[:, a]))[:, None]
    gain_c = (on_a * (pool.right[:, c].astype(float) - pool.right[:, b])[:, None]).T @ on_b
    right = pool.right[:, a].sum() + gain_b + gain_c
    thresholds = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(-1, 2)
    lists = np.tile(np.array(models, dtype=np.int64), (len(thresholds), 1))
    return lists, thresholds, cost.reshape(-1) / n, right.reshape(-1) / n


def _levels(score: FloatArray, *, ends: bool) -> FloatArray:
    if ends:
        return np.array([-np.inf])
    return np.unique(np.quantile(score, np.linspace(0, 1, LEVELS)[1:]))


FRUGAL_GPT = pool_method(
    name="frugal-gpt",
    label="FrugalGPT",
    meaning="A learned list of up to three models, each believed where its score is high enough",
    paper="2305.05176",
    policy=FrugalGptPolicy,
    learner=FrugalGptLearner(),
    tried_for=frozenset({"one"}),
    place=82,
)
