"""Grades that came after the traces, in files: our own, and tables that somebody hands in.

Our own has one line of JSON each, beside the traces:

    {"kind":"right","id":"q1","answer":"Lisbon","right":true}
    {"kind":"gold","id":"q2","gold":["Rome"]}
    {"kind":"same","id":"q3","answer":"on the sea","reference":"gpt-4o","same":true,"judge":"mini"}
    {"kind":"draw","seed":0,"probability":0.2,"judge":"mini"}

Lines are only ever added, each whole or not at all; the traces stay as they are. A later grade of
the same answer by a person takes the place of an earlier one; of a judge, the first one counts.

A table says `id, answer, right`; `id, role, right`; or `id, gold`: CSV with a head line, or one
JSON object a line. `same` in place of `right` says whether the answer is that of a reference. All
of it is taken or nothing.
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from farthing.errors import InputError, TraceFormatError
from farthing.tasks.base import is_answer
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.base import Name, Probability, QuestionId
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.jsonl import plain

NOT_OURS = (
    "; this file is as `farthing grade` keeps it, which takes a table of yours with --grades FILE"
)


class _GradeRecord(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
    tag_field="kind",
):  # fmt: skip
    pass


class Right(_GradeRecord, frozen=True, tag="right"):
    """Whether an answer is right."""

    id: QuestionId
    """The question."""
    answer: Name
    """The answer, or another that the task holds for the same."""
    right: bool
    judge: str | None = None
    """The model that says so; None: a person, whose word is the truth."""
    probability: Probability | None = None
    """With which the question was drawn to be graded; None: somebody chose it."""


class GoldGrade(_GradeRecord, frozen=True, tag="gold"):
    """The accepted answers of a question, which grade all that was answered."""

    id: QuestionId
    gold: Annotated[list[Name], Meta(min_length=1)]
    probability: Probability | None = None


class Same(_GradeRecord, frozen=True, tag="same"):
    """Whether an answer says the same as a reference's."""

    id: QuestionId
    answer: Name
    reference: Name
    """The role that the reference fills."""
    same: bool
    judge: str | None = None


class QuestionDraw(_GradeRecord, frozen=True, tag="draw"):
    """How chance draws the questions that a person grades; at most one a file.

    Which ones it draws follows from the seed and a question's id alone.
    """

    seed: Annotated[int, Meta(ge=0)]
    probability: Probability
    """With which each question is drawn."""
    judge: str | None = None
    """Whose grades of all questions help the proof; None: nobody's."""


class Pairs(_GradeRecord, frozen=True, tag="pairs"):
    """How chance draws the questions on which a judge's "same" is checked; at most one a file."""

    seed: Annotated[int, Meta(ge=0)]
    number: Annotated[int, Meta(ge=1)]
    """How many, fixed before any is checked."""
    judge: str


GradeLine = Right | GoldGrade | Same | QuestionDraw | Pairs
Plan = QuestionDraw | Pairs


def beside(traces: Path) -> Path:
    """Return the file of grades that goes with a file of traces.

    >>> print(beside(Path("logs/runs.jsonl.gz")), beside(Path("traces.db")))
    logs/runs.grades.jsonl traces.grades.jsonl
    """
    stem = traces.name
    for suffix in (".gz", ".jsonl", ".db", ".sqlite", ".parquet"):
        stem = stem.removesuffix(suffix)
    return traces.with_name(f"{stem}.grades.jsonl")


def read_grades(path: Path) -> list[GradeLine]:
    """Read a file of grades; one that does not exist has none.

    A last line without its end was cut off by a crash while it was written, and is left out.
    """
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    whole = content[: content.rfind(b"\n") + 1]
    lines: list[GradeLine] = []
    for number, raw in enumerate(whole.splitlines(), start=1):
        if not raw.strip():
            continue
        try:
            lines.append(msgspec.json.decode(raw, type=GradeLine))
        except msgspec.ValidationError as error:
            expected, _, where = str(error).partition(" - at `$.")
            field = where.rstrip("`") or "line"
            problem = plain(expected, field) + (NOT_OURS if field == "line" else "")
            raise TraceFormatError(str(path), number, field, problem) from None
        except msgspec.DecodeError as error:
            problem = f"is no JSON ({error}){NOT_OURS}"
            raise TraceFormatError(str(path), number, "line", problem) from None
    for kind in (QuestionDraw, Pairs):
        if len({line for line in lines if isinstance(line, kind)}) > 1:
            problem = "is drawn in two ways; a file takes one, or its promise would be void"
            raise TraceFormatError(str(path), len(lines), "kind", problem)
    return lines


def plan_of(lines: Iterable[GradeLine], kind: type[Any]) -> Any:
    """Return how chance draws, by a kind of plan; None where nothing is drawn."""
    return next((line for line in lines if isinstance(line, kind)), None)


def add_grades(path: Path, lines: Sequence[GradeLine]) -> None:
    """Add lines to a file of grades and wait until they are on the disk.

    What a crash left of a last line is cut off first.
    """
    if not lines:
        return
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        with path.open("ab+") as file:
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                os.ftruncate(file.fileno(), content.rfind(b"\n") + 1)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); check the path") from error


FORM = (
    "give a row each: id and gold; or id, right, and the answer or the role that gave it "
    "(such as id,gold on the first line of a CSV file)"
)
_COLUMNS = frozenset({"id", "answer", "role", "right", "same", "gold"})
_SAYS = ("answer", "role")
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


def read_grade_table(path: Path, given: GradeTable) -> list[Right | GoldGrade | Same]:
    """Read a table of grades."""
    found = []
    for line, row in _rows(path):
        try:
            found.append(_grade(row, given))
        except InputError as problem:
            raise TraceFormatError(str(path), line, "row", str(problem)) from None
    if not found:
        raise TraceFormatError(str(path), 1, "file", f"holds no grades; {FORM}")
    return found


def _grade(row: Mapping[str, Any], given: GradeTable) -> Right | GoldGrade | Same:
    for name in sorted(row.keys() - _COLUMNS):
        raise InputError(f"'{name}' is no column of grades; {FORM}")
    question = str(row.get("id") or "")
    at = given.wordings.row(question)
    if row.get("gold"):
        gold = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
        return GoldGrade(
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
    answer, role = ("" if (value := row.get(name)) is None else str(value) for name in _SAYS)
    if is_answer(answer):
        return answer
    if role not in given.traces.roles:
        raise InputError(
            f"names no answer; give `gold`, `answer`, or `role`, one of "
            f"{', '.join(given.traces.roles)}"
        )
    code = int(given.traces.answer[at, 0, given.traces.roles.index(role)])
    if code == NO_ANSWER:
        raise InputError(f"{role} gave no answer to '{row.get('id')}'; leave the row out")
    return given.wordings.texts[at][code]


def _yes_or_no(value: object) -> bool:
    said = _SAID.get(str(value).strip().casefold())
    if said is None:
        raise InputError(f"says '{'' if value is None else value}' in place of true or false")
    return said


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
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
        if not raw.strip():
            continue
        try:
            found = json.loads(raw)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            problem = "is no JSON object; write one a line, or name a table .csv"
            raise TraceFormatError(str(path), line, "line", problem)
        yield line, found
