"""Which answers somebody should grade next, of all that operating points give.

What an operating point answers depends on no grade. So answers are looked up by their numbers, and
only what is known of them changes from one grade to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from farthing.promises.statistics.label_selection import (
    UNKNOWN,
    WRONG,
    Partly,
    SequenceTest,
    grades_needed,
    next_to_grade,
)
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.promises.statistics.sampled_mean import Sample, corrected, more_needed
from farthing.recommendation.partial_grades import RightAt
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.grades.overlay import GradeMatrix


@dataclass(frozen=True)
class GradeRequest:
    """Answers to one question that somebody is asked about."""

    row: int
    """The question's place among the traces."""
    codes: tuple[int, ...]
    """Numbers of the answers."""
    against: int | None = None
    """Number of the reference's answer where it is asked what is the same; else what is right."""


@dataclass(frozen=True)
class GradingPlan:
    """What is to be asked next, and how much of it."""

    wanted: tuple[GradeRequest, ...]
    """What persons are asked, the best first; empty: no grade could prove more."""
    needed: int | None
    """An estimate of the questions that the next operating point takes; None: it cannot be said, or
    probably not even all are enough."""


@dataclass(frozen=True)
class AnswerTable:
    """What operating points answer to the calibration questions, and what persons know of it."""

    rows: IntArray
    """[n] their places among all questions."""
    chosen: IntArray
    """[n, G] number of each operating point's answer; -1 for none."""
    theirs: IntArray
    """[n] number of the reference's answer; -1 for none, and where there is no reference."""
    marks: GradeMatrix
    """[n, K] what persons know of each answer."""

    @property
    def same(self) -> BoolArray:
        """[n, G] whether an operating point gives the reference's answer."""
        same: BoolArray = (self.chosen == self.theirs[:, None]) & (self.chosen != NO_ANSWER)
        return same

    @property
    def partly(self) -> Partly:
        """What is known of the operating points beside the reference."""
        theirs = _known_of(self.marks, self.theirs[:, None])[:, 0]
        return Partly(_known_of(self.marks, self.chosen), theirs, self.same)

    @property
    def deciding(self) -> list[tuple[int, ...]]:
        """[n] the answers that decide between an operating point and the reference."""
        found = []
        for chosen, same, theirs in zip(self.chosen, self.same, self.theirs, strict=True):
            codes = set(chosen[~same].tolist())
            codes |= {int(theirs)} if codes else set()
            found.append(tuple(sorted(codes - {NO_ANSWER})))
        return found

    def unknown(self, i: int, codes: Sequence[int]) -> tuple[int, ...]:
        """Return which of a question's answers no person has graded."""
        return tuple(code for code in codes if self.marks[i, code] == UNKNOWN)


def chosen_at(right_at: RightAt, played: TraceArrays) -> IntArray:
    """Return the number of each operating point's answer, [n, G]; -1 for none.

    Each binary digit of a number is asked for as if it were a grade.
    """
    number = played.answer.astype(np.int64) + 1
    digits = range(max(1, int(number.max(initial=0)).bit_length()))
    asked = (replace(played, correct=(number >> digit & 1).astype(bool)) for digit in digits)
    found = np.stack([right_at(traces) for traces in asked], axis=-1)
    chosen: IntArray = found @ (1 << np.array(digits)) - 1
    return chosen


def worst_case(table: AnswerTable, test: SequenceTest) -> GradingPlan:
    """Return what to grade next where whoever grades chooses, for the proof that fails first."""
    point = test.failing
    if point is None:
        return GradingPlan((), 0)
    partly, wanted = table.partly, []
    for i in next_to_grade(partly, point).tolist():
        pair = {int(table.chosen[i, point]), int(table.theirs[i])} - {NO_ANSWER}
        wanted.append(GradeRequest(int(table.rows[i]), table.unknown(i, sorted(pair))))
    of = partial(loss_p_value, n=len(table.rows), epsilon=test.mean)
    return GradingPlan(tuple(wanted), grades_needed(partly, point, of, test.delta))


def sampled(table: AnswerTable, test: SequenceTest, sample: Sample) -> GradingPlan:
    """Return what to grade next where chance draws it: in the order of the draw."""
    if test.failing is None:
        return GradingPlan((), 0)
    deciding = table.deciding
    drawn = sample.order[sample.drawn[sample.order]].tolist()
    asked = [(i, table.unknown(i, deciding[i])) for i in drawn]
    waiting = [(i, codes) for i, codes in asked if codes]
    wanted = tuple(GradeRequest(int(table.rows[i]), codes) for i, codes in waiting)
    first = waiting[0][0] if waiting else None
    labels = np.array([len(codes) > 0 for codes in deciding]) & sample.drawn
    return GradingPlan(wanted, _needed(test, sample, labels, first))


def to_compare(table: AnswerTable, pairs: Sequence[tuple[int, int]]) -> GradingPlan:
    """Return the pairs that a judge called the same and a person is to compare: all of them.

    A pair is the place of a question and the number of its answer.
    """
    theirs = dict(zip(table.rows.tolist(), table.theirs.tolist(), strict=True))
    return GradingPlan(
        tuple(GradeRequest(row, (code,), theirs[row]) for row, code in pairs), len(pairs)
    )


def to_judge(table: AnswerTable, *, same: bool) -> tuple[GradeRequest, ...]:
    """Return what a judge is to say, of every calibration question.

    It is asked what is the same as the reference's answer, or else what is right.
    """
    wanted = []
    for row, codes, theirs in zip(table.rows, table.deciding, table.theirs, strict=True):
        others = tuple(code for code in codes if not same or code != theirs)
        if others and (theirs != NO_ANSWER or not same):
            wanted.append(GradeRequest(int(row), others, int(theirs) if same else None))
    return tuple(wanted)


def _needed(
    test: SequenceTest, sample: Sample, labels: BoolArray, waiting: int | None
) -> int | None:
    """Estimate from the questions up to the first one that is drawn and not graded."""
    point, order = test.failing, sample.order
    if point is None or waiting is None:
        return None
    done = order[: int(np.flatnonzero(order == waiting)[0])]
    left = int(labels.sum() - labels[done].sum())
    done = done[test.counted[done, point]]
    if not done.size:
        return None
    terms = corrected(test.loss, sample)[done, point]
    most = 1 / sample.probability
    found = more_needed(terms, labels[done].astype(np.int64), test.mean, most, test.delta)
    return None if found is None or found > left else found


def _known_of(marks: GradeMatrix, codes: IntArray) -> GradeMatrix:
    """Return what is known of answers, [n, G]; no answer is never right."""
    found = np.take_along_axis(marks, np.maximum(codes, 0), axis=1)
    known: GradeMatrix = np.where(codes == NO_ANSWER, WRONG, found).astype(np.int8)
    return known
