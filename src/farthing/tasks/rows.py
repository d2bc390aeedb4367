"""Rows of question files, whichever form the file has: JSON, JSON Lines, CSV, or a data set."""

import csv
import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from farthing.errors import InputError, MissingExtraError, QuestionFormatError

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
class Row:
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

        Raises:
            QuestionFormatError: none is there, or it is blank or no text.

        >>> Row({"problem": "2 + 2?"}, "a.json, row 1", "a", 1).text("question", "problem")
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


def read_rows(path: str | Path) -> Iterator[Row]:
    """Yield the rows of a file, of all files in a folder by name, or of a data set.

    Args:
        path: a `.json`, `.jsonl`, `.jsonl.gz` or `.csv` file, a folder of such files, or
            `dataset:NAME` or `dataset:NAME:CONFIG`, which the `datasets` library loads.

    Raises:
        InputError: there is no such file, or no file of a known form.
        QuestionFormatError: a file cannot be read.
        MissingExtraError: a data set is asked for, and `datasets` is not installed.
    """
    if str(path).startswith(DATASET):
        yield from _dataset_rows(str(path).removeprefix(DATASET))
        return
    root = Path(path)
    files = _files(root)
    if not files:
        what = "holds no" if root.is_dir() else "is no"
        raise InputError(f"{path} {what} file of questions; give one of {', '.join(SUFFIXES)}")
    for file in files:
        yield from _file_rows(file, str(file.relative_to(root.parent)))


def _files(root: Path) -> list[Path]:
    if not root.exists():
        raise InputError(f"{root} does not exist; give a file or a folder of questions")
    found = [root] if root.is_file() else sorted(root.rglob("*"), key=_natural)
    return [file for file in found if file.is_file() and file.name.endswith(SUFFIXES)]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort 2.json before 10.json."""
    return [(int(n or 0), word) for n, word in re.findall(r"(\d*)(\D*)", str(path))]


def _file_rows(file: Path, name: str) -> Iterator[Row]:
    split = _part(name)
    source = re.sub(r"\.(jsonl\.gz|\w+)$", "", file.name)
    for number, (where, values) in enumerate(_records(file), start=1):
        place = f"{file}, {where}"
        if not isinstance(values, dict):
            raise QuestionFormatError(place, "row", "is no object; each question is one object")
        yield Row(values, place, source, number, split)


def _part(name: str) -> str | None:
    """Return which split a name tells of.

    >>> _part("MATH/test/algebra/1.json"), _part("hotpot_dev_fullwiki_v1.json"), _part("a.csv")
    ('test', 'calibrate', None)
    """
    words = re.split(r"[^a-z]+", name.lower())
    return next((_PARTS[word] for word in reversed(words) if word in _PARTS), None)


def _records(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield (line or row, content) for each record of a file."""
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


def _dataset_rows(name: str) -> Iterator[Row]:
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
            yield Row(values, f"{name} ({part}), row {number}", part, number, _part(part))
