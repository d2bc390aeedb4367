"""The free energy of a sample: how unlikely it was, and how unevenly its tokens were.

    F = -sum log p + lambda Var[-log p]

over a sample's tokens. The first term is its surprisal; with lambda = 0 the sample of least free
energy is the likeliest one. The second, its *varentropy*, is large where a model was sure of most
tokens and guessed at a few.

Source: Ma et al. 2026, arXiv:2602.23681 (the abstract; the population variance is our reading).
"""

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing.traces.token_moments import token_moments


def free_energy(logprob: FloatArray, token: BoolArray, weight: float) -> FloatArray:
    """Return each sample's free energy in nats, [S].

    >>> even, odd = [-1.0, -1.0], [-1.75, -0.25]
    >>> free_energy(np.log(np.exp([even, odd])), np.ones((2, 2), bool), weight=1.0)
    array([2.    , 2.5625])

    Args:
        logprob: [S, N] natural logarithm of each token's probability, at most 0.
        token: [S, N] which places hold a token.
        weight: lambda, at least 0: what a squared nat of varentropy counts in nats.
    """
    surprisal, varentropy = token_moments(logprob, token)
    return surprisal + weight * varentropy


def fused(logprob: FloatArray, token: BoolArray, weight: float) -> int:
    """Return the sample of least free energy, of equals the first.

    Args:
        logprob: [S, N], S at least 1.
        token: [S, N]
        weight: lambda.
    """
    return int(free_energy(logprob, token, weight).argmin())


def of_votes(p_right: FloatArray, code: IntArray, known: BoolArray, chance: float) -> FloatArray:
    """Return the free energy of each answer as minus the logarithm of its probability, [R, C].

    Where token probabilities were not recorded (ours). Calls are taken to err independently: one
    that is right with probability p says the right answer with p, and each of 1 / chance wrong ones
    with (1 - p) chance. All answers are equally likely before anybody spoke; Bayes' rule gives
    those that were said their probabilities, beside any that nobody said. A call without an answer
    says nothing. So one call's answer is right with its p.

    >>> p, code = np.array([[0.6, 0.9]]), np.array([[7, 7]])
    >>> np.exp(-of_votes(p, code, np.array([[True, False]]), chance=0.25)).round(3)
    array([[0.6, 0. ]])

    Args:
        p_right: [R, C] how likely each call is right, in (0, 1).
        code: [R, C] which answer each call gave; negative for none.
        known: [R, C] which calls were made.
        chance: how often two wrong answers are the same, in (0, 1].
    """
    said = known & (code >= 0)
    same = (code[:, :, None] == code[:, None, :]) & said[:, None, :]
    other = said[:, None, :] & ~same
    backed = np.where(same, np.log(p_right)[:, None, :], 0.0).sum(axis=2)
    denied = np.where(other, np.log((1 - p_right) * chance)[:, None, :], 0.0).sum(axis=2)
    log_odds = np.where(said, backed + denied, -np.inf)
    # each answer once, at its first call; then those that nobody said
    first = said & ~np.tril(same, -1).any(axis=2)
    nobody = np.where(said, np.log((1 - p_right) * chance), 0.0).sum(axis=1, keepdims=True)
    unsaid = np.maximum(1 + 1 / chance - first.sum(axis=1, keepdims=True), 0.0)
    top = np.maximum(log_odds.max(axis=1, keepdims=True), nobody)
    total = np.where(first, np.exp(log_odds - top), 0.0).sum(axis=1, keepdims=True)
    total = total + unsaid * np.exp(nobody - top)
    energy: FloatArray = top + np.log(total) - log_odds
    return np.maximum(energy, 0.0)
