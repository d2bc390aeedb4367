"""Learn how recorded judges reply, from grades: their likelihoods in each state.

Classes of difficulty by expectation and maximisation on who was right (a latent class model). Then
each judge's rates, in the five parts of the questions that leave one fifth out each; of these five
raters the median counts.
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InputError
from farthing.methods.bayesian_judges.judges import Judges
from farthing.methods.bayesian_judges.policy import OpinionsPolicy
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import SETTINGS, PoolTables, possible_answers, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

CLASSES = 3
BINS = 4
RATERS = 5
CORRELATIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""That are tried."""
LEAST_CHANCE = 0.01
STEPS = 100
"""Of expectation and maximisation."""
LEAST_USD = 1e-12
"""No reply is taken to cost less."""


@dataclass(frozen=True)
class OpinionsLearner(PoolLearner):
    """Learns the judges' likelihoods and prices."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Learn from training questions; no seed changes anything.

        Raises:
            InputError: the questions are no pool, or nothing was graded.
        """
        del seed
        pool = tables(train)
        price = _prices(train, pool)
        dear = float(price.max())
        wrong_usd = np.geomspace(float(price.min()), 1e6 * dear, SETTINGS - 1)
        return OpinionsPolicy(fit_judges(train), price, np.append(-1.0 / wrong_usd, 0.0))


def fit_judges(train: TraceArrays) -> Judges:
    """Return how the models of a pool reply.

    Args:
        train: graded questions of a pool; which of them make up the fifths is always the same.

    Raises:
        InputError: nothing was graded.
    """
    graded, right = train.made[:, 0] & ~train.ungraded[:, 0], train.correct[:, 0]
    if not graded.any():
        raise InputError("no answer is graded, so nobody knows who is right; record `gold`")
    scorers = fit_scorers(train)
    score = scorers.p_right(train)
    shares = np.arange(1, BINS) / BINS
    heard = [score[graded[:, m], m] for m in range(train.n_roles)]
    edges = np.array([np.quantile(one, shares) if one.size else 0 * shares for one in heard])
    bins = (score[:, :, None] > edges).sum(axis=2)
    share, member = classes(graded, right)
    said = train.answer[:, 0] != NO_ANSWER
    counted = _Counted(graded, right, said, bins, member)
    part = np.random.default_rng(0).permutation(len(train)) % RATERS
    raters = [counted.rates(part != one) for one in range(RATERS)]
    rate, silent, sure = (np.median(each, axis=0) for each in zip(*raters, strict=True))
    sure = sure / sure.sum(axis=2, keepdims=True)
    found = Judges(scorers, edges, share, rate, silent, sure, possible_answers(train))
    return replace(found, correlation=_correlation(found, train, graded))


def _correlation(judges: Judges, train: TraceArrays, graded: BoolArray) -> float:
    """Return the correlation under which what came true was likeliest, after 1 to L replies."""
    replies, right = judges.said(train), train.correct[:, 0] & graded
    judge = np.arange(train.n_roles)
    lost = []
    for rho in CORRELATIONS:
        one, total = replace(judges, correlation=rho), 0.0
        for last in judge.tolist():
            known = graded & (judge <= last)
            belief = one.belief(replies, known)
            truth = np.where(right & known, belief.chance, 0.0).sum(axis=1)
            unheard = belief.left.sum(axis=1) * belief.unheard
            came = np.where((right & known).any(axis=1), truth, unheard)
            total -= float(np.log(np.maximum(came, LEAST_CHANCE)).sum())
        lost.append(total)
    return CORRELATIONS[int(np.argmin(lost))]


def classes(
    graded: BoolArray, right: BoolArray, number: int = CLASSES
) -> tuple[FloatArray, FloatArray]:
    """Return the share of each class of difficulty, [H], and of which each question is, [n, H].

    A latent class model: given its class, judges are right independently.

    Args:
        graded: [n, L] which grades are known.
        right: [n, L]
        number: H, the hardest first.
    """
    rows = (graded & right).sum(axis=1) / np.maximum(graded.sum(axis=1), 1)
    rank = np.argsort(np.argsort(rows, kind="stable"), kind="stable")
    member = np.full((len(rows), number), 0.1 / number)
    member[np.arange(len(rows)), rank * number // len(rows)] += 0.9
    share = np.full(number, 1.0 / number)
    for _ in range(STEPS):
        share = (member.sum(axis=0) + 1.0) / (len(rows) + number)
        rate = _rates(graded, right, member)
        logs = np.log(share) + (graded & right) @ np.log(rate) + (graded & ~right) @ np.log1p(-rate)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        member = weight / weight.sum(axis=1, keepdims=True)
    return share, member


def _rates(graded: BoolArray, right: BoolArray, member: FloatArray) -> FloatArray:
    """Return how often each judge is right in each class, [L, H]; one more of each kind counts."""
    hits = (graded & right).T.astype(float) @ member + 1.0
    return np.asarray(hits / (graded.T.astype(float) @ member + 2.0))


@dataclass(frozen=True)
class _Counted:
    graded: BoolArray
    right: BoolArray
    said: BoolArray
    bins: IntArray
    member: FloatArray

    def rates(self, rows: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what a rater that saw these questions says: r, s and the chances of bins."""
        graded, right, said = self.graded[rows], self.right[rows], self.said[rows]
        wrong = graded & ~right
        silent = ((wrong & ~said).sum(axis=0) + 0.5) / (wrong.sum(axis=0) + 1.0)
        inside = self.bins[rows][:, :, None] == np.arange(BINS)
        counts = [(inside & of[:, :, None]).sum(axis=0) + 0.5 for of in (wrong & said, right)]
        sure = np.array([one / one.sum(axis=1, keepdims=True) for one in counts])
        return _rates(graded, right, self.member[rows]), silent, sure


def _prices(train: TraceArrays, pool: PoolTables) -> FloatArray:
    made = np.maximum(train.made[:, 0].sum(axis=0), 1)
    price: FloatArray = np.maximum(pool.cost.sum(axis=0) / made, LEAST_USD)
    return price


OPINIONS = OpinionsLearner()
