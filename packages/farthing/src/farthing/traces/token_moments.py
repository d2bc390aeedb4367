"""How unlikely a reply was, and how unevenly its tokens were: two numbers of its call."""

from collections.abc import Sequence

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray

SURPRISAL = "surprisal"
"""Number of a call: -sum log p of its tokens, in nats."""
VARENTROPY = "varentropy"
"""Number of a call: variance of -log p over its tokens, in squared nats."""


def token_moments(logprob: FloatArray, token: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return surprisal and varentropy of each sample, [S] each; 0 and 0 for one without tokens.

    Args:
        logprob: [S, N] natural logarithm of each token's probability, at most 0.
        token: [S, N] which places hold a token; samples end at different places.
    """
    told = np.where(token, -logprob, 0.0)
    count = np.maximum(token.sum(axis=1), 1)
    surprisal = told.sum(axis=1)
    centred = np.where(token, told - (surprisal / count)[:, None], 0.0)
    varentropy: FloatArray = (centred**2).sum(axis=1) / count
    return surprisal, varentropy


def of_tokens(logprobs: Sequence[float]) -> dict[str, float]:
    """Return what is recorded of one reply beside its answer; nothing where no token is known.

    >>> of_tokens([-1.0, -3.0])
    {'surprisal': 4.0, 'varentropy': 1.0}
    """
    if not logprobs:
        return {}
    row = np.array([logprobs], dtype=np.float64)
    surprisal, varentropy = token_moments(row, np.ones(row.shape, dtype=bool))
    return {SURPRISAL: float(surprisal[0]), VARENTROPY: float(varentropy[0])}
