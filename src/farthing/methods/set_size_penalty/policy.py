"""Answers at a price: an answer is returned only where it is likely enough to be the right one.

A set of many answers is a burden to whoever reads it. With a price on each answer, including one
must gain as much per dollar as buying a call: the same unit, the same threshold, and so the same
calibration, exact as ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays

ODDS = 1e-4
"""How near to 0 and 1 the score of going on is told apart."""


@dataclass(frozen=True)
class ThriftyPolicy:
    """Buys as another policy does, and thresholds P(right) of each answer when it is bought."""

    inner: LookaheadPolicy
    weights: FloatArray
    """[F + 1] log-odds of being right, the constant last."""
    answer_nano: float
    """Price of an answer in the set, in nano-dollars; above 0."""
    stochastic: bool = False

    @property
    def in_rounds(self) -> bool:
        """Whether it buys in rounds; else `scores` refuses."""
        return self.inner.in_rounds

    def arranged(self, traces: TraceArrays) -> tuple[TraceArrays, FloatArray]:
        """Return the questions in the order of purchases, and the scores there."""
        laid, scores = self.inner.arranged(traces)
        return laid, self._priced(laid, scores)

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the scores in the order of rounds, [n, T, L + 1]; see `LookaheadPolicy`."""
        return self._priced(traces, self.inner.scores(traces))

    def _priced(self, laid: TraceArrays, scores: FloatArray) -> FloatArray:
        odds = evidence(laid, scores[:, :, -1]) @ self.weights[:-1] + self.weights[-1]
        worth = self.inner.price_nano / self.answer_nano / (1.0 + np.exp(-odds))
        scores[:, :, :-1] = worth / (1.0 + worth)
        return scores

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays, settings = self.inner.to_state()
        return arrays | {"answer": self.weights}, settings | {"answer_nano": self.answer_nano}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        inner = LookaheadPolicy.from_state(arrays, settings)
        return cls(inner, arrays["answer"], float(settings["answer_nano"]))

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:  # noqa: ARG002
        """Deciding costs nothing."""
        return None


def evidence(laid: TraceArrays, going_on: FloatArray) -> FloatArray:
    """Return what speaks for each answer when it is bought, [n, S, U, F].

    Votes for it so far, their share, whether no other answer has more, the number of distinct
    answers, how much speaks for going on, the step, and which of the purchase's answers it is.

    Args:
        laid: the questions in the order of purchases, [n, S, U].
        going_on: [n, S] the score of going on after each purchase.
    """
    n, steps, width = laid.answer.shape
    answer = laid.answer.reshape(n, -1)
    given = answer != NO_ANSWER
    step, unit = np.divmod(np.arange(steps * width), width)
    known = (step[:, None] >= step) & given[:, None, :]  # [n, mine, theirs]
    equal = (answer[:, :, None] == answer[:, None, :]) & given[:, :, None] & given[:, None, :]
    votes = (known.astype(np.float64) @ equal) * known  # for theirs, as known when mine is bought
    own = np.diagonal(votes, axis1=1, axis2=2)
    odds = np.log(np.clip(going_on, ODDS, 1.0)) - np.log(np.clip(1.0 - going_on, ODDS, 1.0))
    columns = [
        own,
        own / np.maximum(known.sum(axis=2), 1),
        own >= votes.max(axis=2),
        (known / np.maximum(votes, 1.0)).sum(axis=2),
        np.repeat(odds, width, axis=1),
        *(np.broadcast_to(step == s, own.shape) for s in range(steps)),
        *(np.broadcast_to(unit == u, own.shape) for u in range(width)),
    ]
    return np.stack(columns, axis=2).astype(np.float64).reshape(n, steps, width, -1)
