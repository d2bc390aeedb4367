"""How likely one call is to be right, from what was recorded beside it, by logistic regression."""

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
