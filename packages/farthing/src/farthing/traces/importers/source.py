"""A foreign file as records, whichever way it is written: CSV, JSON, JSON Lines or Parquet.

What it is is seen from its content, so that a wrong suffix does no harm. A byte order mark is
skipped, and a name that ends in `.gz` is unpacked.
"""

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from farthing.errors import InputError, MissingExtraError, TraceFormatError
from farthing.traces.importers.row import FileRow, RowPlace

Kind = Literal["csv", "json", "lines", "parquet"]
BOM = b"\xef\xbb\xbf"
_TABLES = (".csv", ".tsv")
_LINES = (".jsonl", ".ndjson")
_BATCH = 1_024
_ARRAYS = b"farthing.traces"
"""In the metadata of Parquet that holds arrays and no records."""
_NO_TEXT = {
    b"PK\x03\x04": "a ZIP archive; of Inspect's .eval logs, write JSON first: "
    "inspect log convert LOG.eval --to json --output-dir FOLDER",
    b"\x80": "a pickle, which could run any program and is not opened; of RouterBench's, write "
    'CSV first, where you trust it: pandas.read_pickle("x.pkl").to_csv("x.csv", index=False)',
    b"SQLite format 3": "an SQLite file; a store is used as it is (--traces)",
}


class Source:
    """A file that is looked at, and then read record by record."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = str(path)

    @cached_property
    def kind(self) -> Kind:
        """How the file is written."""
        with self._unpacked() as file:
            start = file.read(65_536)
        for magic, what in _NO_TEXT.items():
            if start.startswith(magic):
                raise InputError(f"{self.name}: is {what}")
        if start.startswith(b"PAR1"):
            return "parquet"
        begin = start.removeprefix(BOM).lstrip()
        if not begin or b"\0" in start:
            what = "holds NUL characters; save it as UTF-8 text" if begin else "is empty"
            raise TraceFormatError(self.name, 1, "file", what)
        if self._stem.endswith(_TABLES) or begin[:1] not in {b"{", b"["}:
            return "csv"
        if begin[:1] == b"{" and self._stem.endswith(_LINES):
            return "lines"
        if begin[:1] == b"[":
            return "json"
        with self._unpacked() as file:  # an object by itself in the first line, and others follow
            lines = (line for line in file if line.removeprefix(BOM).strip())
            try:
                _parsed(next(lines), self.name, 1)
            except InputError:
                return "json"
            return "json" if next(lines, None) is None else "lines"

    @cached_property
    def document(self) -> Any:
        """The whole of a JSON document."""
        with self._unpacked() as file:
            return _parsed(file.read(), self.name, None)

    @cached_property
    def first(self) -> FileRow | None:
        """The first record; None where there is none."""
        return next(self.rows(), None)

    @property
    def fields(self) -> frozenset[str]:
        """The names of the first record's fields."""
        return frozenset(self.first.values) if self.first else frozenset()

    def rows(self) -> Iterator[FileRow]:
        """Yield the records: rows, lines, or the elements of a list (or of its `data`)."""
        read = {"csv": self._csv, "lines": self._lines, "parquet": self._parquet}
        if self.kind != "json":
            yield from read[self.kind]()
            return
        document, path = self.document, ""
        if isinstance(document, dict):
            document, path = document.get("data"), "data"
            if not isinstance(document, list):
                yield FileRow(self.document, RowPlace(self.name))
                return
        yield from self.elements(document, path)

    def elements(self, items: Any, path: str) -> Iterator[FileRow]:
        """Yield the elements of a list within a JSON document; refuses what is no list."""
        if not isinstance(items, list):
            raise RowPlace(self.name).refusal(path or "document", "is no list of records")
        for i, item in enumerate(items):
            place = RowPlace(self.name, path=f"{path}[{i}]")
            if not isinstance(item, dict):
                raise place.refusal("", "is no object; each record is one object")
            yield FileRow(item, place)

    def __str__(self) -> str:
        return self.name

    @property
    def _stem(self) -> str:
        return self.path.name.lower().removesuffix(".gz")

    @contextmanager
    def _unpacked(self) -> Iterator[BinaryIO]:
        try:
            with (
                gzip.open(self.path) if self.path.name.endswith(".gz") else self.path.open("rb")
            ) as file:
                yield file  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"is damaged gzip ({error}); fetch the file again"
            raise TraceFormatError(self.name, 1, "file", problem) from error
        except OSError as error:
            problem = f"cannot be read ({error.strerror or error}); check the path"
            raise TraceFormatError(self.name, 1, "file", problem) from error

    def _lines(self) -> Iterator[FileRow]:
        with self._unpacked() as file:
            for number, line in enumerate(file, start=1):
                if not line.removeprefix(BOM).strip():
                    continue
                values = _parsed(line, self.name, number)
                if not isinstance(values, dict):
                    problem = "is no JSON object; write one record a line"
                    raise TraceFormatError(self.name, number, "line", problem)
                yield FileRow(values, RowPlace(self.name, number))

    def _csv(self) -> Iterator[FileRow]:
        with self._unpacked() as file:
            raw = file.read()
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            problem = "is not UTF-8; save the file as UTF-8"
            raise TraceFormatError(self.name, line, "line", problem) from error
        cells = _cells(text, self.name)
        _, header = next(cells, (1, None))
        if header is None:
            raise TraceFormatError(self.name, 1, "file", "is empty")
        names = [name.strip() for name in header]
        for name in names:
            if names.count(name) > 1:
                problem = "names two columns; give each a name of its own"
                raise TraceFormatError(self.name, 1, name or "header", problem)
        for line, row in cells:
            if len(row) != len(names):
                problem = f"has {len(row)} cells, the header has {len(names)}; mend the row"
                raise TraceFormatError(self.name, line, "row", problem)
            yield FileRow(dict(zip(names, row, strict=True)), RowPlace(self.name, line))

    def _parquet(self) -> Iterator[FileRow]:
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise MissingExtraError("Parquet", "parquet") from error
        number = 0
        try:
            with parquet.ParquetFile(self.name) as file:
                if _ARRAYS in (file.schema_arrow.metadata or {}):
                    raise InputError(
                        f"{self.name}: holds arrays that an older farthing exported, which are no "
                        "longer read; export the store again as .jsonl, or give the traces that "
                        "the file was made from"
                    )
                for batch in file.iter_batches(batch_size=_BATCH):
                    for values in batch.to_pylist():
                        number += 1
                        yield FileRow(values, RowPlace(self.name, number))
        except (OSError, arrow.ArrowException, ValueError) as error:
            problem = f"cannot be read as Parquet ({str(error).splitlines()[0]}); check the path"
            raise TraceFormatError(self.name, 1, "file", problem) from error


def _parsed(raw: bytes, name: str, line: int | None) -> Any:
    """Read JSON; the NaN that Python's tools write stands for nothing."""
    raw = raw.removeprefix(BOM)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"is no JSON ({error}); check that the file is whole"
    try:
        return json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        field = "file" if line is None else "line"
        raise TraceFormatError(name, line or 1, field, problem) from None


def _cells(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    # The sign that cuts the header into most columns separates them.
    header = next((line for line in text.splitlines() if line.strip()), "")[:100_000]
    delimiter = max(",;\t", key=lambda sign: len(next(csv.reader([header], delimiter=sign))))
    before = csv.field_size_limit(sys.maxsize)  # prompts are longer than the library's limit
    line = 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = []
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        problem = f"is broken CSV ({error}); check quotes and that the file is whole"
        raise TraceFormatError(name, line, "row", problem) from error
    finally:
        csv.field_size_limit(before)
    yield from rows


class RecordsSource(Source):
    """Records in memory, which read as the rows of a file."""

    def __init__(self, records: Sequence[Mapping[str, Any]], name: str) -> None:
        super().__init__(name)
        self._records = records

    def rows(self) -> Iterator[FileRow]:
        """Yield the records."""
        for place, values in enumerate(self._records, start=1):
            yield FileRow(dict(values), RowPlace(self.name, place))
