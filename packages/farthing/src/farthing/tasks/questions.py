"""Questions from the public files' own formats, or from yours.

A file is JSON, JSON Lines, CSV, or a data set. A task registers how one row of its files becomes a
question, with one line::

    [project.entry-points."farthing.questions"]
    trivia = "my_package.trivia:question"

A task that registers nothing here reads JSON Lines of your own alone.
"""

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from farthing import plugins
from farthing.errors import InputError, MissingExtraError, QuestionFormatError
from farthing.tasks.base import Question

DATASET = "dataset:"
"""How a path starts that the `datasets` library is to load, not this module."""
SUFFIXES = (".json", ".jsonl", ".jsonl.gz", ".csv")
_PARTS = {
    "train": "train",
    "dev": "calibrate",
    "val": "calibrate",
    "validation": "calibrate",
    "test": "test",
}


@dataclass(frozen=True)
class QuestionRow:
    """One question as its file has it."""

    values: Mapping[str, Any]
    """By field; the columns of a CSV file without a header are `column 1`, `column 2` ..."""
    place: str
    """File and line or row, for messages."""
    source: str
    """The file's name without its suffix, or the data set's part."""
    number: int
    """From 1, within its file or part."""
    split: str | None = None
    """`train`, `calibrate` or `test`, where file, folder or data set is named so."""
    graded: bool = True
    """Whether it has to say which answers are accepted."""

    def text(self, *fields: str) -> str:
        """Return the first of these fields that is there.

        >>> QuestionRow({"problem": "2 + 2?"}, "a.json, row 1", "a", 1).text("question", "problem")
        '2 + 2?'
        """
        field = next((name for name in fields if name in self.values), None)
        if field is None:
            raise self.refusal(" or ".join(fields), "is missing")
        value = self.values[field]
        if not isinstance(value, str) or not value.strip():
            raise self.refusal(field, f"is {value!r:.60}; it must be text that is not blank")
        return value

    def label(self, *fields: str) -> str | None:
        """Return the first of these fields that is there, as text; None where there is none."""
        return next((str(self.values[f]) for f in fields if self.values.get(f) is not None), None)

    def refusal(self, field: str, problem: str) -> QuestionFormatError:
        """Return the error that names this row."""
        return QuestionFormatError(self.place, field, problem)


def read_rows(path: str | Path) -> Iterator[QuestionRow]:
    """Yield the rows of a file, of all files in a folder by name, or of a data set.

    Args:
        path: a `.json`, `.jsonl`, `.jsonl.gz` or `.csv` file, a folder of such files, or
            `dataset:NAME` or `dataset:NAME:CONFIG`, which the `datasets` library loads.
    """
    if str(path).startswith(DATASET):
        yield from _dataset_rows(str(path).removeprefix(DATASET))
        return
    root = Path(path)
    if not root.exists():
        raise InputError(f"{root} does not exist; give a file or a folder of questions")
    paths = [root] if root.is_file() else sorted(root.rglob("*"), key=_natural)
    files = [file for file in paths if file.is_file() and file.name.endswith(SUFFIXES)]
    if not files:
        what = "holds no" if root.is_dir() else "is no"
        raise InputError(f"{path} {what} file of questions; give one of {', '.join(SUFFIXES)}")
    for file in files:
        yield from _file_rows(file, str(file.relative_to(root.parent)))


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort 2.json before 10.json."""
    return [(int(n or 0), word) for n, word in re.findall(r"(\d*)(\D*)", str(path))]


def _file_rows(file: Path, name: str) -> Iterator[QuestionRow]:
    split = _part(name)
    source = re.sub(r"\.(jsonl\.gz|\w+)$", "", file.name)
    for number, (where, values) in enumerate(_records(file), start=1):
        place = f"{file}, {where}"
        if not isinstance(values, dict):
            raise QuestionFormatError(place, "row", "is no object; each question is one object")
        yield QuestionRow(values, place, source, number, split)


def _part(name: str) -> str | None:
    """Return which split a name tells of.

    >>> _part("MATH/test/algebra/1.json"), _part("hotpot_dev_fullwiki_v1.json"), _part("a.csv")
    ('test', 'calibrate', None)
    """
    words = re.split(r"[^a-z]+", name.lower())
    return next((_PARTS[word] for word in reversed(words) if word in _PARTS), None)


def _records(file: Path) -> Iterator[tuple[str, Any]]:
    if file.suffix == ".csv":
        yield from _csv_records(file)
    elif file.suffix == ".json":
        content = _decoded(file.read_bytes(), f"{file}, row 1")
        for i, record in enumerate(content if isinstance(content, list) else [content], start=1):
            yield f"row {i}", record
    else:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            for i, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"line {i}", _decoded(line, f"{file}, line {i}")


def _csv_records(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        try:
            for i, row in enumerate(csv.reader(lines, strict=True), start=1):
                if row:
                    yield f"row {i}", {f"column {k}": cell for k, cell in enumerate(row, start=1)}
        except (csv.Error, UnicodeDecodeError) as error:
            raise QuestionFormatError(str(file), "row", f"is broken CSV: {error}") from error


def _decoded(content: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise QuestionFormatError(place, "row", f"is broken JSON: {error}") from error


def _dataset_rows(name: str) -> Iterator[QuestionRow]:
    try:
        library = import_module("datasets")
    except ImportError as error:
        raise MissingExtraError("loading a data set", "datasets") from error
    name, _, config = name.partition(":")
    try:
        parts = library.load_dataset(name, config or None)
    except Exception as error:  # it raises whatever its network, cache and parsers do
        raise InputError(f"the data set {name} cannot be loaded: {error}") from error
    for part, rows in parts.items():
        for number, values in enumerate(rows, start=1):
            yield QuestionRow(values, f"{name} ({part}), row {number}", part, number, _part(part))


Converter = Callable[[QuestionRow], Question]
"""Turns a row into a question, or raises QuestionFormatError."""
SPLITS = ("train", "calibrate", "test")
_FIELDS = frozenset(field.name for field in fields(Question)) - {"text"} | {"question", "answer"}
_GOLD = frozenset({"gold", "answer", "solution"})
"""Fields in which rows say what is right."""


def load_questions(
    task: str,
    path: str | Path,
    *,
    limit: int | None = None,
    seed: int | None = None,
    split: str | None = None,
    graded: bool = True,
) -> list[Question]:
    """Load the questions of a task, in the order of their file.

    Args:
        task: `hotpotqa`, `mmlu`, `gsm8k`, `math`, or another registered one. Any task also takes
            JSON Lines of your own, see `own`.
        path: a file in the public data set's own format, a folder of such files, or
            `dataset:NAME[:CONFIG]` for the `datasets` library.
        limit: how many questions at most; the first ones, unless there is a seed.
        seed: draws the questions at random, without replacement; the same seed draws the same.
        split: `train`, `calibrate` or `test`, for the questions of that part alone. Rows say it
            themselves, else the name of file or folder does; dev and val are `calibrate`.
        graded: whether rows have to say which answers are accepted; where they need not, what a
            row does not say is left out.
    """
    if split is not None and split not in SPLITS:
        raise InputError(f"the split is '{split}'; give one of {', '.join(SPLITS)}")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}; give at least 1")
    convert = _converter(task)
    seen: dict[str, str] = {}
    questions = []
    for read in read_rows(path):
        row = read if graded else _ungraded(read)
        question = own(row) if "gold" in row.values else _converted(row, convert)
        first = seen.setdefault(question.id, row.place)
        if first != row.place:
            raise row.refusal("id", f"'{question.id}' is that of {first}; ids are unique")
        if split in {None, question.split}:
            questions.append(question)
    if not questions:
        raise InputError(f"{path} holds no question{f' of the split {split}' if split else ''}")
    return _sample(questions, limit, seed)


def _converter(task: str) -> Converter:
    plugins.load("tasks", task)  # an unknown task is refused as such
    converter: Converter = own
    if task in plugins.names("questions"):
        converter = plugins.load("questions", task)
    return converter


def _ungraded(row: QuestionRow) -> QuestionRow:
    """Return a row that need not be graded, without answers that it names and leaves blank."""
    values = {k: v for k, v in row.values.items() if not (k in _GOLD and v in (None, "", []))}
    return replace(row, values=values, graded=False)


def _converted(row: QuestionRow, convert: Converter) -> Question:
    """Read a row as its task has it; one that need not be graded may be in the form of `own`."""
    try:
        return convert(row)
    except QuestionFormatError:
        if row.graded:
            raise
        with suppress(QuestionFormatError):
            return own(row)
        raise


def _sample(questions: list[Question], limit: int | None, seed: int | None) -> list[Question]:
    if limit is None or limit >= len(questions) or seed is None:
        return questions[:limit]
    drawn = np.random.default_rng(seed).choice(len(questions), size=limit, replace=False)
    return [questions[i] for i in np.sort(drawn)]


def own(row: QuestionRow) -> Question:
    """Read a row of your own: `question`, `gold`, and whatever else a question has.

    `gold` is one accepted answer or a list of them; `answer` is another name for it. Optional:
    `id`, `group`, `split`, `choices` (a list), `paragraphs` (a list of [title, text]).

    >>> mine = own(QuestionRow({"question": "2 + 2?", "gold": "4"}, "mine.jsonl", "mine", 1))
    >>> mine.id, mine.text, mine.gold
    ('mine-1', '2 + 2?', ('4',))
    """
    for unknown in row.values.keys() - _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        raise row.refusal(unknown, f"is no field of a question; there are {known}")
    split = row.label("split") or row.split
    if split not in {None, *SPLITS}:
        raise row.refusal("split", f"is '{split}'; give one of {', '.join(SPLITS)}")
    gold = row.values.get("gold", row.values.get("answer", ()))
    return Question(
        id=row.label("id") or f"{row.source}-{row.number}",
        text=row.text("question"),
        gold=(gold,) if isinstance(gold, str) else _texts(row, "gold", gold),
        group=row.label("group"),
        split=split,
        choices=_texts(row, "choices", row.values.get("choices", ())),
        paragraphs=tuple(_paragraph(row, pair) for pair in row.values.get("paragraphs") or ()),
    )


def _texts(row: QuestionRow, field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise row.refusal(field, f"is {value!r:.60}; it must be a list of texts")
    return tuple(value)


def _paragraph(row: QuestionRow, pair: Any) -> tuple[str, str]:
    match pair:
        case [str(title), str(text)]:
            return title, text
    raise row.refusal("paragraphs", f"hold {pair!r:.60}; each is a list of title and text")
