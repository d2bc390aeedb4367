"""C3PO: a cascade whose thresholds are learned without gold, under a bound on each question's cost.

Models are asked from the cheapest on. Each stops the row where its confidence reaches its
threshold; a threshold above 1 leaves the model out. The thresholds agree most often with the last
model among those whose cost is bounded: a question costs more than B with probability at most
alpha, by split conformal prediction on costs. No gold is read. An operating point is the best
choice of thresholds at some B and alpha.

For thresholds that are fixed beforehand the bound is exact. Here they are chosen by the same costs,
so that it is a way to choose; what is promised of a point is proved on other questions.

Differences: the paper draws several samples and takes the share of the commonest answer for
confidence, its thresholds are evenly apart in [0, 1.1], and alpha is 0.1. Here a confidence is what
was recorded, or the chance of agreement by other signals; thresholds are evenly apart in the share
of questions that they stop; and alpha is swept, since at equal prices a single one leaves no choice
between few escalations and none.

Source: Valkanas and others 2025, arXiv:2511.07396, and the authors' `AntonValk/C3PO-LLM`, `ours.py`
(the search over thresholds, the rank of the quantile, thresholds above 1); of the paper the
abstract was at hand. Its bound on generalisation is not used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil

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
    list_of,
    pool_method,
    strongest,
    tables,
)
from farthing.methods.scorer import SIGNALS, Scorers, fit_to, signals_of
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.methods.cascades.model_thresholds import ladder

LEFT_OUT = 2.0
"""A threshold above any confidence: the model is not asked."""
STEPS = 15
"""Thresholds of a model that are tried, at most; one of them leaves it out."""
TRIED = 4_000
"""Choices of thresholds that are tried, at most: more models have fewer thresholds each."""
MODELS = 8
"""Models in the row, at most; with more, the cheapest are left out."""
ALPHAS = tuple(Fraction(k, 20) for k in range(1, 20))
"""Chances of costing more than the budget that are tried, the smallest first."""


@dataclass(frozen=True)
class C3poPolicy(RowPolicy):
    """A row of models, and the confidences at which each of them stops it."""

    scorers: Scorers
    """What a model's confidence is taken to be where none was recorded."""
    models: IntArray
    """[M] from the cheapest; the last one answers what reaches it."""
    thresholds: FloatArray
    """[G, M] the least confidence that stops the row; above 1 the model is not asked."""
    budget_usd: FloatArray
    """[G] what a question costs at most, but for a chance of `alpha`."""
    alpha: FloatArray
    """[G] that chance."""
    values: FloatArray
    """[G] mean cost in training, in dollars."""

    def row(self, point: int) -> Sequence[int]:
        return list_of(self.models[self.thresholds[point] <= 1])

    def stages(self, traces: TraceArrays) -> Stages:
        return Stages(traces, lambda of, _: confidence(of, self.scorers))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the confidence is below the model's threshold."""
        model = self.row(point)[k]
        threshold = self.thresholds[point][self.models == model]
        return stages[0][:, model] < threshold, everyone(stages.traces, model)


def confidence(traces: TraceArrays, scorers: Scorers) -> FloatArray:
    """Return how sure each model is, [n, L]: as recorded, else estimated; -1 without answer."""
    unknown = np.full(traces.answer.shape, np.nan)
    said = np.asarray(traces.signals.get("confidence", unknown), dtype=np.float64)[:, 0, :]
    sure = np.where(np.isnan(said), scorers.p_right(traces), said)
    return np.where(traces.answer[:, 0, :] == NO_ANSWER, -1.0, sure)


@dataclass(frozen=True)
class Search:
    """What a choice of thresholds is tried on: half the questions say how it agrees, half its cost.

    Arrays are of the M models of the row, from the cheapest on.
    """

    sure: FloatArray
    """[n, M] confidences."""
    agrees: BoolArray
    """[n, M] whether an answer is the last model's."""
    cost_nano: IntArray
    """[n, M]"""
    budgets: BoolArray
    """[n] questions whose cost is bounded; the others say how often answers agree."""

    def choices(self) -> Iterator[FloatArray]:
        """Yield thresholds, [M]: every combination for the models before the last one."""
        before = self.sure.shape[1] - 1
        steps = int(min(STEPS, TRIED ** (1 / max(before, 1))))
        levels = np.linspace(0, 1, steps - 1)
        grid = np.quantile(self.sure[:, :before], levels, axis=0, method="higher")
        grid = np.concatenate([np.maximum(grid, 0.0), np.full((1, before), LEFT_OUT)])
        for places in product(range(len(grid)), repeat=before):
            yield np.append(grid[list(places), np.arange(before)], 0.0)

    def followed(self, thresholds: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return what each question costs under thresholds, [n], and whether its answer agrees."""
        n, last = len(self.sure), len(thresholds) - 1
        on, same = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        cost = np.zeros(n, dtype=np.int64)
        for k in np.flatnonzero(thresholds <= 1):
            cost += on * self.cost_nano[:, k]
            stops = on & ((self.sure[:, k] >= thresholds[k]) | (k == last))
            same |= stops & self.agrees[:, k]
            on &= ~stops
        return cost, same


def bounds(cost_nano: IntArray, alphas: Sequence[Fraction]) -> FloatArray:
    """Return what a new question costs at most, but for a chance of each alpha, in nano-dollars.

    The ceil((n + 1) (1 - alpha))-th smallest of n costs; infinite where that is more than n. A
    question that is exchangeable with the n costs more with probability at most alpha.

    Source: split conformal prediction, as in `ours.py` of the authors' code.

    >>> bounds(np.array([30, 10, 20]), [Fraction(1, 4), Fraction(1, 2), Fraction(1, 5)])
    array([30., 20., inf])
    """
    n = len(cost_nano)
    ranks = [ceil((n + 1) * (1 - alpha)) for alpha in alphas]
    sorted_cost = np.append(np.sort(cost_nano).astype(np.float64), np.inf)
    return sorted_cost[[min(rank, n + 1) - 1 for rank in ranks]]


@dataclass(frozen=True)
class C3poLearner(PoolLearner):
    """Keeps the best thresholds of every budget and alpha."""

    strong: str | None = None
    """The last model, which the others are to agree with; None: the most expensive one."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        cost = tables(train).cost
        top = strongest(train, self.strong) if self.strong else int(cost.mean(axis=0).argmax())
        agrees = agreement(train, top)
        scorers = fit_agreement(train, agrees)
        models = ladder(PoolTables(agrees, cost), top)[-MODELS:]
        half = np.random.default_rng(seed).permutation(len(train)) < len(train) // 2
        search = Search(
            confidence(train, scorers)[:, models],
            agrees[:, models],
            train.cost_nano[:, 0, :][:, models],
            half,
        )
        return C3poPolicy(scorers, models, *best(search))


def best(search: Search) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the thresholds that agree most often at some budget and alpha, from the cheapest on.

    Whatever the budget, its best choice is one that no other beats both in agreement and in the
    bound on its cost: these are found for each alpha. Of equals the one that costs less on average
    is taken. Of all that are found those stay that no other beats in agreement and mean cost; the
    last one asks the last model alone.

    Returns:
        Thresholds, [G, M], and [G] budgets in dollars, alphas and mean costs in dollars.
    """
    tried = np.array(list(search.choices()))
    followed = [search.followed(thresholds) for thresholds in tried]
    mean = np.array([cost.mean() for cost, _ in followed])
    agreed = np.array([same[~search.budgets].mean() for _, same in followed])
    bound = np.array([bounds(cost[search.budgets], ALPHAS) for cost, _ in followed])
    order, last = np.argsort(mean, kind="stable"), len(tried) - 1
    found = {last: int(np.isfinite(bound[last]).argmax())}
    for a in range(len(ALPHAS)):
        for c in order[frontier(bound[order, a], agreed[order])].tolist():
            if np.isfinite(bound[c, a]):
                found.setdefault(c, a)
    cheaper = np.array([c for c in found if mean[c] < mean[last]], dtype=np.int64)
    kept = cheaper[frontier(mean[cheaper], agreed[cheaper])]
    most = min(len(kept), SETTINGS - 1)
    kept = kept[np.linspace(0, len(kept) - 1, most).round().astype(int)]
    chosen = [*kept.tolist(), last]
    at = [found[c] for c in chosen]
    alphas = np.array([float(ALPHAS[a]) for a in at])
    return tried[chosen], bound[chosen, at] / 1e9, alphas, mean[chosen] / 1e9


def agreement(traces: TraceArrays, top: int) -> BoolArray:
    """Return which answers are those of the model `top`, [n, L]; none where it has none."""
    answer = traces.answer[:, 0, :]
    theirs = answer[:, top, None]
    return np.asarray((answer == theirs) & (theirs != NO_ANSWER))


def fit_agreement(train: TraceArrays, agrees: BoolArray) -> Scorers:
    """Fit how likely each model's answer agrees, by what was recorded beside it."""
    names = tuple(name for name in SIGNALS if name in train.signals)
    made = train.answer[:, 0, :] != NO_ANSWER
    return fit_to(names, signals_of(train, names), made, agrees)


C3PO = pool_method(
    name="c3po",
    label="C3PO",
    meaning="Cheap models answer where they agree with the last one, under a bound on the cost",
    paper="2511.07396",
    policy=C3poPolicy,
    learner=C3poLearner(),
    needs=("pool", "confidences"),
    place=87,
)
