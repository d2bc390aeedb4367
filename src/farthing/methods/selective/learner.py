"""Learn how sure an answer is, and how much to buy, for promises about single answers."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression

from farthing.errors import TooFewTracesError
from farthing.methods.base import Fitted, Progress
from farthing.methods.lookahead.estimates import exported
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing.methods.selective.policy import Confidence, Evidence, SelectivePolicy, Walk, walk
from farthing.process.base import Policy
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

FOLDS = 3
STRENGTH = 1.0
"""Inverse strength of the L2 penalty on standardised evidence."""
TREES, LEAF = 48, 10
UNTIL, ENOUGH = 12, 16
"""Number of thresholds of the policy, and of sureness, that are tried."""


@dataclass(frozen=True)
class Learned:
    """A policy that is sure or not, and how it did on its training questions."""

    policy: SelectivePolicy
    sure: FloatArray
    """[n] of the answer to each training question, by an estimate fitted without that question."""
    right: BoolArray
    """[n] whether it is right."""


def confident(policy: Policy, train: TraceArrays, empty: str, alpha: Fraction) -> Learned:
    """Make a policy say how sure its answers are, and buy until enough of them are.

    Of all pairs of a threshold of the policy and a sureness that ends buying, the cheapest is taken
    that answers as many training questions as the best, within one standard error, with at most
    a share alpha of wrong answers, by one standard error again. No promise rests on that choice.

    Args:
        policy: as trained.
        train: the questions that it was trained on.
        empty: the mode of `replay.paths` that it was trained for.
        alpha: the share of wrong answers that is to be promised.

    Raises:
        TooFewTracesError: too few training questions have an answer.
    """
    walked = walk(policy, train, empty)
    evidence = Evidence.fit(train)
    given = walked.along.traces.answer != NO_ANSWER
    known = evidence.of(train, walked.known, walked.along.traces.answer)[given]
    right = walked.along.traces.correct[given]
    fold = (np.random.default_rng(0).permutation(len(train)) % FOLDS)[np.nonzero(given)[0]]
    if len(set(fold.tolist())) < 2:  # what judges an answer is fitted without its question
        raise TooFewTracesError("too few training questions have an answer; train on more")
    sure = np.zeros(given.shape)
    apart = np.zeros(len(known))
    for k in range(FOLDS):
        apart[fold == k] = _fitted(evidence, known[fold != k], right[fold != k]).of(
            known[fold == k]
        )
    sure[given] = apart
    until, enough = _best_pair(walked, sure, alpha)
    last = _last(walked.reach, sure.max(axis=2), until, enough)
    at = (np.arange(len(train)), last)
    made = SelectivePolicy(policy, empty, until, enough, _fitted(evidence, known, right))
    return Learned(made, sure.max(axis=2)[at], _likeliest_right(walked, sure)[at])


def _fitted(evidence: Evidence, known: FloatArray, right: BoolArray) -> Confidence:
    """Fit to answers with evidence [R, F], right or wrong [R]."""
    forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, max_features=0.5, random_state=0)
    forest.fit(known, right.astype(np.float64))
    return Confidence(evidence, _log_odds(known, right), exported(forest))


def _log_odds(known: FloatArray, right: BoolArray) -> FloatArray:
    if right.all() or not right.any():
        odds = np.log((right.sum() + 0.5) / ((~right).sum() + 0.5))
        return np.append(np.zeros(known.shape[1]), odds)
    mean, scale = known.mean(axis=0), known.std(axis=0)
    scale[scale < 1e-9] = 1.0
    model = LogisticRegression(C=STRENGTH, solver="newton-cholesky", max_iter=100)
    model.fit((known - mean) / scale, right)
    slope = model.coef_[0] / scale
    return np.append(slope, model.intercept_[0] - slope @ mean)


def _best_pair(walked: Walk, sure: FloatArray, alpha: Fraction) -> tuple[float, float]:
    n = len(sure)
    best, right = sure.max(axis=2), _likeliest_right(walked, sure)
    spent = walked.along.traces.round_cost_nano.cumsum(axis=1)
    pairs = list(product(_steps(walked.reach[:, 1:], UNTIL), _steps(best, ENOUGH)))
    answered, cost = np.zeros(len(pairs)), np.zeros(len(pairs))
    for i, (until, enough) in enumerate(pairs):
        at = (np.arange(n), _last(walked.reach, best, until, enough))
        answered[i] = _answered(best[at], right[at], float(alpha))
        cost[i] = spent[at].sum()
    most = answered.max()
    good = answered >= most - np.sqrt(most * (n - most) / n)
    return pairs[int(np.where(good, cost, np.inf).argmin())]


def _steps(values: FloatArray, most: int) -> list[float]:
    """Return quantiles of values, and before them one that none reaches, falling."""
    inner = values[(values > 0) & (values < 1)]
    shares = np.linspace(0, 1, most if inner.size else 0)
    found = np.unique(np.quantile(inner, shares, method="nearest")) if inner.size else inner
    return [1.0 + 1e-9, *found[::-1].tolist()]


def _last(reach: FloatArray, best: FloatArray, until: float, enough: float) -> IntArray:
    """Return after which purchase each question ends, [n]."""
    go_on = (reach[:, 1:] >= until) & (best[:, :-1] < enough)
    last: IntArray = np.logical_and.accumulate(go_on, axis=1).sum(axis=1)
    return last


def _likeliest_right(walked: Walk, sure: FloatArray) -> BoolArray:
    """Return whether the likeliest answer of each purchase is right, [n, S]."""
    place = sure.argmax(axis=2)[:, :, None]
    found: BoolArray = np.take_along_axis(walked.along.traces.correct, place, axis=2)[..., 0]
    return found


def _answered(sure: FloatArray, right: BoolArray, alpha: float) -> int:
    """Return the most answers that are given, the surest first, with few enough wrong ones."""
    order = np.argsort(-sure, kind="stable")
    number = np.arange(1, len(sure) + 1)
    wrong = np.cumsum(~right[order])
    fine = wrong + np.sqrt(alpha * (1 - alpha) * number) <= alpha * number
    return int(number[fine].max(initial=0))


@dataclass(frozen=True)
class SelectiveLearner:
    """Trains look-ahead, then makes it say how sure its answers are."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train on recorded questions for a share `alpha` of wrong answers."""
        policy = LookaheadLearner().fit(train, alpha, seed, progress).policy
        return Fitted(confident(policy, train, "argmax", alpha).policy)


SELECTIVE = SelectiveLearner()
