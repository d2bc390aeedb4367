"""Models in turn, each trusted from a threshold of its own on: MiCP and Trust or Escalate.

Models are asked from the cheapest on; training questions set the thresholds, one after another.

**MiCP** has error budgets for each turn: stopping in turn t may go wrong on a share alpha_t only.
The threshold is the lowest at which, among all questions, those that stop there wrongly are at most
alpha_t. The parameter is the whole budget, the sum of alpha_t. Source: Zhou and others 2026,
arXiv:2604.01413.

**Trust or Escalate** trusts a model's answer only where its threshold keeps the error small: the
lowest at which trusted answers are wrong on a share of at most alpha, tested in a fixed sequence by
an exact binomial bound. What nobody is trusted with is answered by the last model, as nothing may
be left open here. The parameter is alpha. Source: Jung, Brahman and Choi 2025, arXiv:2407.18370,
sections 2 and 3.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

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
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.promises.statistics.beta import beta_cdf
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class TurnsPolicy(RowPolicy):
    """Models in the order of asking, and a threshold for each but the last, for each point."""

    scorers: Scorers
    models: IntArray
    """[K]"""
    values: FloatArray
    """[G] what the method trades, descending."""
    thresholds: FloatArray
    """[G, K - 1]"""

    def row(self, point: int) -> Sequence[int]:
        del point
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        return Stages(traces, lambda of, _: self.scorers.p_right(of))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the model's score is below its threshold; the last one is believed."""
        model, score = int(self.models[k]), stages[0]
        believed = k == self.thresholds.shape[1]
        goes_on = (score[:, model] < self.thresholds[point, k]) if not believed else score[:, 0] < 0
        return goes_on, everyone(stages.traces, model)


class TurnsLearner(PoolLearner):
    """Sets the thresholds of a row of models by training questions, once for each level."""

    strong: str | None
    most: ClassVar[Fraction]
    """The largest level of what the method trades; the others lie evenly below it."""

    @abstractmethod
    def thresholds(self, score: FloatArray, right: BoolArray, level: Fraction) -> FloatArray:
        """Return the threshold of each turn but the last, [K - 1], of scores and grades, [n, K]."""

    @final
    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool, scorers = tables(train), fit_scorers(train)
        turns = ladder(pool, strongest(train, self.strong))
        score, right = scorers.p_right(train)[:, turns], pool.right[:, turns]
        levels = descending_levels(self.most)
        every = [self.thresholds(score, right, level) for level in levels]
        return TurnsPolicy(scorers, turns, np.array(levels, dtype=np.float64), np.array(every))


@dataclass(frozen=True)
class MicpLearner(TurnsLearner):
    """Splits the budget so that dearer turns get more, in proportion to `share ** turn`."""

    most: ClassVar[Fraction] = Fraction(1, 2)
    share: Fraction = Fraction(1)
    """1 splits it evenly."""
    strong: str | None = None
    """The model of the last turn; None: the most accurate one in training."""

    def thresholds(self, score: FloatArray, right: BoolArray, level: Fraction) -> FloatArray:
        weights = [self.share**turn for turn in range(score.shape[1] - 1)]
        return _within_budgets(score, right, [level * w / sum(weights) for w in weights])


def _within_budgets(score: FloatArray, right: BoolArray, budget: Sequence[Fraction]) -> FloatArray:
    """Return the lowest threshold of each turn that keeps within its budget, [K - 1].

    Args:
        score: [n, K].
        right: [n, K].
        budget: [K - 1] shares of all questions.
    """
    n = len(score)
    left = np.ones(n, dtype=bool)
    thresholds = np.empty(len(budget))
    for turn, alpha in enumerate(budget):
        wrong = np.sort(score[left & ~right[:, turn], turn])[::-1]
        allowed = int(alpha * (n + 1)) - 1  # the next question may be wrong as well
        if allowed < 0:
            thresholds[turn] = np.inf
        elif allowed >= len(wrong):
            thresholds[turn] = -np.inf
        else:
            thresholds[turn] = np.nextafter(wrong[allowed], np.inf)
        left &= score[:, turn] < thresholds[turn]
    return thresholds


def descending_levels(most: Fraction, number: int = SETTINGS) -> list[Fraction]:
    """Return levels evenly apart, from `most` down to 0, exactly.

    >>> descending_levels(Fraction(1, 2), 3)
    [Fraction(1, 2), Fraction(1, 4), Fraction(0, 1)]
    """
    return [most * left / (number - 1) for left in range(number - 1, -1, -1)]


def ladder(pool: PoolTables, top: int) -> IntArray:
    """Return the models up to `top`, cheapest first, without any that a cheaper one matches."""
    cost = pool.cost.mean(axis=0)
    steps = frontier(cost, pool.right.mean(axis=0))
    return np.append(steps[(cost[steps] < cost[top]) & (steps != top)], top)


MICP = pool_method(
    name="micp",
    label="MiCP",
    meaning="Each model in turn may be wrong on its own share of the questions",
    paper="2604.01413",
    policy=TurnsPolicy,
    learner=MicpLearner(),
    tried_for=frozenset({"one"}),
    place=85,
)


DELTA = 0.1
"""Chance that one threshold breaks its promise."""


@dataclass(frozen=True)
class TrustOrEscalateLearner(TurnsLearner):
    """Fits thresholds for selective accuracy on the training questions that reach each model."""

    most: ClassVar[Fraction] = Fraction(3, 5)
    strong: str | None = None
    """The last model; None: the most accurate one in training."""

    def thresholds(self, score: FloatArray, right: BoolArray, level: Fraction) -> FloatArray:
        left = np.ones(len(score), dtype=bool)
        found = np.full(score.shape[1] - 1, np.inf)
        for turn in range(len(found)):
            found[turn] = _lowest(score[left, turn], right[left, turn], level)
            left &= score[:, turn] < found[turn]
        return found


def _lowest(score: FloatArray, right: BoolArray, alpha: Fraction) -> float:
    """Go down from the highest score until the error can no longer be bounded by alpha.

    The sequence starts where a run without a mistake would just be proof enough.
    """
    if not 0 < alpha < 1:
        return np.inf
    order = np.argsort(-score, kind="stable")
    score, wrong = score[order], np.cumsum(~right[order])
    ends = [*(score[1:] < score[:-1]).nonzero()[0].tolist(), len(score) - 1]
    least = np.log(DELTA) / np.log1p(-float(alpha))
    lowest = np.inf
    for i in ends:
        if i + 1 < least:
            continue
        if _p_value(int(wrong[i]), i + 1, alpha) > DELTA:
            break
        lowest = float(score[i])
    return lowest


def _p_value(wrong: int, n: int, alpha: Fraction) -> float:
    return 1.0 if wrong >= n else 1 - beta_cdf(float(alpha), wrong + 1, n - wrong)


TRUST_OR_ESCALATE = pool_method(
    name="trust-or-escalate",
    label="Trust or Escalate",
    meaning="Each model is trusted where its error is proved small; else the next is asked",
    paper="2407.18370",
    policy=TurnsPolicy,
    learner=TrustOrEscalateLearner(),
    tried_for=frozenset({"one"}),
    place=87,
)
