"""Train a learner on one core."""

import sys
from fractions import Fraction
from functools import lru_cache

from threadpoolctl import ThreadpoolController

from farthing.methods.base import Fitted, Learner, Progress
from farthing.traces.arrays import TraceArrays
from farthing.traces.grades.overlay import check_graded


def fit(
    learner: Learner, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress
) -> Fitted:
    """Train on one core, whatever the machine has.

    Matrices here are small: more threads only wait for one another, and how sums are shared out
    among them would show in the last bits of a result.
    """
    check_graded(train)
    with _thread_pools(len(sys.modules)).limit(limits=1):
        return learner.fit(train, alpha, seed, progress)


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:  # noqa: ARG001
    return ThreadpoolController()  # takes 4 ms, so again only where more was imported
