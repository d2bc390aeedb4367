"""Learners of policies that need no training."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.methods.base import Fitted, Progress
from farthing.methods.baselines.models import AlwaysPolicy
from farthing.methods.baselines.uala import UalaPolicy, best_source
from farthing.methods.pool import strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.process.base import Policy
from farthing.traces.arrays import TraceArrays


@dataclass(frozen=True)
class FixedLearner:
    """Hands back the policy that it was given, whatever the traces."""

    policy: Policy

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,
        seed: int,
        progress: Progress,
    ) -> Fitted:
        """Return the policy."""
        progress.update(1, 1, {})
        return Fitted(self.policy)


@dataclass(frozen=True)
class UalaLearner:
    """Looks up which of the guide's doubts the traces recorded; there is nothing else to learn."""

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,
        seed: int,
        progress: Progress,
    ) -> Fitted:
        """Return UALA over the best doubt there is."""
        progress.update(1, 1, {})
        return Fitted(UalaPolicy(best_source(train)))


@dataclass(frozen=True)
class AlwaysLearner(PoolLearner):
    """Keeps one model of a pool."""

    strong: str | None = None
    """Its name; None: the one that is right most often in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Look the model up."""
        tables(train)
        return AlwaysPolicy(strongest(train, self.strong))
