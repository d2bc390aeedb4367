"""Conformal arbitrage: a cheap primary model, and a guardian for whatever it is not clear about.

The primary answers where the gap between its best answer and the next exceeds a threshold, whose
level conformal risk control chooses; the guardian answers the rest. The knob is the threshold.

Source: Overman and Bayati 2025, arXiv:2506.00911.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.pool import cheapest_first, pair, quantiles, strongest, tables
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.process.operating_points import OperatingPoints, sweep
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class ConformalArbitrage:
    """The primary is the model that saves most at about the guardian's accuracy in training."""

    strong: str | None = None
    """The guardian; none: the most accurate model in training."""

    def fit(self, train: TraceArrays, seed: int) -> "Arbitrage":  # noqa: ARG002
        """Choose both models; the thresholds are quantiles of the primary's gap."""
        pool, scorers = tables(train), fit_scorers(train)
        guardian = strongest(train, self.strong)
        gap = _gap(train, scorers)
        primary = cheapest_first(pool, gap, guardian)
        return Arbitrage(scorers, primary, guardian, quantiles(gap[:, primary]))


@dataclass(frozen=True)
class Arbitrage:
    """Two models and the thresholds of the first one's gap."""

    scorers: Scorers
    primary: int
    guardian: int
    knobs: FloatArray
    """[G] ascending."""

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Ask the primary, and the guardian where its gap is below the knob."""
        order = pair(self.primary, self.guardian)
        score = _gap(traces, self.scorers)[:, order]
        chosen = np.broadcast_to(order, score.shape)
        return sweep(traces, order, score, chosen, self.knobs)


def _gap(traces: TraceArrays, scorers: Scorers) -> FloatArray:
    """[n, L] a lower bound of the gap: the best answer's probability minus all that is left.

    Only the best answer's probability is recorded; where not even that is, a scorer estimates it.
    """
    unknown = np.full(traces.answer.shape, np.nan)
    said = np.asarray(traces.signals.get("confidence", unknown), dtype=np.float64)[:, 0, :]
    return 2 * np.where(np.isnan(said), scorers.p_right(traces), said) - 1
