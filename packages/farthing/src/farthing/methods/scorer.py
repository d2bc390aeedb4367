"""How likely replies are right: one call by itself, the leading answer given all that were seen.

One call is scored by a logistic regression on what was recorded beside it. Of several, whoever gave
them, each reply speaks for its answer, with a strength that depends on its model and its sureness;
the answers seen, and "none of them", share the probability as in a conditional logit. One fit on
random subsets of the models serves every subset.
"""

from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, Signal, TraceArrays

SIGNALS = ("confidence", "uncertainty", "output_tokens", "tool_calls")
STRENGTH = 0.3
"""Inverse strength of the L2 penalty on standardised signals."""
_CLIP = 1e-6
"""What is recorded of a confidence; between 0.9999 and 1 there is still much to tell apart."""


@dataclass(frozen=True)
class Scorers:
    """One logistic regression a model, over the signals of its own call."""

    names: tuple[str, ...]
    """The F signals in use."""
    mean: FloatArray
    """[F, L]"""
    scale: FloatArray
    """[F, L]"""
    weight: FloatArray
    """[F + 1, L], the constant last."""

    def p_right(self, traces: TraceArrays) -> FloatArray:
        """Return the estimated probability that each call is right, [n, L]; 0 without an answer."""
        p = self.p_of(signals_of(traces, self.names))
        return np.where(traces.answer[:, 0, :] == NO_ANSWER, 0.0, p)

    def p_of(self, signals: FloatArray) -> FloatArray:
        """Return the same of signals as `signals_of` has them, [n, F, L], answered or not."""
        seen = (signals - self.mean) / self.scale
        logit = (np.nan_to_num(seen) * self.weight[:-1]).sum(axis=1) + self.weight[-1]
        p: FloatArray = 1 / (1 + np.exp(-logit))
        return p


def signals_of(traces: TraceArrays, names: tuple[str, ...]) -> FloatArray:
    """[n, F, L] the signals on a scale that suits a logit: log-odds of shares, log of counts."""
    found = np.empty((len(traces), len(names), traces.n_roles))
    for k, name in enumerate(names):
        found[:, k] = on_scale(name, traces.signals[name][:, 0, :])
    return found


def on_scale(name: str, signal: Signal) -> FloatArray:
    """Return a signal on that scale, in its own shape."""
    values = signal.astype(np.float64)
    if name == "confidence":
        values = np.clip(values, _CLIP, 1 - _CLIP)
        return np.log(values / (1 - values))
    return np.log1p(values)


def fit_scorers(train: TraceArrays) -> Scorers:
    """Fit one scorer a model; a signal that a call lacks counts as that model's mean."""
    names = tuple(name for name in SIGNALS if name in train.signals)
    made = train.answer[:, 0, :] != NO_ANSWER
    return fit_to(names, signals_of(train, names), made, train.correct[:, 0, :])


def fit_to(names: tuple[str, ...], raw: FloatArray, made: BoolArray, right: BoolArray) -> Scorers:
    """Fit one scorer for each of L speakers.

    Args:
        names: the F signals.
        raw: [n, F, L] as `signals_of` has them.
        made: [n, L] which calls gave an answer.
        right: [n, L] which of them are right.
    """
    known = ~np.isnan(raw)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, raw, 0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (raw - mean) ** 2, 0).sum(axis=0) / count)
    scale = np.where(spread > 1e-9, spread, 1.0)
    seen = np.nan_to_num((raw - mean) / scale)
    speakers = range(made.shape[1])
    weight = [logistic(seen[made[:, m], :, m], right[made[:, m], m], STRENGTH) for m in speakers]
    return Scorers(names, mean, scale, np.array(weight).T)


def logistic(seen: FloatArray, right: BoolArray, strength: float) -> FloatArray:
    """Return the weights of a logistic regression, [F + 1], the constant last.

    Where all labels are alike, or nothing is seen, only the constant is not 0.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - training alone

    if not seen.size or right.all() or not right.any():
        odds = np.log((right.sum() + 0.5) / (right.size - right.sum() + 0.5))
        return np.append(np.zeros(seen.shape[1]), odds)
    model = LogisticRegression(C=strength, max_iter=1_000).fit(seen, right)
    return np.append(model.coef_[0], model.intercept_[0])


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
class ReplyEvidence:
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

    def replies(self, traces: TraceArrays) -> ReplyEvidence:
        """Turn replies into evidence, once for all subsets."""
        return replies_of(traces, self.scorers)

    def after(self, replies: ReplyEvidence, asked: BoolArray) -> LeadingAnswer:
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


def replies_of(traces: TraceArrays, scorers: Scorers) -> ReplyEvidence:
    """Turn replies into evidence: how sure each is, what it says, and what is right."""
    p = scorers.p_right(traces)
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(p) - np.log1p(-p), -_LIMIT, _LIMIT)
    answer = traces.answer[:, 0, :]
    says = answer[:, :, None] == np.arange(max(answer.max(initial=0) + 1, 1))
    right = (says & (traces.correct[:, 0, :] & (answer != NO_ANSWER))[:, :, None]).any(axis=1)
    return ReplyEvidence(log_odds, says, right)


def shares(
    weights: FloatArray, replies: ReplyEvidence, asked: BoolArray
) -> tuple[FloatArray, BoolArray]:
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
    evidence = ReplyEvidence(replies.log_odds[rows], replies.says[rows], replies.right[rows])
    found = minimize(_loss, prior, args=(evidence, subset, prior), jac=True, method="L-BFGS-B")
    return AnswerPosterior(scorers, found.x)


def _loss(
    weights: FloatArray, replies: ReplyEvidence, asked: BoolArray, prior: FloatArray
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
