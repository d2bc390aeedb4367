"""How likely the leading answer is right, given the replies seen so far, whoever gave them.

Each reply speaks for its answer, with a strength that depends on its model and its sureness; the
answers seen, and "none of them", share the probability as in a conditional logit. One fit on random
subsets of the models serves every subset.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.scorer import Scorers
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

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
