"""What a promise is proved from and measured on: records of plain arrays, which who plays fills."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.statistics.clusters import Clusters
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.promises.statistics.sampled_mean import Sample


@dataclass(frozen=True)
class PlayedPoints:
    """What operating points did on some questions."""

    correct: BoolArray
    """[n, G] whether the point's answer is as the grade asks; one that is not given is not."""
    answered: BoolArray
    """[n, G] whether it gives one."""
    covered: BoolArray
    """[n, G] whether a right answer is in its set, or there is none to find."""
    cost_nano: IntArray | None = None
    """[n, G] what it costs, in nano-dollars; of a promise that passes questions on, with that. None
    where points do not differ by it."""
    kappas: FloatArray | None = None
    """[G] the threshold of each."""
    candidates: Candidates | None = None
    """Where they are of several candidates: whose each is."""

    def take(self, rows: IntArray) -> "PlayedPoints":
        """Return what they did on some of the questions."""
        cost = None if self.cost_nano is None else self.cost_nano[rows]
        correct, answered, covered = self.correct[rows], self.answered[rows], self.covered[rows]
        return replace(self, correct=correct, answered=answered, covered=covered, cost_nano=cost)

    @property
    def spent(self) -> IntArray:
        """What each costs, where that is known."""
        if self.cost_nano is None:
            raise TypeError("points without a cost prove nothing about money")
        return self.cost_nano


@dataclass(frozen=True)
class Facts:
    """What is known of the same questions beside that."""

    role: str | None = None
    """The reference; None: there is none."""
    right: BoolArray | None = None
    """[n] whether the reference's first answer is as the grade asks."""
    alone_nano: IntArray | None = None
    """[n] what the reference costs alone; None: it was not recorded alone."""
    clusters: Clusters | None = None
    """Of a promise per request: which of these ask the same."""
    weights: FloatArray | None = None
    """[n] what each counts, inversely to the probability with which it was drawn; None: alike."""
    sample: Sample | None = None
    """What chance drew to be graded; None: every question is."""
    checks: Any = None
    """How a judge who says what is the same was checked; None: no judge does."""
    group: IntArray | None = None
    """[n] index of each question's group in `group_names`; None: not known."""
    group_names: Sequence[str] = ()


class Acted(Protocol):
    """What a policy did at the point that a certificate promises, each [n]."""

    @property
    def cost_nano(self) -> IntArray:
        """What each question cost, in nano-dollars."""

    @property
    def in_set(self) -> BoolArray:
        """Whether a right answer was returned."""

    @property
    def covered(self) -> BoolArray:
        """Whether a right answer was returned, or there is none to find."""

    @property
    def solvable(self) -> BoolArray:
        """Whether any recorded answer is right."""

    @property
    def best_correct(self) -> BoolArray:
        """Whether the single best answer is right."""

    @property
    def set_size(self) -> NDArray[np.int16]:
        """Number of answers returned."""


@dataclass(frozen=True)
class Gradable:
    """What there is to grade questions by."""

    roles: Sequence[str]
    grade: str = "right"
    """What counts as right as they are, or in the training of the policy."""
    trained_as: str | None = None
    """The role whose answers that is; None: it is right answers."""
    by_lot: bool = False
    """Whether chance draws the questions that are graded, so that others need not be."""
    ungraded: bool = False
    """Whether nobody graded some of the answers."""
    nothing: bool = False
    """Whether nobody graded any."""
