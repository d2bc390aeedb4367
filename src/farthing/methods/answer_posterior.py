"""How likely the leading answer is right, given the replies seen so far, whoever gave them.

Each reply speaks for its answer, with a strength that depends on its model and its sureness; the
answers seen, and "none of them", share the probability as in a conditional logit. One fit on random
subsets of the models serves every subset.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.scorer import Scorers, fit_scorers
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

SUBSETS = 12
"""Random subsets of models that each training question is seen through."""
MOST = 5
"""Models in such a subset, at most."""
PENALTY = 3.0
"""Pull of each weight towards its prior, in questions."""
PRIOR_SLOPE, PRIOR_NONE, PRIOR_NONE_ASKED = 0.7, -1.0, -0.2
"""Where little is known: log-odds count for a little less than in full, as models err together."""
_LIMIT = 4.0
_NEVER = -1e9


@dataclass(frozen=True)
class Replies:
    """The replies of a pool as evidence for answers."""

    log_odds: FloatArray
    """[n, L] of each reply on its own, from its own signals."""
    says: BoolArray
    """[n, L, A] which answer each reply gives."""
    right: BoolArray
    """[n, A] which answer is right, among those that some model gives."""


@dataclass(frozen=True)
class LeadingAnswer:
    """The leading answer after some calls."""

    probability: FloatArray
    """[n] that it is right."""
    right: BoolArray
    """[n] whether it is."""
    model: np.ndarray
    """[n] a model that was asked and gives it; -1 where there is no answer."""


@dataclass(frozen=True)
class AnswerPosterior:
    """A fitted conditional logit over the answers of a pool."""

    scorers: Scorers
    weights: FloatArray
    """[3 L + 1] a constant and a slope for each reply; for "none", one a model and one more."""

    def replies(self, traces: TraceArrays) -> Replies:
        """Turn replies into evidence, once for all subsets."""
        return replies_of(traces, self.scorers)

    def after(self, replies: Replies, asked: BoolArray) -> LeadingAnswer:
        """Return the leading answer after the calls asked, [n, L] or [L]."""
        asked = np.broadcast_to(asked, replies.log_odds.shape)
        share, _ = shares(self.weights, replies, asked)
        place = share[:, :-1].argmax(axis=1)
        rows = np.arange(len(share))
        gives = replies.says[rows, :, place] & asked
        return LeadingAnswer(
            probability=share[rows, place],
            right=replies.right[rows, place] & gives.any(axis=1),
            model=np.where(gives.any(axis=1), gives.argmax(axis=1), -1),
        )


def replies_of(traces: TraceArrays, scorers: Scorers) -> Replies:
    """Turn replies into evidence: how sure each is, what it says, and what is right."""
    p = scorers.p_right(traces)
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(p) - np.log1p(-p), -_LIMIT, _LIMIT)
    answer = traces.answer[:, 0, :]
    says = answer[:, :, None] == np.arange(max(answer.max(initial=0) + 1, 1))
    right = (says & (traces.correct[:, 0, :] & (answer != NO_ANSWER))[:, :, None]).any(axis=1)
    return Replies(log_odds, says, right)


def shares(weights: FloatArray, replies: Replies, asked: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return the probability of each answer and, last, of none, [n, A + 1]; and which were seen."""
    constant, slope, none = np.split(weights[:-1], 3)
    speaks = (constant + slope * replies.log_odds) * asked
    seen = (replies.says & asked[:, :, None]).any(axis=1)
    for_answer = np.where(seen, np.einsum("nl,nla->na", speaks, replies.says), _NEVER)
    for_none = weights[-1] + asked @ none
    score = np.concatenate([for_answer, for_none[:, None]], axis=1)
    share = np.exp(score - score.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True), np.asarray(seen)


def fit_leading_answer(train: TraceArrays, seed: int) -> AnswerPosterior:
    """Fit by maximum likelihood with a Gaussian prior; the problem is convex."""
    from scipy.optimize import minimize  # noqa: PLC0415 - training alone

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
