"""Conformal arbitrage: a cheap primary model, and a guardian for whatever it is not clear about.

The primary answers where the gap between its best answer and the next exceeds a threshold; the
guardian answers the rest. The parameter is the threshold.

Source: Overman and Bayati 2025, arXiv:2506.00911.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    RowPolicy,
    Stages,
    cheapest_first,
    everyone,
    list_of,
    pair,
    pool_method,
    quantiles,
    strongest,
    tables,
)
from farthing.methods.scorer import Scorers, fit_scorers
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class ArbitragePolicy(RowPolicy):
    """Two models and the thresholds of the first one's gap."""

    scorers: Scorers
    primary: int
    guardian: int
    values: FloatArray
    """[G] thresholds, ascending."""

    def row(self, point: int) -> Sequence[int]:
        """Ask the primary, then the guardian."""
        del point
        return list_of(pair(self.primary, self.guardian))

    def stages(self, traces: TraceArrays) -> Stages:
        """Read every model's gap."""
        return Stages(traces, lambda of, _: gap(of, self.scorers))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on where the gap is below the threshold."""
        model = self.row(point)[k]
        return stages[0][:, model] < self.values[point], everyone(stages.traces, model)


def gap(traces: TraceArrays, scorers: Scorers) -> FloatArray:
    """Return a lower bound of each model's gap, [n, L]: 2 p - 1 of its best answer.

    Only the best answer's probability is recorded; where not even that is, a scorer estimates it.
    """
    unknown = np.full(traces.answer.shape, np.nan)
    said = np.asarray(traces.signals.get("confidence", unknown), dtype=np.float64)[:, 0, :]
    return 2 * np.where(np.isnan(said), scorers.p_right(traces), said) - 1


@dataclass(frozen=True)
class ArbitrageLearner(PoolLearner):
    """The primary is the model that saves most at about the guardian's accuracy in training."""

    strong: str | None = None
    """The guardian; None: the most accurate model in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Choose both models; the thresholds are quantiles of the primary's gap."""
        pool, scorers = tables(train), fit_scorers(train)
        guardian = strongest(train, self.strong)
        found = gap(train, scorers)
        primary = cheapest_first(pool, found, guardian)
        values = quantiles(found[:, primary])
        return ArbitragePolicy(scorers, primary, guardian, values)


CONFORMAL_ARBITRAGE = pool_method(
    name="conformal-arbitrage",
    label="Conformal arbitrage",
    meaning="A cheap model answers where its best answer is far ahead, a guardian answers the rest",
    paper="2506.00911",
    policy=ArbitragePolicy,
    learner=ArbitrageLearner(),
    needs=("pool", "confidences"),
    proof_share=Fraction(3, 20),
    tried_for=frozenset({"one"}),
    place=86,
)
