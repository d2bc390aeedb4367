"""Put grades from a file on top of traces, and find out what answers say in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from farthing import plugins
from farthing.errors import InputError
from farthing.tasks.base import Task, is_answer
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.grades.codes import normaliser
from farthing.traces.grades.grade_file import Gold, Line, Right, Same
from farthing.traces.trace_kind import answering

GradeMatrix = NDArray[np.int8]
RIGHT, WRONG, UNKNOWN = 1, 0, -1


@dataclass(frozen=True)
class AnswerTexts:
    """What the distinct answers of each question say, by their numbers in the arrays."""

    rows: Mapping[str, int]
    """Question id to its row."""
    tasks: tuple[str, ...]
    """[n] the task of each question."""
    texts: tuple[Mapping[int, str], ...]
    """[n] number to the answer, as it was first given."""

    @classmethod
    def of(cls, records: Sequence[Trace], arrays: TraceArrays) -> Self:
        """Read them from the records that the arrays were made of, in the same order."""
        place = {role: i for i, role in enumerate(arrays.roles)}
        texts: list[Mapping[int, str]] = []
        for trace, codes in zip(records, arrays.answer.tolist(), strict=True):
            found: dict[int, str] = {}
            for call in answering(trace):
                if call.answer is not None and is_answer(call.answer):
                    found.setdefault(codes[call.round - 1][place[call.role]], call.answer)
            texts.append(found)
        rows = {trace.id: row for row, trace in enumerate(records)}
        return cls(rows, tuple(trace.task for trace in records), tuple(texts))

    @property
    def most(self) -> int:
        """The largest number of distinct answers of any question."""
        return max((max(texts, default=-1) for texts in self.texts), default=-1) + 1

    def row(self, question: str) -> int:
        """Return a question's row.

        Raises:
            InputError: there is no such question.
        """
        if question not in self.rows:
            raise InputError(f"there is no question '{question}' among the traces; check the id")
        return self.rows[question]

    def code(self, row: int, answer: str) -> int:
        """Return the number of an answer, or of one that the task holds for the same.

        Raises:
            InputError: nobody gave such an answer.
        """
        normalise = normaliser(self.tasks[row])
        wanted = normalise(answer)
        for code, text in self.texts[row].items():
            if normalise(text) == wanted:
                return code
        question = next(name for name, at in self.rows.items() if at == row)
        raise InputError(f"nobody answered '{answer}' to the question '{question}'; check it")

    def accepted(self, row: int, gold: Sequence[str]) -> dict[int, bool]:
        """Return whether each answer of a question is among the accepted ones."""
        task: Task = plugins.load("tasks", self.tasks[row])
        return {code: task.grade(text, gold) for code, text in self.texts[row].items()}


def apply_grades(traces: TraceArrays, wordings: AnswerTexts, lines: Iterable[Line]) -> TraceArrays:
    """Return traces with what persons found out on top of what was recorded.

    Raises:
        InputError: a line is about a question or an answer that the traces do not have.
    """
    late = _table(wordings, (line for line in lines if getattr(line, "judge", None) is None))
    marks = _per_answer(traces, late)
    return replace(
        traces,
        correct=np.where(marks == UNKNOWN, traces.correct, marks == RIGHT),
        ungraded=traces.ungraded & (marks == UNKNOWN),
    )


def as_judged(
    traces: TraceArrays, wordings: AnswerTexts, lines: Iterable[Line], judge: str
) -> TraceArrays:
    """Return traces graded by a judge alone, by its first word on each answer.

    Raises:
        InputError: a line is about a question or an answer that the traces do not have.
    """
    said = [line for line in lines if isinstance(line, Right) and line.judge == judge]
    marks = _per_answer(traces, _table(wordings, reversed(said)))
    given = traces.answer != NO_ANSWER
    return replace(traces, correct=marks == RIGHT, ungraded=given & (marks == UNKNOWN))


def judged_same(
    traces: TraceArrays, wordings: AnswerTexts, lines: Iterable[Line], whose: tuple[str, str | None]
) -> GradeMatrix:
    """Return what somebody says of each answer's being the same as a reference's, [n, T, L].

    Args:
        traces: the questions.
        wordings: of them.
        lines: the file of grades.
        whose: the reference's role, and the judge; None: persons.

    Raises:
        InputError: a line is about a question or an answer that the traces do not have.
    """
    said = [
        line for line in lines if isinstance(line, Same) and (line.reference, line.judge) == whose
    ]
    return _per_answer(traces, _table(wordings, said if whose[1] is None else reversed(said)))


def recorded_marks(traces: TraceArrays, most: int) -> GradeMatrix:
    """Return what is known of each distinct answer, [n, K]: right, wrong or unknown.

    An answer that is right in one place counts as right in all.
    """
    marks = np.full((len(traces), most), UNKNOWN, dtype=np.int8)
    given = traces.answer != NO_ANSWER
    for value, where in (
        (WRONG, given & ~traces.correct & ~traces.ungraded),
        (RIGHT, traces.correct),
    ):
        row, time, role = np.nonzero(where)
        marks[row, traces.answer[row, time, role]] = value
    return marks


def _table(wordings: AnswerTexts, lines: Iterable[Line]) -> GradeMatrix:
    """Return what lines say of each distinct answer, [n, K]; of several the last one."""
    marks = np.full((len(wordings.texts), max(wordings.most, 1)), UNKNOWN, dtype=np.int8)
    for line in lines:
        match line:
            case Right():
                row = wordings.row(line.id)
                marks[row, wordings.code(row, line.answer)] = line.right
            case Same():
                row = wordings.row(line.id)
                marks[row, wordings.code(row, line.answer)] = line.same
            case Gold():
                row = wordings.row(line.id)
                for code, right in wordings.accepted(row, line.gold).items():
                    marks[row, code] = right
    return marks


def _per_answer(traces: TraceArrays, table: GradeMatrix) -> GradeMatrix:
    """Return what a table [n, K] says of each recorded answer, [n, T, L]."""
    flat = np.maximum(traces.answer, 0).reshape(len(traces), -1).astype(np.int64)
    found = np.take_along_axis(table, flat, axis=1).reshape(traces.answer.shape)
    marks: GradeMatrix = np.where(traces.answer == NO_ANSWER, UNKNOWN, found).astype(np.int8)
    return marks
