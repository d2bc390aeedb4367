"""Fit one POMDP to each row of models, as AutoMix does."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from farthing.methods.cascades.auto_mix.policy import AutoMixPolicy, Go, bins_of
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import SETTINGS, PoolTables, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

BINS = 4
"""Bins of the verifier's confidence."""
ROW = 3
"""Models in a row: small, medium, large."""
PRIOR = 1.0
"""Imagined observations in each bin of the observation model."""


@dataclass(frozen=True)
class AutoMixLearner(PoolLearner):
    """Fits one POMDP to each row of models, and keeps the best row for each price."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Count the states and what the verifier says in them, and solve."""
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


AUTO_MIX = AutoMixLearner()


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
