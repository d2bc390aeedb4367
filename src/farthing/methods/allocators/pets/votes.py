"""How likely a vote of k samples is the vote of infinitely many: exactly, and from what was seen.

**Known frequencies.** Answers come with probabilities p. The vote of infinitely many samples is the
likeliest answer, and `vote_curve` is the chance that k samples vote for it, ties by lot:

    A(k) = sum over counts of multinomial(counts; k, p) * 1[leader among the most] / (how many tie)

computed without enumeration: for a leader with c votes the others are independent truncated
exponential series, and a tie of m others is worth 1 / (m + 1) = the integral of t^m over [0, 1].

**Unknown frequencies.** A uniform prior over the answers seen and one that was not, and the counts
so far, give a Dirichlet posterior. `settled` is the probability that the present leader is the
likeliest answer. With whole parameters a_j it is a one-dimensional integral over Gamma variables,

    P(p_1 largest) = integral of f(x; a_1) * prod_j F(x; a_j) dx

Source: self-consistency rate, arXiv 2602.16745, abstract; both computations are ours.
"""

from functools import cache, lru_cache
from math import factorial, lgamma

import numpy as np

from farthing.traces.arrays import FloatArray

NODES = 120
"""Of the integral over Gamma variables; more change the eighth digit."""
PRIOR = 1
"""Pseudo-count of each answer, and of the answers not seen; ours."""


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

    Args:
        counts: votes of each answer seen, falling; () before any sample.

    >>> settled((1,)), settled((3,)), round(settled((3, 3)), 3)
    (0.75, 0.9375, 0.489)
    """
    shapes = [*(n + PRIOR for n in counts), PRIOR]
    if len(shapes) == 1:
        return 0.0
    first, *others = shapes
    end = first + max(shapes) + 12.0 * np.sqrt(first + max(shapes)) + 20.0
    nodes, weights = _legendre()
    x = (nodes + 1.0) * end / 2.0
    density = np.exp((first - 1) * np.log(x) - x - lgamma(first))
    below = np.ones_like(x)
    for shape in others:
        below *= _gamma_cdf(x, shape)
    return round(float((density * below * weights).sum() * end / 2.0), 12)


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _gamma_cdf(x: FloatArray, shape: int) -> FloatArray:
    """Return P(G <= x) of a Gamma variable whose shape is a whole number."""
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
