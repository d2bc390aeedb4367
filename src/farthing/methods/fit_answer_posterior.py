"""Fit how likely the leading answer is right, over random subsets of a pool."""

import numpy as np
from scipy.optimize import minimize

from farthing.methods.answer_posterior import AnswerPosterior, Replies, replies_of, shares
from farthing.methods.fit_scorer import fit_scorers
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

SUBSETS = 12
"""Random subsets of models that each training question is seen through."""
MOST = 5
"""Models in such a subset, at most."""
PENALTY = 3.0
"""Pull of each weight towards its prior, in questions."""
PRIOR_SLOPE, PRIOR_NONE, PRIOR_NONE_ASKED = 0.7, -1.0, -0.2
"""Where little is known: log-odds count for a little less than in full, as models err together."""


def fit_leading_answer(train: TraceArrays, seed: int) -> AnswerPosterior:
    """Fit by maximum likelihood with a Gaussian prior; the problem is convex."""
    scorers = fit_scorers(train)
    rng = np.random.default_rng(seed)
    n_models = train.n_roles
    prior = np.repeat(
        [0.0, PRIOR_SLOPE, PRIOR_NONE_ASKED, PRIOR_NONE], [n_models, n_models, n_models, 1]
    )
    rows = np.tile(np.arange(len(train)), SUBSETS)
    size = rng.integers(1, min(MOST, n_models) + 1, size=len(rows))
    rank = rng.random((len(rows), n_models)).argsort(axis=1).argsort(axis=1)
    subset = rank < size[:, None]
    replies = replies_of(train, scorers)
    evidence = Replies(replies.log_odds[rows], replies.says[rows], replies.right[rows])
    found = minimize(_loss, prior, args=(evidence, subset, prior), jac=True, method="L-BFGS-B")
    return AnswerPosterior(scorers, found.x)


def _loss(
    weights: FloatArray, replies: Replies, asked: BoolArray, prior: FloatArray
) -> tuple[float, FloatArray]:
    """Return the penalised negative log-likelihood per subset, and its gradient."""
    share, seen = shares(weights, replies, asked)
    right = replies.right & seen
    truth = np.concatenate([right, ~right.any(axis=1, keepdims=True)], axis=1).astype(float)
    wrong = (share - truth * share.sum(axis=1, keepdims=True)) / SUBSETS
    per_reply = np.einsum("na,nla->nl", wrong[:, :-1], replies.says) * asked
    per_none = wrong[:, -1]
    off = weights - prior
    gradient = [
        per_reply.sum(axis=0),
        (per_reply * replies.log_odds).sum(axis=0),
        per_none @ asked,
        [per_none.sum()],
    ]
    loss = -np.log(np.maximum((share * truth).sum(axis=1), 1e-300)).sum() / SUBSETS
    return loss + PENALTY / 2 * float(off @ off), np.concatenate(gradient) + PENALTY * off
