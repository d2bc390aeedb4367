"""Grades that somebody hands in as a table: `id, answer, right`; `id, role, right`; or `id, gold`.

A CSV file with a head line, or one JSON object a line. `same` in place of `right` says whether the
answer is that of a reference. All of it is taken or nothing.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farthing.errors import InputError, TraceFormatError
from farthing.tasks.base import is_answer
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.grades.grade_file import Gold, Right, Same
from farthing.traces.grades.overlay import AnswerTexts

FORM = (
    "give a row each: id and gold; or id, right, and the answer or the role that gave it "
    "(such as id,gold on the first line of a CSV file)"
)
_COLUMNS = frozenset({"id", "answer", "role", "right", "same", "gold"})
_SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class GradeTable:
    """What the rows are about."""

    traces: TraceArrays
    wordings: AnswerTexts
    reference: str | None = None
    """The role that `same` compares with."""
    drawn: Mapping[str, float] = field(default_factory=dict)
    """Questions that chance drew to be graded, to the probability of that."""


def read_grade_table(path: Path, given: GradeTable) -> list[Right | Gold | Same]:
    """Read a table of grades.

    Raises:
        TraceFormatError: a row says nothing, or is of a question or an answer that nobody gave.
        InputError: the file cannot be read.
    """
    found = []
    for line, row in _rows(path):
        try:
            found.append(_grade(row, given))
        except InputError as problem:
            raise TraceFormatError(str(path), line, "row", str(problem)) from None
    if not found:
        raise TraceFormatError(str(path), 1, "file", f"holds no grades; {FORM}")
    return found


def _grade(row: Mapping[str, Any], given: GradeTable) -> Right | Gold | Same:
    for name in sorted(row.keys() - _COLUMNS):
        raise InputError(f"'{name}' is no column of grades; {FORM}")
    question = str(row.get("id") or "")
    at = given.wordings.row(question)
    if row.get("gold"):
        gold = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
        return Gold(
            id=question, gold=[str(text) for text in gold], probability=given.drawn.get(question)
        )
    answer = _answer(row, at, given)
    given.wordings.code(at, answer)
    if row.get("same") not in {None, ""}:
        if given.reference is None:
            raise InputError("says what is the same, and of no reference; name it (--reference)")
        said = _yes_or_no(row["same"])
        return Same(id=question, answer=answer, reference=given.reference, same=said)
    right = _yes_or_no(row.get("right"))
    return Right(id=question, answer=answer, right=right, probability=given.drawn.get(question))


def _answer(row: Mapping[str, Any], at: int, given: GradeTable) -> str:
    """Return the answer that a row is about: in words, or the first one of a role."""
    if is_answer(answer := _text(row.get("answer"))):
        return answer
    role = _text(row.get("role"))
    if role not in given.traces.roles:
        raise InputError(
            f"names no answer; give `gold`, `answer`, or `role`, one of "
            f"{', '.join(given.traces.roles)}"
        )
    code = int(given.traces.answer[at, 0, given.traces.roles.index(role)])
    if code == NO_ANSWER:
        raise InputError(f"{role} gave no answer to '{row.get('id')}'; leave the row out")
    return given.wordings.texts[at][code]


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _yes_or_no(value: object) -> bool:
    said = _SAID.get(str(value).strip().casefold())
    if said is None:
        raise InputError(f"says '{_text(value)}' in place of true or false")
    return said


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows, with the number of their line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error}); check the path"
        raise InputError(f"{path}: {problem}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text; save it as CSV or JSON lines, in UTF-8") from None
    if path.suffix == ".csv":
        for line, row in enumerate(csv.DictReader(text.splitlines(keepends=True)), start=2):
            yield line, {str(name): value for name, value in row.items()}
        return
    for line, raw in enumerate(text.splitlines(), start=1):
        if raw.strip():
            yield line, _object(path, line, raw)


def _object(path: Path, line: int, raw: str) -> Mapping[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TraceFormatError(
            str(path), line, "line", "is no JSON object; write one a line, or name a table .csv"
        )
    return found
