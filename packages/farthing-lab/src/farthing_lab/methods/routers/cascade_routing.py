"""Cascade routing: after every reply, choose again among all sets of models that hold those asked.

The worth of a set is the expected quality of its best reply minus a price times its cost; qualities
are estimated before a model is asked and again after its reply. Stop when no larger set is worth
more. The parameter is the price.

Source: Dekoninck, Baader and Vechev 2024, arXiv:2410.10347, section 3. Quality estimates are ours:
one Gaussian over grades and scores, conditioned on the scores seen; sets grow by two models at
most.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.methods.pool import PoolLearner, PoolPolicy, pool_method, tables
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.base import State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

Sets = tuple[int, ...]
PRICES = np.append(np.geomspace(3e4, 30.0, 29), 0.0)
"""What a dollar costs in right answers, at each setting."""
DRAWS = 32
"""Normal draws that the expected best quality of a set is averaged over."""
SHRINK = 0.1
"""Weight of the diagonal in the estimated covariance."""


@dataclass(frozen=True)
class CascadeRoutingPolicy(PoolPolicy):
    """The fitted estimates."""

    scorers: Scorers
    mean: FloatArray
    """[2 L] of grades, then scores."""
    covariance: FloatArray
    """[2 L, 2 L]"""
    cost: FloatArray
    """[L] mean dollars."""
    draws: FloatArray
    """[D, L] standard normal."""
    values: FloatArray
    """[G] what a dollar costs in right answers."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        score = self.scorers.p_right(traces)
        n, n_models = score.shape
        made = np.zeros((n, len(self.values), n_models), dtype=bool)
        chosen = np.zeros((n, len(self.values)), dtype=np.int64)
        for g, price in enumerate(self.values):
            going = np.arange(n)
            for _ in range(n_models + 1):
                following, best = self._next(score, made[:, g], going, price)
                chosen[going, g] = best
                going, following = going[following >= 0], following[following >= 0]
                made[going, g, following] = True
        return of_calls(traces, self.values, made, chosen)

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Choose among all sets that hold those asked; who cannot be asked said nothing."""
        score, n = self.scorers.p_right(state.seen), len(state)
        passed, price = state.known.copy(), float(self.values[point])
        line, single = np.full(n, -1), np.full(n, -1)
        going = np.arange(n)
        while going.size:
            following, single[going] = self._next(score, passed, going, price)
            can = (following >= 0) & state.can_buy[going, following]
            line[going[can]] = following[can]
            skipped = (following >= 0) & ~can
            passed[going[skipped], following[skipped]] = True
            going = going[skipped]
        return line, line >= 0, single

    def _next(
        self, score: FloatArray, made: BoolArray, going: IntArray, price: float
    ) -> tuple[IntArray, IntArray]:
        """Return the model to ask next, -1 to stop, and the best reply so far, of some rows."""
        following = np.full(len(going), -1)
        best = np.zeros(len(going), dtype=np.int64)
        code = made[going] @ (1 << np.arange(made.shape[1]))
        for value in np.unique(code):
            here = code == value
            asked = tuple(np.flatnonzero(made[going[here][0]]).tolist())
            following[here], best[here] = self._choose(score[going[here]], asked, price)
        return following, best

    def _choose(self, score: FloatArray, asked: Sets, price: float) -> tuple[IntArray, IntArray]:
        quality, spread = self._quality(score, asked)
        n_models = score.shape[1]
        rest = [m for m in range(n_models) if m not in asked]
        extras = [(m,) for m in rest] + list(combinations(rest, 2))
        held = np.where(np.isin(np.arange(n_models), asked), quality, -np.inf)
        best = held.argmax(axis=1)
        now = held.max(axis=1) if asked else np.full(len(score), -np.inf)
        if not extras:
            return np.full(len(score), -1), best
        later = np.maximum(quality[:, None] + spread * self.draws, now[:, None, None])
        worth = [
            later[:, :, list(extra)].max(axis=2).mean(axis=1) - price * self.cost[list(extra)].sum()
            for extra in extras
        ]
        which = np.argmax(worth, axis=0)
        first = np.array([extra[0] for extra in extras])[which]
        return np.where(np.max(worth, axis=0) > now, first, -1), best

    def _quality(self, score: FloatArray, asked: Sets) -> tuple[FloatArray, FloatArray]:
        """Return estimated qualities, [n, L], and how far asking each would move its own, [L]."""
        n_models = score.shape[1]
        seen = [n_models + m for m in asked]
        quality = np.broadcast_to(self.mean[:n_models], score.shape)
        left = self.covariance
        if seen:
            gain = np.linalg.solve(self.covariance[np.ix_(seen, seen)], self.covariance[seen]).T
            quality = quality + (score[:, list(asked)] - self.mean[seen]) @ gain[:n_models].T
            left = self.covariance - gain @ self.covariance[seen]
        every = np.arange(n_models)
        link, own = left[every, n_models + every], left[n_models + every, n_models + every]
        return quality, np.abs(link) / np.sqrt(np.maximum(own, 1e-12))


@dataclass(frozen=True)
class CascadeRoutingLearner(PoolLearner):
    """Fits the Gaussian and the mean costs."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool, scorers = tables(train), fit_scorers(train)
        both = np.concatenate([pool.right.astype(float), scorers.p_right(train)], axis=1)
        covariance = np.cov(both, rowvar=False)
        covariance = (1 - SHRINK) * covariance + np.diag(SHRINK * np.diag(covariance) + 1e-6)
        draws = np.random.default_rng(seed).normal(size=(DRAWS, train.n_roles))
        mean, cost = both.mean(axis=0), pool.cost.mean(axis=0)
        return CascadeRoutingPolicy(scorers, mean, covariance, cost, draws, PRICES)


CASCADE_ROUTING = pool_method(
    name="cascade-routing",
    label="Cascade routing",
    meaning="After each reply chooses again among all sets of models that hold those asked",
    paper="2410.10347",
    policy=CascadeRoutingPolicy,
    learner=CascadeRoutingLearner(),
    place=88,
)
