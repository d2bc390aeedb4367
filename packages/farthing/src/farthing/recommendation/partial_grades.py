"""Calibration questions of which some are graded: by lot, by a judge, at worst.

A person's grade is the truth. A judge's never is: it predicts, or says what is the same, and what
persons found out on questions that chance drew keeps the promise valid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from farthing.promises.agreeing import Checks
from farthing.promises.statistics.sampled_mean import Sample
from farthing.traces import splits as lots
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.grades.grade_file import GradeLine, Pairs, QuestionDraw, plan_of
from farthing.traces.grades.overlay import (
    UNKNOWN,
    YES,
    GradeMatrix,
    apply_grades,
    as_judged,
    first_answer,
    judged_same,
)

RightAt = Callable[[TraceArrays], BoolArray]
"""Whether each operating point's answer counts as correct, [n, G], of questions as they are
played; what is bought and answered depends on no grade."""


@dataclass(frozen=True)
class LabelledTraces:
    """Traces and the grades beside them."""

    traces: TraceArrays
    """With what persons found out."""
    lines: Sequence[GradeLine]
    wordings: AnswerTexts
    draw: QuestionDraw | None = None
    """How chance draws what is graded; None: whoever grades chooses."""
    pairs: Pairs | None = None
    """How a judge's "same" is checked; None: no judge says what is the same."""

    @classmethod
    def of(cls, recorded: TraceArrays, wordings: AnswerTexts, lines: Sequence[GradeLine]) -> Self:
        """Put grades on top of what was recorded."""
        traces = apply_grades(recorded, wordings, lines)
        return cls(traces, lines, wordings, plan_of(lines, QuestionDraw), plan_of(lines, Pairs))

    @property
    def drawn(self) -> dict[str, float]:
        """The ids of the questions that chance draws, to the probability of that."""
        if self.draw is None:
            return {}
        chosen = lots.sample_ids(self.traces.ids, self.draw.seed, self.draw.probability)
        return dict.fromkeys(self.traces.ids[chosen].tolist(), self.draw.probability)

    def judged(self) -> TraceArrays:
        """Return the traces as the judge of the draw grades them; without one, not at all."""
        judge = self.draw.judge if self.draw else None
        return as_judged(
            self.traces, self.wordings, [] if judge is None else self.lines, judge or ""
        )

    def same(self, reference: str, *, by_persons: bool = False) -> GradeMatrix:
        """Return what the judge of the pairs, or persons, call a reference's answer, [n, T, L]."""
        judge = self.pairs.judge if self.pairs and not by_persons else None
        return judged_same(self.traces, self.wordings, self.lines, (reference, judge))

    def with_same(self, traces: TraceArrays, reference: str) -> TraceArrays:
        """Return traces graded by `same as REFERENCE`, with what the judge calls the same."""
        if self.pairs is None:
            return traces
        return replace(traces, correct=traces.correct | (self.same(reference) == YES))

    def checks(self, reference: str, rows: IntArray) -> Checks | None:
        """Return how the judge's "same" was checked; None where no judge says it.

        Of so many calibration questions, drawn by chance, each is an error if anything that the
        judge called the same is not, or was compared by nobody. Where the judge called nothing the
        same there is nothing to compare.

        Args:
            reference: the role that is compared with.
            rows: the calibration questions.
        """
        if self.pairs is None:
            return None
        drawn = self._drawn_pairs(rows)
        wrong = self._unconfirmed(reference)[drawn].any(axis=(1, 2))
        return Checks(self.pairs.judge, len(drawn), int(wrong.sum()))

    def uncompared(self, reference: str, rows: IntArray) -> list[tuple[int, int]]:
        """Return the drawn questions, and the answers of each, that a person is yet to compare."""
        asked = self._unconfirmed(reference)
        asked &= self.same(reference, by_persons=True) == UNKNOWN
        pairs = []
        for row in self._drawn_pairs(rows).tolist():
            codes = np.unique(self.traces.answer[row][asked[row]]).tolist()
            pairs += [(row, code) for code in codes]
        return pairs

    def _unconfirmed(self, reference: str) -> BoolArray:
        """Return the answers that the judge alone calls the same, and no person, [n, T, L]."""
        theirs = first_answer(self.traces, reference)[:, None, None]
        said = (self.same(reference) == YES) & (self.traces.answer != theirs)
        found: BoolArray = said & (self.same(reference, by_persons=True) != YES)
        return found

    def _drawn_pairs(self, rows: IntArray) -> IntArray:
        if self.pairs is None:
            return rows[:0]
        drawn: IntArray = rows[lots.order(self.traces.ids[rows], self.pairs.seed)]
        return drawn[: self.pairs.number]


@dataclass(frozen=True)
class SampledGrades:
    """Which calibration questions chance drew, and how a judge grades all of them."""

    draw: QuestionDraw
    recorded: TraceArrays
    """Graded by the judge; without one, not at all."""
    played: TraceArrays
    """The same; a pool of models as a cascade."""

    def parity_sample(self, right_at: RightAt, role: str) -> Sample:
        """Return the sample of a parity with a role; a predicted win counts as a tie."""
        place, theirs = self.recorded.roles.index(role), first_answer(self.recorded, role)
        same = right_at(_marked(self.played, self.played.answer == theirs[:, None, None]))
        loses = self.recorded.correct[:, 0, place][:, None] & ~right_at(self.played)
        unsaid = self._unsaid(right_at) | self.recorded.ungraded[:, 0, place][:, None]
        return self._sample(loses & ~same, unsaid & ~same)

    def selective_sample(self, right_at: RightAt) -> Sample:
        """Return the sample of a selective promise."""
        return self._sample(~right_at(self.played), self._unsaid(right_at))

    def _unsaid(self, right_at: RightAt) -> BoolArray:
        return right_at(_marked(self.played, self.played.ungraded))

    def _sample(self, loses: BoolArray, unsaid: BoolArray) -> Sample:
        """What the judge has not said yet counts at worst, whether or not it was drawn."""
        ids, draw = self.recorded.ids, self.draw
        chosen = lots.sample_ids(ids, draw.seed, draw.probability)
        predicted = np.where(unsaid, ~chosen[:, None], loses).astype(np.float64)
        if draw.judge is None:
            predicted = np.zeros_like(predicted)
        return Sample(
            predicted, chosen, lots.order(ids, draw.seed), draw.probability, judge=draw.judge
        )


def _marked(traces: TraceArrays, marked: BoolArray) -> TraceArrays:
    """Return traces in which the marked answers alone count as correct."""
    given = traces.answer != NO_ANSWER
    return replace(traces, correct=marked & given, ungraded=np.zeros_like(given))
