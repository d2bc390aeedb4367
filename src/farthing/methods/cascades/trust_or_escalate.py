"""Trust or Escalate: each model's answer is trusted only where its threshold keeps the error small.

Models are asked from the cheapest on. The threshold of each is the lowest at which trusted answers
are wrong on a share of at most alpha, tested in a fixed sequence by an exact binomial bound. What
nobody is trusted with is answered by the last model, as nothing may be left open here. The
parameter
is alpha.

Source: Jung, Brahman and Choi 2025, arXiv:2407.18370, sections 2 and 3.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.base import Method
from farthing.methods.cascades.turns import TurnsPolicy
from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    descending_levels,
    ladder,
    strongest,
    tables,
)
from farthing.methods.scorer import fit_scorers
from farthing.promises.statistics.beta import beta_cdf
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

DELTA = 0.1
"""Chance that one threshold breaks its promise."""


@dataclass(frozen=True)
class TrustOrEscalateLearner(PoolLearner):
    """Fits thresholds for selective accuracy on the training questions that reach each model."""

    strong: str | None = None
    """The last model; None: the most accurate one in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Set the thresholds of every model for every alpha."""
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        models = ladder(pool, strongest(train, self.strong))
        alphas = descending_levels(Fraction(3, 5))
        every = [_thresholds(score[:, models], pool.right[:, models], alpha) for alpha in alphas]
        values = np.array(alphas, dtype=np.float64)
        return TurnsPolicy(scorers, models, values, np.array(every))


def _thresholds(score: FloatArray, right: BoolArray, alpha: Fraction) -> FloatArray:
    """[K - 1] one a model, each on the questions that the ones before did not settle."""
    left = np.ones(len(score), dtype=bool)
    found = np.full(score.shape[1] - 1, np.inf)
    for turn in range(len(found)):
        found[turn] = _lowest(score[left, turn], right[left, turn], alpha)
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
    """Return P(Bin(n, alpha) <= wrong)."""
    return 1.0 if wrong >= n else 1 - beta_cdf(float(alpha), wrong + 1, n - wrong)


TRUST_OR_ESCALATE = Method(
    name="trust-or-escalate",
    label="Trust or Escalate",
    meaning="Each model is trusted where its error is proved small; else the next is asked",
    paper="2407.18370",
    policy=TurnsPolicy,
    learner=TrustOrEscalateLearner(),
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    imports=("sklearn.linear_model",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=87,
)
