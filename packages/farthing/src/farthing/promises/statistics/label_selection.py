"""Which grades are worth getting next, where answers of operating points are partly graded.

An answer is right, wrong or not graded yet. Whatever the unknown grades are, an operating point
loses no more against the reference than it does at worst; so the proof may be begun with few of
them. The next ones are those that move the proof that fails first.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray

RIGHT, WRONG, UNKNOWN = 1, 0, -1
Marks = NDArray[np.int8]
"""Right, wrong or unknown."""


@dataclass(frozen=True)
class Partly:
    """What is known of operating points and a reference on the same questions."""

    ours: Marks
    """[n, G] of each operating point's answer."""
    theirs: Marks
    """[n] of the reference's answer."""
    same: BoolArray
    """[n, G] whether the two answers are the same, so that neither wins."""

    def __post_init__(self) -> None:
        if self.ours.shape != self.same.shape or self.theirs.shape != self.ours.shape[:1]:
            raise CalibrationError("give one row a question and one column an operating point")

    @property
    def worst(self) -> IntArray:
        """[n, G] the largest loss that the grades allow: 1, 0, or -1 for a win."""
        most = (self.theirs != WRONG)[:, None].astype(np.int64) - (self.ours == RIGHT)
        return np.where(self.same, 0, most)

    @property
    def best(self) -> IntArray:
        """[n, G] the smallest loss that they allow."""
        least = (self.theirs == RIGHT)[:, None].astype(np.int64) - (self.ours != WRONG)
        return np.where(self.same, 0, least)

    @property
    def gain(self) -> IntArray:
        """[n, G] by how much grading the question may yet lower the loss, 0 to 2."""
        return self.worst - self.best


@dataclass(frozen=True)
class SequenceTest:
    """How the operating points of a promise are tested."""

    failing: int | None
    """The one whose proof fails first; None: all are proved."""
    loss: FloatArray
    """[n, G] as far as it is known, and at worst elsewhere."""
    counted: BoolArray
    """[n, G] which questions count."""
    mean: float
    """The mean loss that is to be ruled out."""
    delta: float


def first_failure(p_values: FloatArray, delta: float) -> int | None:
    """Return the operating point at which testing ends, from the dearest down; None: at none.

    >>> first_failure(np.array([0.3, 0.2, 0.01]), 0.1)
    1
    >>> first_failure(np.array([0.05, 0.01]), 0.1) is None
    True
    """
    failed = np.flatnonzero(p_values > delta)
    return int(failed[-1]) if failed.size else None


def next_to_grade(partly: Partly, point: int) -> IntArray:
    """Return the questions whose grades may move the proof of an operating point, best first.

    First by how much they may lower its loss; then by how many cheaper points they matter to, whose
    turn comes next; then in their order.

    >>> unknown = np.full((3, 2), UNKNOWN, dtype=np.int8)
    >>> same = np.array([[False, True], [True, False], [False, False]])
    >>> partly = Partly(unknown, unknown[:, 0], same)
    >>> next_to_grade(partly, 1).tolist(), next_to_grade(partly, 0).tolist()
    ([2, 1], [0, 2])
    """
    gain = partly.gain
    cheaper = (gain[:, :point] > 0).sum(axis=1)
    order = np.lexsort((-cheaper, -gain[:, point]))
    found: IntArray = order[gain[order, point] > 0]
    return found


def grades_needed(
    partly: Partly, point: int, p_value: Callable[[int, int], float], delta: float
) -> int | None:
    """Estimate how many more grades prove an operating point; None: probably not even all do.

    It supposes that questions to come turn out as those did that are graded and on which the two
    answers differ, one of each kind added. It is an estimate, and no promise rests on it.

    Args:
        partly: what is known.
        point: the operating point.
        p_value: of so many losses and so many wins.
        delta: how small it must be.
    """
    worst, queue = partly.worst[:, point], next_to_grade(partly, point)
    seen = ~partly.same[:, point] & (partly.gain[:, point] == 0)
    counts = np.array([(worst[seen] == loss).sum() for loss in (1, 0, -1)]) + 1
    loses, _, wins = counts / counts.sum()
    lost, won = (worst == 1).sum(), (worst == -1).sum()
    cleared = np.concatenate([[0], np.cumsum(worst[queue] == 1)])

    def proves(graded: int) -> bool:
        minus = lost - cleared[graded] + round(graded * loses)
        return p_value(int(minus), int(won + round(graded * wins))) <= delta

    if not proves(len(queue)):
        return None
    low, high = 0, len(queue)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle + 1, high)
    return low
