"""UALA: go on while the guide is unsure (Han et al. 2024, with the guide's uncertainty).

The paper of CCPO lets the guide judge, because a small base model judges itself badly; here too the
answers are the guide's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from farthing.methods.base import Fitted, Method, Progress
from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import NO_ANSWER, FloatArray, TraceArrays

Source = Literal["uncertainty", "entropy", "confidence", "disagreement"]

NOTES: Mapping[Source, str] = {
    "uncertainty": "",
    "entropy": "of a thought: the entropy of what it wrote since the cut before",
    "confidence": "no uncertainty recorded: 1 - confidence instead",
    "disagreement": "no uncertainty recorded: disagreement so far instead",
}
_UTTER_DOUBT = 1e6
"""Stands for a single missing uncertainty: above any recorded one, so the policy goes on."""


@dataclass(frozen=True)
class UalaPolicy(DataclassState, InRounds):
    """Returns the guide's answer of each round reached; goes on where doubt passes a threshold.

    The guide is the role of that name, or else the last one. The other roles' answers score 0, so
    that only a threshold of 0, which returns everything, returns them.
    """

    source: Source = "uncertainty"
    """Which recorded number the doubt is read from."""
    stochastic: bool = False

    @property
    def note(self) -> str:
        return NOTES[self.source]

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for the guide, 0 for the others, and (1 + u) / (2 + u) in (0, 1) for `next`."""
        doubt = _DOUBT[self.source](traces)
        scores = np.zeros((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, :, guide(traces)] = 1.0
        scores[:, :-1, -1] = ((1.0 + doubt) / (2.0 + doubt))[:, :-1]
        return scores


def guide(traces: TraceArrays) -> int:
    """Return the index of the guide among the roles."""
    return traces.roles.index("guide") if "guide" in traces.roles else traces.n_roles - 1


def best_source(traces: TraceArrays) -> Source:
    """Return where the guide's doubt can be read: uncertainty, else confidence, else answers.

    Of a thought the recorded entropy comes before confidence.
    """
    of_thoughts: tuple[Source, ...] = ("entropy",) if traces.cuts else ()
    for source in ("uncertainty", *of_thoughts, "confidence"):
        signal = traces.signals.get(source)
        if signal is not None and not np.isnan(signal[:, :, guide(traces)]).all():
            return source
    return "disagreement"


def disagreement(traces: TraceArrays) -> FloatArray:
    """Return the share of the answers so far that differ from the guide's present one, [n, T].

    Where the guide gave none, every answer differs.
    """
    answer = traces.answer
    n, horizon, n_roles = answer.shape
    doubt = np.empty((n, horizon))
    for t in range(horizon):
        present = answer[:, t, guide(traces)][:, None, None]
        same = (answer[:, : t + 1] == present) & (present != NO_ANSWER)
        doubt[:, t] = 1.0 - same.sum(axis=(1, 2)) / ((t + 1) * n_roles)
    return doubt


def _guide_signal(traces: TraceArrays, name: str, unknown: float) -> FloatArray:
    if name not in traces.signals:
        return np.full((len(traces), traces.horizon), unknown)
    recorded = traces.signals[name][:, :, guide(traces)].astype(np.float64)
    return np.where(np.isnan(recorded), unknown, recorded)


_DOUBT: Mapping[Source, Callable[[TraceArrays], FloatArray]] = {
    "uncertainty": lambda traces: _guide_signal(traces, "uncertainty", unknown=_UTTER_DOUBT),
    "entropy": lambda traces: _guide_signal(traces, "entropy", unknown=_UTTER_DOUBT),
    "confidence": lambda traces: 1.0 - _guide_signal(traces, "confidence", unknown=0.0),
    "disagreement": disagreement,
}


@dataclass(frozen=True)
class UalaLearner:
    """Looks up which of the guide's doubts the traces recorded; there is nothing else to learn."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        progress.update(1, 1, {})
        return Fitted(UalaPolicy(best_source(train)))


UALA = Method(
    name="uala",
    label="UALA",
    meaning="Goes on while the guide is unsure of its answer",
    paper="2401.14016",
    policy=UalaPolicy,
    learner=UalaLearner(),
    action_spaces=("rounds", "cascade"),
    varies_with=frozenset(),
    place=30,
)
