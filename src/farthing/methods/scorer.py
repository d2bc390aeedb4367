"""How likely one call is to be right, from what was recorded beside it, by logistic regression."""

from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import NO_ANSWER, FloatArray, Signal, TraceArrays

SIGNALS = ("confidence", "uncertainty", "output_tokens", "tool_calls")
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
