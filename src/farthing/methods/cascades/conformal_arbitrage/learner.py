"""Choose the primary model of conformal arbitrage, and its thresholds."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.methods.base import Fitted, Progress
from farthing.methods.cascades.conformal_arbitrage.policy import ArbitragePolicy, gap
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import cheapest_first, quantiles, strongest, tables
from farthing.traces.arrays import TraceArrays


@dataclass(frozen=True)
class ArbitrageLearner:
    """The primary is the model that saves most at about the guardian's accuracy in training."""

    strong: str | None = None
    """The guardian; None: the most accurate model in training."""

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,  # noqa: ARG002 - its points are for every level
        seed: int,  # noqa: ARG002 - nothing is drawn
        progress: Progress,
    ) -> Fitted:
        """Choose both models; the thresholds are quantiles of the primary's gap."""
        progress.update(1, 1, {})
        pool, scorers = tables(train), fit_scorers(train)
        guardian = strongest(train, self.strong)
        found = gap(train, scorers)
        primary = cheapest_first(pool, found, guardian)
        values = quantiles(found[:, primary])
        return Fitted(ArbitragePolicy(scorers, primary, guardian, values))


CONFORMAL_ARBITRAGE = ArbitrageLearner()
