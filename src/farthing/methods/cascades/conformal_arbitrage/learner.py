"""Choose the primary model of conformal arbitrage, and its thresholds."""

from dataclasses import dataclass

from farthing.methods.cascades.conformal_arbitrage.policy import ArbitragePolicy, gap
from farthing.methods.fit_scorer import fit_scorers
from farthing.methods.pool import cheapest_first, quantiles, strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import TraceArrays


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


CONFORMAL_ARBITRAGE = ArbitrageLearner()
