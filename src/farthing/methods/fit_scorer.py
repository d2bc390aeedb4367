"""Fit how likely one call is to be right, by one logistic regression a model."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.methods.scorer import SIGNALS, Scorers, signals_of
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

STRENGTH = 0.3
"""Inverse strength of the L2 penalty on standardised signals."""


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
    weight = [_fitted(seen[made[:, m], :, m], right[made[:, m], m]) for m in speakers]
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


def _fitted(seen: FloatArray, right: BoolArray) -> FloatArray:
    return logistic(seen, right, STRENGTH)
