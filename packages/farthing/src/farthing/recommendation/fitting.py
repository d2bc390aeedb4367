"""Train a learner on one core."""

from fractions import Fraction

from threadpoolctl import threadpool_limits

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
    with threadpool_limits(limits=1):
        return learner.fit(train, alpha, seed, progress)
