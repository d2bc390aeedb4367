"""Bayesian orchestration over a pool: opinions until one more is worth less than it costs.

After each reply every judge that is left has a value: what a wrong answer costs, times what its
reply adds to the chance that the best answer is right (`Judges`). While some value exceeds its
judge's mean price, the judge with the largest value per dollar is asked; else the likeliest answer
is given. Since what a wrong answer costs divides out of that choice, all operating points follow
one order a question and stop at different places. The parameter is that cost; it is kept as minus
its inverse, minus wrong answers per dollar.

Source: arXiv 2601.01522; who is asked first among those worth their price is ours.
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InputError
from farthing.methods.pool import (
    SETTINGS,
    PoolLearner,
    PoolPolicy,
    pool_method,
    possible_answers,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

ROWS = 500
"""Questions whose replies are weighed at once, so that little memory is needed."""
DIGITS = 12
"""Of a gain; what lies below depends on the order of additions."""
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
class Judges:
    """How L judges reply."""

    scorers: Scorers
    edges: FloatArray
    """[L, B - 1] between bins of the scorers' probabilities."""
    classes: FloatArray
    """[H] share of the questions in each class of difficulty."""
    right: FloatArray
    """[L, H] r, above 0 and below 1."""
    silent: FloatArray
    """[L] s."""
    sure: FloatArray
    """[2, L, B] chances of the bins where it is wrong, and where it is right."""
    answers: float
    """K."""
    correlation: float = 0.0
    """rho, from 0 to 1."""

    def said(self, traces: TraceArrays) -> "JudgeReplies":
        score = self.scorers.p_right(traces)
        bins = (score[:, :, None] > self.edges).sum(axis=2)
        return JudgeReplies(traces.answer[:, 0, :].astype(np.int64), bins)

    def belief(self, replies: "JudgeReplies", known: BoolArray) -> "Belief":
        """Return what the known replies, [n, L], say.

        A candidate stands under the first judge that gives its answer.
        """
        said = known & (replies.answer != NO_ANSWER)
        same = (replies.answer[:, :, None] == replies.answer[:, None]) & said[:, None]
        first = said & ~(np.tril(same, -1).any(axis=2))
        at = np.arange(len(self.right))
        wrong, right = (np.log(self.sure[k][at, replies.bins]) for k in (0, 1))  # [n, L]
        agrees = np.log(self.right) + right[:, :, None]  # [n, L, H]
        differs = np.log1p(-self.right) + (np.log(self._one_wrong()) + wrong)[:, :, None]
        silence = np.log1p(-self.right) + np.log(self.silent)[:, None]
        against = np.where(said[:, :, None], differs, np.where(known[:, :, None], silence, 0.0))
        shared = 1.0 + self.correlation * np.maximum(known.sum(axis=1) - 1, 0)  # [n]
        none = np.log(self.classes) + against.sum(axis=1) / shared[:, None]  # [n, H] all are wrong
        lift = np.where(same[:, :, :, None], (agrees - differs)[:, None], 0.0).sum(axis=2)
        lift /= shared[:, None, None]
        heard = np.where(first[:, :, None], none[:, None] + lift, -np.inf)  # [n, L, H]
        top = np.maximum(heard.max(axis=(1, 2)), none.max(axis=1))[:, None]
        unheard = np.maximum(self.answers - first.sum(axis=1), 0.0)
        weight, left = np.exp(heard - top[:, None]), np.exp(none - top)
        total = weight.sum(axis=(1, 2)) + unheard * left.sum(axis=1)
        return Belief(weight / total[:, None, None], left / total[:, None], unheard, first)

    def gain(self, belief: "Belief") -> FloatArray:
        """Return what a reply of each judge adds to the chance that the answer is right, [n, L]."""
        right = self.right[:, :, None] * self.sure[1][:, None]  # [L, H, B]
        one_wrong = self._one_wrong()[:, None] * self.sure[0]  # [L, B]
        wrong = (1.0 - self.right)[:, :, None] * one_wrong[:, None]
        weight = belief.heard[:, :, None, :, None]  # [n, candidate, judge, H, bin]
        agrees, differs = (weight * right).sum(axis=3), (weight * wrong).sum(axis=3)
        which = np.arange(agrees.shape[1])[None, :, None, None]
        leads = differs.argmax(axis=1)[:, None] == which
        best = differs.max(axis=1)
        second = np.where(leads, 0.0, differs).max(axis=1)
        other = np.where(leads, second[:, None], best[:, None])
        candidate = belief.first[:, :, None, None]
        heard = (candidate * np.maximum(agrees, other)).sum(axis=(1, 3))
        unheard = belief.unheard[:, None, None]
        new = (belief.left[:, None, :, None] * right).sum(axis=2) * unheard
        fresh = np.maximum(new, best * unheard).sum(axis=2)
        mute = (1.0 - self.right) * self.silent[:, None]  # [L, H]
        nothing = (belief.heard[:, :, None] * mute).sum(axis=3).max(axis=1)
        later: FloatArray = heard + fresh + nothing - belief.chance.max(axis=1)[:, None]
        return np.maximum(np.round(later, DIGITS), 0.0)

    def _one_wrong(self) -> FloatArray:
        """Return the chance that a wrong judge says one certain wrong answer, [L]."""
        chance: FloatArray = (1.0 - self.silent) / (self.answers - 1.0)
        return chance


@dataclass(frozen=True)
class JudgeReplies:
    """What judges say, [n, L]; only where `known` says so was it paid for."""

    answer: IntArray
    bins: IntArray


@dataclass(frozen=True)
class Belief:
    """Probabilities after some replies; those of all states add up to 1."""

    heard: FloatArray
    """[n, L, H] that the answer of this judge is right and the question in this class; 0 where an
    earlier judge gave the same answer, or this one none."""
    left: FloatArray
    """[n, H] the same of one certain answer that nobody gave."""
    unheard: FloatArray
    """[n] the number of those."""
    first: BoolArray
    """[n, L] the judges under whom candidates stand."""

    @property
    def chance(self) -> FloatArray:
        """[n, L] that each candidate is right."""
        chance: FloatArray = self.heard.sum(axis=2)
        return chance

    @property
    def leader(self) -> IntArray:
        """[n] the judge under whom the likeliest answer stands; -1 where there is none."""
        return np.where(self.first.any(axis=1), np.round(self.chance, DIGITS).argmax(axis=1), -1)


@dataclass(frozen=True)
class OpinionsPolicy(PoolPolicy):
    """What is known of the judges, and their prices."""

    judges: Judges
    price_usd: FloatArray
    """[L] mean price of a reply; above 0."""
    values: FloatArray
    """[G] minus one over the cost of a wrong answer in dollars, ascending to 0."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Ask the judge worth most per dollar, if its value exceeds its price."""
        belief = self.judges.belief(self.judges.said(state.seen), state.known)
        worth = self._worth(self.judges.gain(belief), state.can_buy & ~state.known)
        line, best = worth.argmax(axis=1), worth.max(axis=1)
        first = ~state.known.any(axis=1) & (best >= 0)
        asks = first | ((best >= 0) & (-best < self.values[point]))
        return np.where(asks, line, NOTHING), asks, belief.leader

    def points(self, traces: TraceArrays) -> OperatingPoints:
        replies = self.judges.said(traces)
        offered = np.ones((len(traces), traces.n_roles), dtype=bool)
        parts = [
            self._along(
                JudgeReplies(
                    replies.answer[first : first + ROWS], replies.bins[first : first + ROWS]
                ),
                offered[first : first + ROWS],
            )
            for first in range(0, max(len(traces), 1), ROWS)
        ]
        order, score, leader = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sweep(traces, order, score, leader, self.values)

    def _along(
        self, replies: JudgeReplies, offered: BoolArray
    ) -> tuple[IntArray, FloatArray, IntArray]:
        """Return who is asked in which order, the score after each reply, and who leads: [n, L]."""
        n, judges = offered.shape
        known, rows = np.zeros((n, judges), dtype=bool), np.arange(n)
        order, leader = np.zeros((2, n, judges), dtype=np.int64)
        score = np.zeros((n, judges))
        worth = self._of(replies, known, offered)[0]
        for k in range(judges):
            order[:, k] = np.where(known, -np.inf, worth).argmax(axis=1)
            known[rows, order[:, k]] = True
            worth, leader[:, k] = self._of(replies, known, offered)
            score[:, k] = -np.maximum(worth.max(axis=1), 0.0)
        return order, score, leader

    def _of(
        self, replies: JudgeReplies, known: BoolArray, offered: BoolArray
    ) -> tuple[FloatArray, IntArray]:
        belief = self.judges.belief(replies, known & offered)
        return self._worth(self.judges.gain(belief), offered & ~known), belief.leader

    def _worth(self, gain: FloatArray, can: BoolArray) -> FloatArray:
        """Return the gain per dollar of each judge, [n, L]; -1 where it cannot be asked."""
        return np.where(can, gain / self.price_usd, -1.0)


@dataclass(frozen=True)
class OpinionsLearner(PoolLearner):
    """Learns the judges' likelihoods and prices."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        del seed
        pool = tables(train)
        made = np.maximum(train.made[:, 0].sum(axis=0), 1)
        price = np.maximum(pool.cost.sum(axis=0) / made, LEAST_USD)
        dear = float(price.max())
        wrong_usd = np.geomspace(float(price.min()), 1e6 * dear, SETTINGS - 1)
        return OpinionsPolicy(fit_judges(train), price, np.append(-1.0 / wrong_usd, 0.0))


def fit_judges(train: TraceArrays) -> Judges:
    """Return how the models of a pool reply."""
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
    part = np.random.default_rng(0).permutation(len(train)) % RATERS

    def rater(rows: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what a rater that saw these questions says: r, s and the chances of bins."""
        wrong, hits, spoke = (graded & ~right)[rows], right[rows], said[rows]
        silent = ((wrong & ~spoke).sum(axis=0) + 0.5) / (wrong.sum(axis=0) + 1.0)
        inside = bins[rows][:, :, None] == np.arange(BINS)
        counts = [(inside & of[:, :, None]).sum(axis=0) + 0.5 for of in (wrong & spoke, hits)]
        sure = np.array([one / one.sum(axis=1, keepdims=True) for one in counts])
        return _rates(graded[rows], hits, member[rows]), silent, sure

    raters = [rater(part != one) for one in range(RATERS)]
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


def sweep(
    traces: TraceArrays,
    order: IntArray,
    score: FloatArray,
    chosen: IntArray,
    values: FloatArray,
) -> OperatingPoints:
    """Ask models in an order until a score reaches a value; the last one asked ends it anyway.

    Args:
        traces: a pool, [n, 1, L].
        order: [K] or [n, K] the models to ask, without repetition.
        score: [n, K] score after each call, from what was known after it.
        chosen: [n, K] whose answer to give when stopping there; -1 to give none.
        values: [G] thresholds, ascending, so that later points cost more on every question.

    Returns:
        One point a threshold.
    """
    n = len(traces)
    order = np.broadcast_to(order, score.shape)
    reached = np.maximum.accumulate(score, axis=1)[:, None, :-1] >= values[:, None]
    stop = (~reached).sum(axis=2)
    rows = np.arange(n)[:, None]
    place = np.full((n, traces.n_roles), traces.n_roles)  # a model that is not in the order: never
    place[rows, order] = np.arange(order.shape[1])
    made = place[:, None, :] <= stop[:, :, None]
    return of_calls(traces, values, made, chosen[rows, stop])


OPINIONS = pool_method(
    name="bayesian-orchestration",
    label="Bayesian orchestration",
    meaning="Weighs opinions by Bayes; buys one more while it saves more than it costs",
    paper="2601.01522",
    policy=OpinionsPolicy,
    learner=OpinionsLearner(),
    varies_with=frozenset(),
    place=92,
)
