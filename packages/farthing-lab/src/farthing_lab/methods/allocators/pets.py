"""PETS: the samples of a budget go where they are likeliest to settle the vote.

Three ways, by what is known:

* **All questions are at hand** (`buy`): after each sample, the question whose next sample can add
  most to the probability that its leader is the vote of infinitely many (`votes.gain`) gets it.
* **Questions come one by one** (`plan`): each gets four samples; how many of them agree puts it in
  a bucket; recorded questions say how the vote settles there, A(k) = Phi(a sqrt(k) + b); and the
  budget is shared among buckets, once, by these curves.
* **Curves are known** (`allocate`): a batch whose options are numbers of samples. That is a
  multiple-choice knapsack; where gains fall with each sample its steps are the greedy ones.

Source: arXiv 2602.16745, as its abstract says it. The optimistic gain, the buckets (by how many of
the first four samples agree) and the fit by least squares are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from math import erf, factorial, lgamma, sqrt
from statistics import NormalDist

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray
from farthing.traces.pool import leaders
from farthing_lab.methods.allocators.base import Allocation, ItemBatch, rising_line
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN

FIRST = 4
"""Samples that a question of a stream gets before it is put in a bucket."""
CERTAIN = 0.999
"""A share of votes that agree counts as at most this, and at least as one minus it, in the fit."""
NODES = 120
"""Of the integral over Gamma variables; more change the eighth digit."""
PRIOR = 1
"""Pseudo-count of each answer, and of the answers not seen; ours."""


@dataclass(frozen=True)
class Bucket:
    """Questions of a stream of whose first samples so many agree."""

    agree: int
    """Of the first four."""
    share: float
    """Of recorded questions."""
    slope: float
    """a"""
    offset: float
    """b"""
    samples: tuple[int, ...] = ()
    """What its questions get, in turn; the first four included."""

    def curve(self, k: FloatArray) -> FloatArray:
        """Return A(k) = Phi(a sqrt(k) + b): how likely the vote of k samples stays."""
        at = (self.slope * np.sqrt(k) + self.offset) / sqrt(2.0)
        return np.array([(1.0 + erf(x)) / 2.0 for x in at.tolist()])


@dataclass(frozen=True)
class SamplingPlan:
    """How many samples a question of a stream gets."""

    buckets: tuple[Bucket, ...]
    """By how many of the first four samples agree."""

    def stream(self, answer: IntArray, budget: int) -> IntArray:
        """Return how many samples each question of a stream gets, [n].

        The budget is never exceeded: a question gets no more than leaves the first four to all
        that are still to come.

        Args:
            answer: [n, K] recorded samples, in the order of sampling.
            budget: samples for all n questions.
        """
        spare = budget - FIRST * len(answer)
        if spare < 0:
            raise InputError(
                f"{budget:,} samples are fewer than {FIRST} for each of {len(answer):,} questions; "
                "give more, or take the questions as one batch"
            )
        by_agreement = {one.agree: one for one in self.buckets}
        turn = dict.fromkeys(by_agreement, 0)
        taken = np.full(len(answer), FIRST)
        for i, agree in enumerate(agreement(answer).tolist()):
            bucket = by_agreement.get(agree)
            if bucket is None:
                continue
            wanted = bucket.samples[turn[agree] % len(bucket.samples)]
            turn[agree] += 1
            more = min(wanted - FIRST, spare, answer.shape[1] - FIRST)
            taken[i] += more
            spare -= more
        return taken


@dataclass(frozen=True)
class Pets:
    """The allocator."""

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        return LAGRANGIAN.allocate(batch, budget_nano)

    def buy(
        self, sample: Callable[[int], int], questions: int, budget: int, most: int
    ) -> list[list[int]]:
        """Buy samples one at a time, and return the answers of each question.

        Args:
            sample: takes one sample of a question and returns its answer's code; -1 for none.
            questions: how many there are.
            budget: samples for all of them, never exceeded.
            most: samples of one question.
        """
        if budget < questions:
            raise InputError(
                f"{budget:,} samples are fewer than one for each of {questions:,} questions"
            )
        answers: list[list[int]] = [[sample(i)] for i in range(questions)]
        waiting = [(-_gain(given), i) for i, given in enumerate(answers) if most > 1]
        heapify(waiting)
        for _ in range(budget - questions):
            if not waiting:
                break
            _, i = heappop(waiting)
            answers[i].append(sample(i))
            if len(answers[i]) < most:
                heappush(waiting, (-_gain(answers[i]), i))
        return answers

    def plan(self, recorded: IntArray, per_question: float) -> SamplingPlan:
        """Share a stream's budget among its buckets, by how votes settled on recorded questions.

        Args:
            recorded: [n, K] samples of other questions, in any order; K above 4.
            per_question: samples a question, on average; at least 4.
        """
        n, most = recorded.shape
        if most <= FIRST or per_question < FIRST:
            raise InputError(
                f"a stream gives each question {FIRST} samples at least and learns from more; "
                f"these have {most} each, and {per_question:g} are to be given"
            )
        agree = agreement(recorded)
        buckets = [
            _bucket(recorded[agree == level], int(level), float((agree == level).mean()))
            for level in np.unique(agree)
        ]
        k = np.arange(FIRST, most + 1)
        curve = {one.agree: one.curve(k.astype(np.float64)) for one in buckets}
        value = np.array([curve[level] for level in agree.tolist()])
        cost = np.broadcast_to(k, value.shape).astype(np.int64)
        got = self.allocate(ItemBatch(value, cost, cost), int(per_question * n)).choice + FIRST
        return SamplingPlan(
            tuple(
                replace(one, samples=tuple(_in_turn(got[agree == one.agree].tolist())))
                for one in buckets
            )
        )


def agreement(answer: IntArray) -> IntArray:
    """Return how many of the first four samples gave the answer that most of them gave, [n]."""
    first = answer[:, :FIRST]
    same = (first[:, :, None] == first[:, None, :]) & (first != NO_ANSWER)[:, None, :]
    found: IntArray = same.sum(axis=2).max(axis=1)
    return found


def agreed(answer: IntArray) -> FloatArray:
    """Return the share of questions whose vote of k samples is that of all, k = 4 to K."""
    last = leaders(answer)
    return np.asarray((last[:, FIRST - 1 :] == last[:, -1:]).mean(axis=0))


def _bucket(recorded: IntArray, agree: int, share: float) -> Bucket:
    """Fit A(k) = Phi(a sqrt(k) + b) by least squares on the normal scale, a at least 0."""
    rate = np.clip(agreed(recorded)[:-1], 1.0 - CERTAIN, CERTAIN)
    score = np.array([NormalDist().inv_cdf(one) for one in rate.tolist()])
    root = np.sqrt(np.arange(FIRST, FIRST + len(score), dtype=np.float64))
    offset, slope = rising_line(root, score).tolist()
    return Bucket(agree, share, slope, offset)


def _in_turn(samples: Sequence[int]) -> list[int]:
    """Return numbers of samples in an order in which large and small ones alternate evenly."""
    ordered = sorted(samples)
    turn = np.argsort((np.arange(len(ordered)) * 0.6180339887498949) % 1.0, kind="stable")
    return [ordered[at] for at in turn.tolist()]


def _gain(answers: Sequence[int]) -> float:
    given = [one for one in answers if one != NO_ANSWER]
    return gain(tuple(sorted((given.count(one) for one in set(given)), reverse=True)))


def vote_curve(p: FloatArray, most: int) -> FloatArray:
    """Return the chance that k samples vote for the likeliest answer, k = 0 to `most`, [most + 1].

    Without a sample it is that of a lot among all answers. Several likeliest: any of them will do.

    Args:
        p: [m] probabilities of the answers.
        most: the largest k.

    >>> vote_curve(np.array([0.8, 0.2]), 3).round(4)
    array([0.5  , 0.8  , 0.8  , 0.896])
    """
    best = np.flatnonzero(np.isclose(p, p.max()))
    return np.asarray(sum(_wins(p, int(leader), most) for leader in best))


def _wins(p: FloatArray, leader: int, most: int) -> FloatArray:
    """Return the chance that a vote of k samples is this answer, [most + 1]."""
    others = np.delete(p, leader)
    nodes, weights = np.polynomial.legendre.leggauss(len(others) // 2 + 1)
    powers = np.arange(most + 1)
    scale = np.array([factorial(int(k)) for k in powers], dtype=np.float64)
    found = np.zeros(most + 1)
    for votes in range(most + 1):
        first = p[leader] ** votes / factorial(votes)
        for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
            series = np.ones(1)
            for other in others:
                term = other ** powers[: votes + 1] / scale[: votes + 1]
                term[votes] *= t
                series = np.convolve(series, term)[: most - votes + 1]
            found[votes : votes + len(series)] += weight * first * series
    return found * scale


@lru_cache(maxsize=1 << 16)
def settled(counts: tuple[int, ...]) -> float:
    """Return the probability that the leader is the likeliest answer, after these counts.

    The votes of each answer seen fall; () before any sample.

    >>> settled((1,)), settled((3,)), round(settled((3, 3)), 3)
    (0.75, 0.9375, 0.489)
    """
    shapes = [*(n + PRIOR for n in counts), PRIOR]
    if len(shapes) == 1:
        return 0.0
    first, *others = shapes
    end = first + max(shapes) + 12.0 * np.sqrt(first + max(shapes)) + 20.0
    nodes, weights = _legendre(NODES)
    x = (nodes + 1.0) * end / 2.0
    density = np.exp((first - 1) * np.log(x) - x - lgamma(first))
    below = np.ones_like(x)
    for shape in others:
        below *= _gamma_cdf(x, shape)
    return round(float((density * below * weights).sum() * end / 2.0), 12)


_legendre = cache(np.polynomial.legendre.leggauss)


def _gamma_cdf(x: FloatArray, shape: int) -> FloatArray:
    tail, term = np.zeros_like(x), np.exp(-x)
    for k in range(1, shape + 1):
        tail += term
        term = term * x / k
    return 1.0 - tail


@lru_cache(maxsize=1 << 16)
def gain(counts: tuple[int, ...]) -> float:
    """Return what one more sample can add to `settled` at best.

    The expected gain is 0 wherever one sample cannot change the vote, so that greedy buying would
    stop at two samples alike. As in Chen, Lin and Zhou 2013 the most hopeful answer counts instead.

    >>> gain((2, 2)) > gain((2,)) > gain((5,)) > 0
    True
    """
    now = settled(counts)
    hopes = {
        tuple(sorted((*counts[:i], n + 1, *counts[i + 1 :]), reverse=True))
        for i, n in enumerate(counts)
    } | {(*counts, 1)}
    return max(settled(then) for then in hopes) - now


PETS = Pets()
CARD = SystemCard(
    name="pets",
    label="PETS",
    meaning="Takes samples of one model where a further one is likeliest to settle the vote",
    kind="allocator",
    make=PETS,
    paper="2602.16745",
    page="docs/research/allocators.md",
    place=30,
)
