"""Grades that came after the traces: one line of JSON each, in a file beside them.

    {"kind":"right","id":"q1","answer":"Lisbon","right":true}
    {"kind":"gold","id":"q2","gold":["Rome"]}
    {"kind":"same","id":"q3","answer":"on the sea","reference":"gpt-4o","same":true,"judge":"mini"}
    {"kind":"draw","seed":0,"probability":0.2,"judge":"mini"}

Lines are only ever added, each whole or not at all; the traces stay as they are. A later grade of
the same answer by a person takes the place of an earlier one; of a judge, the first one counts.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from farthing.errors import InputError, TraceFormatError
from farthing.traces.base import Name, QuestionId
from farthing.traces.error_text import plain

Probability = Annotated[float, Meta(gt=0, le=1)]


NOT_OURS = (
    "; this file is as `farthing grade` keeps it, which takes a table of yours with --grades FILE"
)


class _Line(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
    tag_field="kind",
):  # fmt: skip
    pass


class Right(_Line, frozen=True, tag="right"):
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


class Gold(_Line, frozen=True, tag="gold"):
    """The accepted answers of a question, which grade all that was answered."""

    id: QuestionId
    gold: Annotated[list[Name], Meta(min_length=1)]
    probability: Probability | None = None


class Same(_Line, frozen=True, tag="same"):
    """Whether an answer says the same as a reference's."""

    id: QuestionId
    answer: Name
    reference: Name
    """The role that the reference fills."""
    same: bool
    judge: str | None = None


class Draw(_Line, frozen=True, tag="draw"):
    """How chance draws the questions that a person grades; at most one a file.

    Which ones it draws follows from the seed and a question's id alone.
    """

    seed: Annotated[int, Meta(ge=0)]
    probability: Probability
    """With which each question is drawn."""
    judge: str | None = None
    """Whose grades of all questions help the proof; None: nobody's."""


class Pairs(_Line, frozen=True, tag="pairs"):
    """How chance draws the questions on which a judge's "same" is checked; at most one a file."""

    seed: Annotated[int, Meta(ge=0)]
    number: Annotated[int, Meta(ge=1)]
    """How many, fixed before any is checked."""
    judge: str


Line = Right | Gold | Same | Draw | Pairs
Plan = Draw | Pairs


def beside(traces: Path) -> Path:
    """Return the file of grades that goes with a file of traces.

    >>> print(beside(Path("logs/runs.jsonl.gz")), beside(Path("traces.db")))
    logs/runs.grades.jsonl traces.grades.jsonl
    """
    stem = traces.name
    for suffix in (".gz", ".jsonl", ".db", ".sqlite", ".parquet"):
        stem = stem.removesuffix(suffix)
    return traces.with_name(f"{stem}.grades.jsonl")


def read_grades(path: Path) -> list[Line]:
    """Read a file of grades; one that does not exist has none.

    A last line without its end was cut off by a crash while it was written, and is left out.

    Raises:
        TraceFormatError: a line is none of the kinds, or a plan comes twice and differs.
        InputError: the file cannot be read.
    """
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    whole = content[: content.rfind(b"\n") + 1]
    lines = [_line(path, i, raw) for i, raw in enumerate(whole.splitlines(), 1) if raw.strip()]
    for kind in (Draw, Pairs):
        if len({line for line in lines if isinstance(line, kind)}) > 1:
            problem = "is drawn in two ways; a file takes one, or its promise would be void"
            raise TraceFormatError(str(path), len(lines), "kind", problem)
    return lines


def plan_of(lines: Iterable[Line], kind: type[Any]) -> Any:
    """Return how chance draws, by a kind of plan; None where nothing is drawn."""
    return next((line for line in lines if isinstance(line, kind)), None)


def add_grades(path: Path, lines: Sequence[Line]) -> None:
    """Add lines to a file of grades and wait until they are on the disk.

    What a crash left of a last line is cut off first.

    Raises:
        InputError: the file cannot be written.
    """
    if not lines:
        return
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        with path.open("ab+") as file:
            _cut_off_rest(path, file.fileno())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); check the path") from error


def _cut_off_rest(path: Path, number: int) -> None:
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.ftruncate(number, content.rfind(b"\n") + 1)


def _line(path: Path, number: int, raw: bytes) -> Line:
    try:
        found: Line = msgspec.json.decode(raw, type=Line)
    except msgspec.ValidationError as error:
        expected, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`") or "line"
        hint = NOT_OURS if field == "line" else ""
        raise TraceFormatError(
            str(path), number, field, f"{plain(expected, field)}{hint}"
        ) from None
    except msgspec.DecodeError as error:
        problem = f"is no JSON ({error}){NOT_OURS}"
        raise TraceFormatError(str(path), number, "line", problem) from None
    return found
