"""Stop a thought where thinking to its end is no longer worth its price.

Stopping at a cut loses a question whose full thought is right, or agreed with, and whose present
answer is not. The gain of thinking on is the probability of that, estimated from what the cuts so
far say; the price is what the rest of a thought costs, as in training. Answers need not get better
from cut to cut: only the present one and the end are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Fitted, Method, Progress
from farthing.process.base import InRounds
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing_lab.methods.stopping import StoppingPolicy, fit_gains

LEAST_REST = 1e-3
"""Share of a full thought's cost below which what is left counts as that much."""


@dataclass(frozen=True)
class SettledPolicy(InRounds):
    """Thinks on while what stopping would lose, for the money that is left to pay, is large."""

    model: StoppingPolicy
    """Estimates what stopping would lose."""
    rest: FloatArray
    """[T - 1] the share of a full thought's cost that comes after each cut, on average."""
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for the answer and r / (1 + r) for `next`, r being the gain over the price."""
        scores = np.ones((len(traces), traces.horizon, 2))
        scores[:, -1, 1] = 0.0
        rate = self.model.gains(traces) / self.rest[: traces.horizon - 1]
        scores[:, :-1, 1] = rate / (1.0 + rate)
        return scores

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        arrays, settings = self.model.to_state()
        return arrays | {"rest": self.rest}, settings

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        return cls(StoppingPolicy.from_state(arrays, settings), arrays["rest"])


@dataclass(frozen=True)
class SettledLearner:
    """Fits the probability that stopping loses a question, and what is left to pay at each cut."""

    extra_features: tuple[str, ...] = ()

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        features = FeatureSet.fit(train, self.extra_features)
        model = fit_gains(features, train, lost_by_stopping(train), seed, progress)
        paid = train.round_cost_nano.cumsum(axis=1).mean(axis=0)
        rest = 1.0 - paid[:-1] / max(paid[-1], 1.0)
        return Fitted(SettledPolicy(model, np.maximum(rest, LEAST_REST)))


def lost_by_stopping(traces: TraceArrays) -> BoolArray:
    """Return whether the full thought is right and the answer at each earlier cut is not.

    Args:
        traces: thoughts, their cuts in turn.

    Returns:
        [n, T - 1]

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> from farthing.traces.pool import cascade
    >>> said = [("4", True), ("5", False), ("4", True)]
    >>> calls = [Call(round=t, role="r1", answer=a, correct=c) for t, (a, c) in enumerate(said, 1)]
    >>> lost_by_stopping(cascade(assemble([Trace(id="q", calls=calls)]))).tolist()
    [[False, True]]
    """
    right = traces.correct[:, :, 0]
    lost: BoolArray = right[:, -1:] & ~right[:, :-1]
    return lost


SETTLED = Method(
    name="settled",
    label="Settled thought",
    meaning="Stops a thought where thinking to its end would gain too little for its money",
    policy=SettledPolicy,
    learner=SettledLearner(),
    action_spaces=("cuts",),
    imports=("sklearn.linear_model",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=62,
)
