"""Search lists of models and their thresholds, as FrugalGPT does."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from farthing.methods.cascades.frugal_gpt.policy import FrugalGptPolicy
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import SETTINGS, PoolTables, frontier, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

LEVELS = 12
"""Thresholds tried for each model: quantiles of its scores."""
KEPT = 60
"""Lists of three models that are tried, the most promising first."""


@dataclass(frozen=True)
class FrugalGptLearner(PoolLearner):
    """Searches lists of one to three models and their thresholds."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Keep the cascades on the training frontier of cost and accuracy."""
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        found = [_search(pool, score, models) for models in _lists(pool)]
        models = np.concatenate([part[0] for part in found])
        thresholds = np.concatenate([part[1] for part in found])
        cost, gain = (np.concatenate([part[k] for part in found]) for k in (2, 3))
        best = frontier(cost, gain)
        best = best[np.unique(np.linspace(0, len(best) - 1, SETTINGS).round().astype(int))]
        return FrugalGptPolicy(scorers, models[best], thresholds[best], cost[best])


FRUGAL_GPT = FrugalGptLearner()


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
