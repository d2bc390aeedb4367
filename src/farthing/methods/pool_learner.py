"""What learners of pool methods share: one fit for every level, since their points are for all."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import final

from farthing.methods.base import Fitted, Progress
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import TraceArrays


class PoolLearner(ABC):
    """Learns a policy over a pool of models from training questions."""

    @final
    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Learn from training questions; the same seed gives the same policy."""
        del alpha  # its points are for every level
        progress.update(1, 1, {})
        return Fitted(self.learn(train, seed))

    @abstractmethod
    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Return the policy; the seed decides whatever is drawn.

        Raises:
            InputError: the questions are no pool, or lack what the method needs.
        """
