"""Conformal LLM routing: a gate on the question's text, and a tolerance for what is lost by it.

A logistic regression on embeddings estimates the chance of a violation: that the weak model is
wrong where the strong one is right. Questions below a threshold go to the weak model. On training
questions that the gate was not fitted to, each threshold has a Clopper-Pearson upper bound, at
confidence 1 - delta, on the share of violations among the questions that it routes. The parameter
is the tolerance alpha: the threshold that routes most among those whose bound is at most alpha.

Each bound is for a threshold that is fixed beforehand. The most permissive one is chosen by the
same questions, and for that a bound point by point is no proof; what is promised of a point is
proved on other questions. Where both models are wrong there is no violation.

Differences: the weak model is the one that saves most for what it loses in training; delta and the
gate's penalty are ours, since the text at hand does not say them.

Source: Uddin and Bauer 2026, "Conformal LLM Routing with Distribution-Free Safety Guarantees", ACL
Student Research Workshop, 2026.acl-srw.70, after the gate of arXiv:2603.14623; both were read as
abstracts.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.pool import (
    SETTINGS,
    PoolLearner,
    PoolPolicy,
    frontier,
    pool_method,
    strongest,
    tables,
)
from farthing.methods.scorer import logistic
from farthing.promises.statistics.binomial import binomial_upper
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing_lab.features.question import HASHED_WORDS, embedded
from farthing_lab.methods.routers.two_models import TwoModelPolicy, weak_beside

STRENGTH = 1.0
"""Inverse strength of the L2 penalty on the gate's weights."""


@dataclass(frozen=True)
class ConformalRoutingPolicy(TwoModelPolicy):
    """Two models, the gate between them, and its threshold at each tolerance."""

    embedding: str
    """How questions become vectors: a name of `features.question`."""
    weak: int
    strong: int
    weights: FloatArray
    """[d + 1] of the gate, the constant last."""
    thresholds: FloatArray
    """[G] the least chance of a violation at which the strong model is asked, descending."""
    values: FloatArray
    """[G] the tolerance from which on a threshold is chosen, descending; 0 routes nothing."""

    @property
    def cuts(self) -> FloatArray:
        return self.thresholds

    def score(self, traces: TraceArrays) -> FloatArray:
        logit = embedded(traces, self.embedding) @ self.weights[:-1] + self.weights[-1]
        return np.asarray(1 / (1 + np.exp(-logit)))


@dataclass(frozen=True)
class ConformalRoutingLearner(PoolLearner):
    """Fits the gate on half of the training questions and bounds its thresholds on the other."""

    strong: str | None = None
    """The strong model; None: the most accurate one in training."""
    embedding: str = HASHED_WORDS
    """How questions become vectors."""
    delta: Fraction = Fraction(1, 10)
    """The chance that a bound on violations does not hold."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        pool = tables(train)
        strong = strongest(train, self.strong)
        weak = weak_beside(pool, strong)
        violated = pool.right[:, strong] & ~pool.right[:, weak]
        gate = np.random.default_rng(seed).permutation(len(train)) < len(train) // 2
        vectors = embedded(train.take(gate), self.embedding)
        weights = logistic(vectors, violated[gate], STRENGTH)
        routing = ConformalRoutingPolicy(
            self.embedding, weak, strong, weights, np.empty(0), np.empty(0)
        )
        score = routing.rounded(train.take(~gate))
        thresholds, tolerances = tolerated(score, violated[~gate], float(self.delta))
        return ConformalRoutingPolicy(self.embedding, weak, strong, weights, thresholds, tolerances)


def tolerated(
    score: FloatArray, violated: BoolArray, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Return the thresholds that some tolerance chooses, and the least one that does, [G] each.

    Both fall; the last point routes nothing, which needs no tolerance.

    Args:
        score: [n] estimated chance of a violation; below the threshold the weak model answers.
        violated: [n] whether the weak model is wrong where the strong one is right.
        delta: the chance that a bound does not hold.

    >>> score, violated = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 0, 1], dtype=bool)
    >>> thresholds, tolerances = tolerated(score, violated, 0.5)
    >>> thresholds, tolerances.round(3)
    (array([ inf,  0.4, -inf]), array([0.386, 0.206, 0.   ]))
    """
    values = np.unique(score)
    some = np.linspace(0, len(values) - 1, min(len(values), SETTINGS - 1)).round().astype(int)
    cuts = np.append(values[some], np.inf)
    routed = score[:, None] < cuts
    counts, lost = routed.sum(axis=0), (routed & violated[:, None]).sum(axis=0)
    any_routed = np.flatnonzero(counts)
    bounds = [binomial_upper(int(lost[c]), int(counts[c]), delta) for c in any_routed]
    upper = np.array(bounds)
    kept = frontier(upper, counts[any_routed].astype(np.float64))[::-1]
    return np.append(cuts[any_routed][kept], -np.inf), np.append(upper[kept], 0.0)


CONFORMAL_ROUTING = pool_method(
    name="conformal-routing",
    label="Conformal LLM routing",
    meaning="A gate on the question's text sends it to a weak model where that loses little",
    paper="2603.14623",
    policy=ConformalRoutingPolicy,
    learner=ConformalRoutingLearner(),
    needs=("pool", "text"),
    place=91,
)
