"""Grades on top of arrays: by another name, or as a file has them.

`right` says that an answer is accepted, or was recorded as correct. `same as REFERENCE` says that
it is the answer which another model gave; that takes no accepted answers. What counts as the same
is the task's own equality: arrays number the distinct answers of a question by it. Learners and
guarantees read one of them alike.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError, UnknownNameError
from farthing.traces.arrays import NO_ANSWER, RIGHT, BoolArray, TraceArrays
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.grades.grade_file import GoldGrade, GradeLine, Right, Same

SAME_AS = "same as "


def same_as(reference: str) -> str:
    """Name the grade of an answer that is the same as a model's.

    >>> same_as("gpt-4o")
    'same as gpt-4o'
    """
    return SAME_AS + reference


def reference_of(grade: str) -> str | None:
    """Return the model that a grade compares with; None where it says what is right.

    >>> reference_of("same as gpt-4o"), reference_of("right")
    ('gpt-4o', None)
    """
    return grade.removeprefix(SAME_AS) if grade.startswith(SAME_AS) else None


def graded(traces: TraceArrays, grade: str) -> TraceArrays:
    """Return the same questions, with `correct` by another grade.

    A missing answer is never the same as another: where the reference gave none, none agrees.

    Args:
        traces: as they were recorded, [n, T, L].
        grade: `right`, or `same as ROLE`, one of the roles. Its first answer is compared with.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> calls = [Call(round=1, role=role, answer=said)
    ...          for role, said in [("mini", "Paris."), ("nano", "Rome"), ("large", "paris")]]
    >>> traces = assemble([Trace(id="q", calls=calls)])
    >>> same = graded(traces, "same as large")
    >>> dict(zip(same.roles, same.correct[0, 0].tolist(), strict=True))
    {'large': True, 'mini': True, 'nano': False}
    """
    if grade == traces.grade:
        return traces
    reference = reference_of(grade)
    if reference is None or traces.grade != RIGHT:
        raise InputError(
            f"the grade '{grade}' cannot be read of these traces; give '{RIGHT}' or "
            f"'{SAME_AS}ROLE', with one of {', '.join(traces.roles)}"
        )
    theirs = first_answer(traces, reference)
    same = (traces.answer == theirs[:, None, None]) & (traces.answer != NO_ANSWER)
    return replace(traces, correct=same, ungraded=np.zeros_like(same), grade=grade)


def first_answer(traces: TraceArrays, role: str) -> NDArray[np.int16]:
    """Return a role's answer in round 1, [n], which no other call has informed."""
    if role not in traces.roles:
        raise UnknownNameError("role", role, traces.roles)
    place = traces.roles.index(role)
    if place and not traces.independent.all():
        raise InputError(
            f"calls of these traces saw one another, so that nobody knows what {role} would have "
            "answered alone; record its calls by themselves (`independent`)"
        )
    answer: NDArray[np.int16] = traces.answer[:, 0, place]
    return answer


def check_graded(traces: TraceArrays) -> None:
    """Refuse questions of which it is not known what is right."""
    if missing := int(ungraded_questions(traces).sum()):
        raise InputError(
            f"{missing:,} of {len(traces):,} questions have answers that nobody graded; give their "
            f"accepted answers (`gold`) or `correct`, or ask for the grade '{SAME_AS}ROLE' and "
            "the promise of agreement, which need none"
        )


def ungraded_questions(traces: TraceArrays) -> BoolArray:
    """Return which questions have an answer that nobody graded, [n]."""
    found: BoolArray = np.any(traces.ungraded, axis=(1, 2))
    return found


def at_worst(traces: TraceArrays, reference: str) -> TraceArrays:
    """Return every answer graded, at worst for whoever is held against a reference.

    An unknown grade is first that of the same answer, where that is known. Then an answer that is
    the reference's counts as right, and so as no loss; any other counts as wrong. So whatever
    the unknown grades are, no policy loses more against the reference, and none wins less.
    """
    if not traces.ungraded.any():
        return traces
    known_right = _shared(traces, traces.correct)
    wrong = (traces.answer != NO_ANSWER) & ~traces.correct & ~traces.ungraded
    unknown = traces.ungraded & ~known_right & ~_shared(traces, wrong)
    theirs = first_answer(traces, reference)
    same = traces.answer == theirs[:, None, None]
    return replace(
        traces,
        correct=known_right | (unknown & same),
        ungraded=np.zeros_like(traces.ungraded),
    )


def _shared(traces: TraceArrays, marked: BoolArray) -> BoolArray:
    """Return the answers that are marked themselves, or ungraded and the same as a marked one."""
    answer = traces.answer.reshape(len(traces), -1)
    codes = np.arange(max(int(answer.max(initial=0)) + 1, 1))
    has = ((answer[:, :, None] == codes) & marked.reshape(answer.shape)[:, :, None]).any(axis=1)
    shared = np.take_along_axis(has, np.maximum(answer, 0), axis=1) & (answer != NO_ANSWER)
    found: BoolArray = marked | (shared.reshape(marked.shape) & traces.ungraded)
    return found


GradeMatrix = NDArray[np.int8]
YES, NO, UNKNOWN = 1, 0, -1


def apply_grades(
    traces: TraceArrays, wordings: AnswerTexts, lines: Iterable[GradeLine]
) -> TraceArrays:
    """Return traces with what persons found out on top of what was recorded."""
    late = _table(wordings, (line for line in lines if getattr(line, "judge", None) is None))
    marks = _per_answer(traces, late)
    return replace(
        traces,
        correct=np.where(marks == UNKNOWN, traces.correct, marks == YES),
        ungraded=traces.ungraded & (marks == UNKNOWN),
    )


def as_judged(
    traces: TraceArrays, wordings: AnswerTexts, lines: Iterable[GradeLine], judge: str
) -> TraceArrays:
    """Return traces graded by a judge alone, by its first word on each answer."""
    said = [line for line in lines if isinstance(line, Right) and line.judge == judge]
    marks = _per_answer(traces, _table(wordings, reversed(said)))
    given = traces.answer != NO_ANSWER
    return replace(traces, correct=marks == YES, ungraded=given & (marks == UNKNOWN))


def judged_same(
    traces: TraceArrays,
    wordings: AnswerTexts,
    lines: Iterable[GradeLine],
    whose: tuple[str, str | None],
) -> GradeMatrix:
    """Return what somebody says of each answer's being the same as a reference's, [n, T, L].

    Args:
        traces: the questions.
        wordings: of them.
        lines: the file of grades.
        whose: the reference's role, and the judge; None: persons.
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
        (NO, given & ~traces.correct & ~traces.ungraded),
        (YES, traces.correct),
    ):
        row, time, role = np.nonzero(where)
        marks[row, traces.answer[row, time, role]] = value
    return marks


def _table(wordings: AnswerTexts, lines: Iterable[GradeLine]) -> GradeMatrix:
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
            case GoldGrade():
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
