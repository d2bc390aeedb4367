"""Stop a thought where several signs agree that it is done, not one: the idea of DTRec's halting.

Each sign of a cut becomes a rank among those of training thoughts, from 0 (as unsure as any) to 1:
the answer has stayed for long, confidence and log-probability are high, entropy is low. A thought
stops where the least of these ranks is high enough. DTRec's own signs are of a recommender's hidden
states; these are what a recording has, so the ranks and their minimum are our reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from farthing.features.rounds import unchanged
from farthing.methods.base import Fitted, Method, Progress
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays

SIGNS = {"confidence": 1.0, "mean_logprob": 1.0, "entropy": -1.0}
"""Recorded number to whether more of it is surer (1) or less (-1)."""
STAYED = "unchanged"
"""At how many cuts in a row the answer has been the present one: known of every thought."""


@dataclass(frozen=True)
class DtrecPolicy(InRounds):
    """Thinks on while some sign says that the thought is not done."""

    known: Mapping[str, FloatArray]
    """Sign to its values at cuts of training thoughts before the last, ascending."""
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for the answer and 1 - the least rank of a sign for `next`."""
        least = np.ones((len(traces), traces.horizon))
        for name, seen in self.known.items():
            least = np.minimum(least, rank(seen, sign(traces, name)))
        scores = np.ones((len(traces), traces.horizon, 2))
        scores[:, :, 1] = 1.0 - least
        scores[:, -1, 1] = 0.0
        return scores

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        return dict(self.known), {}

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        del settings
        return cls(dict(arrays))


@dataclass(frozen=True)
class DtrecLearner:
    """Learns how each sign that was recorded is distributed; no answer's grade is read."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        known = {}
        for name in (STAYED, *SIGNS):
            values = sign(train, name)[:, :-1]
            if (finite := values[np.isfinite(values)]).size:
                known[name] = np.sort(finite)
        progress.update(1, 1, {})
        return Fitted(DtrecPolicy(known))


def sign(traces: TraceArrays, name: str) -> FloatArray:
    """Return a sign of each cut, more being surer, [n, T]; -inf where it was not recorded."""
    if name == STAYED:
        return unchanged(traces)
    if name not in traces.signals:
        return np.full((len(traces), traces.horizon), -np.inf)
    values = SIGNS[name] * traces.signals[name][:, :, 0].astype(np.float64)
    return np.where(np.isnan(values), -np.inf, values)


def rank(seen: FloatArray, values: FloatArray) -> FloatArray:
    """Return the share of seen values that each value is at least as large as.

    Args:
        seen: [m] ascending, at least one.
        values: of any shape.

    >>> rank(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0.0, 2.0, 3.0, 9.0])).tolist()
    [0.0, 0.75, 0.75, 1.0]
    """
    found: FloatArray = np.searchsorted(seen, values, side="right") / len(seen)
    return found


DTREC = Method(
    name="dtrec",
    label="Signs agree (DTRec)",
    meaning="Stops a thought where all recorded signs say that it is done",
    policy=DtrecPolicy,
    learner=DtrecLearner(),
    action_spaces=("cuts",),
    varies_with=frozenset(),
    place=63,
)
