"""How likely one call is to be right, from what was recorded beside it, by logistic regression."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

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
        seen = (_signals(traces, self.names) - self.mean) / self.scale
        logit = (np.nan_to_num(seen) * self.weight[:-1]).sum(axis=1) + self.weight[-1]
        return np.where(traces.answer[:, 0, :] == NO_ANSWER, 0.0, 1 / (1 + np.exp(-logit)))


def fit_scorers(train: TraceArrays) -> Scorers:
    """Fit one scorer a model; a signal that a call lacks counts as that model's mean."""
    names = tuple(name for name in SIGNALS if name in train.signals)
    raw = _signals(train, names)
    known = ~np.isnan(raw)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, raw, 0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (raw - mean) ** 2, 0).sum(axis=0) / count)
    scale = np.where(spread > 1e-9, spread, 1.0)
    seen = np.nan_to_num((raw - mean) / scale)
    made = train.answer[:, 0, :] != NO_ANSWER
    right = train.correct[:, 0, :]
    weight = [_fit(seen[made[:, m], :, m], right[made[:, m], m]) for m in range(train.n_roles)]
    return Scorers(names, mean, scale, np.array(weight).T)


def logistic(seen: FloatArray, right: BoolArray, strength: float) -> FloatArray:
    """Return the weights of a logistic regression, [F + 1], the constant last.

    Where all labels are alike, or nothing is seen, only the constant is not 0.
    """
    if not seen.size or right.all() or not right.any():
        odds = np.log((right.sum() + 0.5) / (right.size - right.sum() + 0.5))
        return np.append(np.zeros(seen.shape[1]), odds)
    model = LogisticRegression(C=strength, max_iter=1_000).fit(seen, right)
    return np.append(model.coef_[0], model.intercept_[0])


def _fit(seen: FloatArray, right: BoolArray) -> FloatArray:
    return logistic(seen, right, STRENGTH)


def _signals(traces: TraceArrays, names: tuple[str, ...]) -> FloatArray:
    """[n, F, L] the signals on a scale that suits a logit: log-odds of shares, log of counts."""
    found = np.empty((len(traces), len(names), traces.n_roles))
    for k, name in enumerate(names):
        values = traces.signals[name][:, 0, :].astype(np.float64)
        if name == "confidence":
            values = np.clip(values, _CLIP, 1 - _CLIP)
            found[:, k] = np.log(values / (1 - values))
        else:
            found[:, k] = np.log1p(values)
    return found
