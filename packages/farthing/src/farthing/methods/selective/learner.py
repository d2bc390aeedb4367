"""Learn how sure an answer is, and how much to buy, for promises about single answers."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from farthing.errors import TooFewTracesError
from farthing.methods.base import Fitted, Method, Progress
from farthing.methods.logistic import logistic
from farthing.methods.lookahead.estimates import exported
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing.methods.selective.confidence import Confidence, Evidence, Mixture, Sureness, Votes
from farthing.methods.selective.policy import AS_TRAINED, FixedRow, SelectivePolicy, Walk, walk
from farthing.process.base import Policy
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

FOLDS = 3
STRENGTH = 1.0
"""Inverse strength of the L2 penalty on standardised evidence."""
TREES, LEAF = 48, 10
UNTIL, ENOUGH = 12, 16
"""Number of thresholds of the policy, and of sureness, that are tried."""
ROW = 0.5
"""The threshold of a row, which scores 1 and 0."""

Fit = Callable[[TraceArrays, Walk, BoolArray], Sureness]
"""Fits how sure answers are to the questions of a mask, [n]."""


@dataclass(frozen=True)
class Buying:
    """Who says what is bought: a policy or, in its place, a row."""

    policy: Policy
    empty: str
    """The mode of `replay.paths` that the policy was trained for."""
    row: FixedRow | None = None

    def walk(self, traces: TraceArrays) -> Walk:
        """Play every purchase."""
        return walk(self.row or self.policy, traces, "allow" if self.row else self.empty)

    def made(self, until: float, enough: float, sureness: Sureness) -> SelectivePolicy:
        """Return the policy that ends where an answer is sure enough."""
        return SelectivePolicy(self.policy, self.empty, until, enough, sureness, self.row)


@dataclass(frozen=True)
class PassedTo:
    """Who answers the questions to which no answer is given, and is paid for them."""

    call: int
    """Which call of the questions as they are played it is, t * L + l."""
    cost_nano: IntArray
    """[n] what it costs."""

    def after(self, known: BoolArray) -> IntArray:
        """Return what its answer costs after each purchase, [n, S]: nothing where it is known.

        Args:
            known: [n, S, T * L] which calls are known after each purchase.
        """
        return np.where(known[:, :, self.call], 0, self.cost_nano[:, None])


@dataclass(frozen=True)
class SelectiveFit:
    """A policy that is sure or not, and how it did on its training questions."""

    policy: SelectivePolicy
    sure: FloatArray
    """[n] of the answer to each training question, by an estimate fitted without that question."""
    right: BoolArray
    """[n] whether it is right."""
    cost_nano: IntArray
    """[n] what it took."""
    name: str = ""
    """What it asks and what it goes by, in words."""
    passing_nano: IntArray | None = None
    """[n] what the answer of whom questions are passed to costs beside that; None: of nobody."""


def confident(policy: Policy, train: TraceArrays, empty: str, alpha: Fraction) -> SelectiveFit:
    """Make a policy say how sure its answers are, by all that was recorded; see `learn`."""
    return learn(Buying(policy, empty), train, alpha, by_evidence, f"{AS_TRAINED}, by all evidence")


def learn(
    buying: Buying,
    train: TraceArrays,
    alpha: Fraction,
    fit: Fit,
    name: str,
    passed: PassedTo | None = None,
) -> SelectiveFit:
    """Fit how sure answers are, and choose how much is bought until enough of them are.

    Of all pairs of a threshold of the policy and a sureness that ends buying, the cheapest is taken
    that answers as many training questions as the best, within one standard error, with at most a
    share alpha of wrong answers, by one standard error again; where other questions are passed on,
    the cheapest with what that costs. No promise rests on that choice. What is returned of a
    training question is by a fit and a pair that do not know its grade. `fit` says how sure answers
    are, `name` what it asks and goes by, in words; alpha is the share of wrong answers that is to
    be promised.
    """
    walked = buying.walk(train)
    given = np.any(walked.along.traces.answer != NO_ANSWER, axis=(1, 2))
    fold = np.random.default_rng(0).permutation(len(train)) % FOLDS
    if len(set(fold[given].tolist())) < 2:  # what judges an answer is fitted without its question
        raise TooFewTracesError("too few training questions have an answer; train on more")
    sure = np.zeros(walked.along.traces.answer.shape)
    for k in range(FOLDS):
        sure[fold == k] = walked.sure(fit(train, walked, fold != k), train)[fold == k]
    passing = None if passed is None else passed.after(walked.known)
    last = np.zeros(len(train), dtype=np.int64)
    untils = [ROW] if buying.row else _steps(walked.reach[:, 1:], UNTIL)
    for k in range(FOLDS):
        pair = _best_pair(walked, sure, alpha, untils, fold != k, passing)
        last[fold == k] = _last(walked.reach, sure.max(axis=2), *pair)[fold == k]
    at, everyone = (np.arange(len(train)), last), np.ones(len(train), dtype=bool)
    pair = _best_pair(walked, sure, alpha, untils, everyone, passing)
    made = buying.made(*pair, fit(train, walked, everyone))
    right = _likeliest_right(walked, sure)[at]
    extra = None if passing is None else passing[at]
    return SelectiveFit(made, sure.max(axis=2)[at], right, _spent(walked)[at], name, extra)


def by_evidence(train: TraceArrays, walked: Walk, rows: BoolArray) -> Confidence:
    """Fit a logistic regression and a forest to all that was recorded."""
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 - training alone

    evidence = Evidence.fit(train)
    known, right = _cases(evidence, train, walked, rows)
    forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, max_features=0.5, random_state=0)
    forest.fit(known, right.astype(np.float64))
    return Confidence(evidence, _log_odds(known, right), exported(forest))


def by_votes(train: TraceArrays, walked: Walk, rows: BoolArray) -> Mixture:
    """Fit a logistic regression to who agrees and how sure each says that it is."""
    votes = Votes.fit(train)
    return Mixture(votes, _log_odds(*_cases(votes, train, walked, rows)))


def _cases(
    of: Evidence | Votes, train: TraceArrays, walked: Walk, rows: BoolArray
) -> tuple[FloatArray, BoolArray]:
    """Return the evidence of the answers to some questions, [R, F], and which are right, [R]."""
    given = (walked.along.traces.answer != NO_ANSWER) & rows[:, None, None]
    known = of.of(train, walked.known, walked.along.traces.answer)
    return known[given], walked.along.traces.correct[given]


def _log_odds(known: FloatArray, right: BoolArray) -> FloatArray:
    if right.all() or not right.any():
        odds = np.log((right.sum() + 0.5) / ((~right).sum() + 0.5))
        return np.append(np.zeros(known.shape[1]), odds)
    mean, scale = known.mean(axis=0), known.std(axis=0)
    scale[scale < 1e-9] = 1.0
    model = logistic((known - mean) / scale, right, STRENGTH)
    slope = model.coef_[0] / scale
    return np.append(slope, model.intercept_[0] - slope @ mean)


def _best_pair(
    walked: Walk,
    sure: FloatArray,
    alpha: Fraction,
    untils: list[float],
    rows: BoolArray,
    passing: IntArray | None,
) -> tuple[float, float]:
    """Return the threshold and the sureness that are best on the questions of a mask, [n].

    `passing` is what passing on costs after each purchase, [n, S]; None: nobody is passed to.
    """
    reach, best = walked.reach[rows], sure.max(axis=2)[rows]
    right, spent = _likeliest_right(walked, sure)[rows], _spent(walked)[rows]
    n = len(reach)
    pairs = list(product(untils, _steps(best, ENOUGH)))
    answered, cost = np.zeros(len(pairs)), np.zeros(len(pairs))
    for i, (until, enough) in enumerate(pairs):
        at = (np.arange(n), _last(reach, best, until, enough))
        answered[i] = _answered(best[at], right[at], float(alpha))
        cost[i] = spent[at].sum()
        if passing is not None:
            order = np.argsort(-best[at], kind="stable")
            cost[i] += passing[rows][at][order[int(answered[i]) :]].sum()
    if passing is not None:
        return pairs[int(cost.argmin())]
    most = answered.max()
    good = answered >= most - np.sqrt(most * (n - most) / n)
    return pairs[int(np.where(good, cost, np.inf).argmin())]


def _spent(walked: Walk) -> IntArray:
    """Return what all purchases up to each cost, [n, S] in nano-dollars."""
    spent: IntArray = walked.along.traces.round_cost_nano.cumsum(axis=1)
    return spent


def _steps(values: FloatArray, most: int) -> list[float]:
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


def most_answered(of: SelectiveFit, alpha: Fraction) -> int:
    """Return the most training questions answered with few enough wrong ones; see `learn`."""
    return _answered(of.sure, of.right, float(alpha))


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


SELECTIVE = Method(
    name="selective",
    label="Selective look-ahead",
    meaning="Buys until one answer is sure enough, and says how sure it is; may give none",
    policy=SelectivePolicy,
    learner=SelectiveLearner(),
    action_spaces=("rounds", "cascade"),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    empty="allow",
    place=75,
)
