"""One record of a foreign file, and what is wrong with its fields."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from farthing.errors import InputError, TraceFormatError
from farthing.traces.base import CallError

_KEYS = re.compile(
    r"\b(?:sk|pk|rk|key|api)[-_][\w\-*.]{6,}|\bBearer\s+\S+|\bAIza[\w-]{10,}|\bAKIA\w{8,}"
    r"|\bhf_\w{8,}|\bgh[a-z]_\w{8,}|\beyJ[\w-]{10,}\S*"
)
"""What keys of the usual providers look like."""
_RIGHT = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_RIGHT |= {"1.0": True, "0.0": False, "right": True, "wrong": False}
_RIGHT |= {"correct": True, "incorrect": False, "pass": True, "fail": False}
_SILENT = re.compile(r"\s*(nan|null|none|n/?a|-?inf(inity)?)?\s*", re.IGNORECASE).fullmatch
"""How tools write that there is no grade."""
MOST_USD = 1e6
"""A call of more than that is a mistake, as in `traces/base.py`."""
_LARGEST_COUNT = 10**15


@dataclass(frozen=True)
class RowPlace:
    """Where a record stands in its file.

    >>> print(RowPlace("log.json", path="samples[3]").refusal("cost", "is -1"))
    log.json, samples[3].cost: is -1
    """

    file: str
    line: int | None = None
    """Line or row, from 1; None within a JSON document, which `path` is of."""
    path: str = ""

    def refusal(self, field: str, problem: str) -> InputError:
        """Return the error that names this place and a field of the record."""
        whole = ".".join(part for part in (self.path, field) if part)
        if self.line is not None:
            return TraceFormatError(self.file, self.line, whole, problem)
        return InputError(f"{self.file}, {whole}: {problem}")

    def __str__(self) -> str:
        return f"line {self.line}" if self.line is not None else self.path or "the document"


@dataclass(frozen=True)
class FileRow:
    """One record: its fields and where it stands.

    A field that is null, NaN or blank counts as absent. Each reader takes several names and reads
    the first that is there.

    >>> row = FileRow({"spend": "0.002", "model": " gpt-4o "}, RowPlace("log.csv", 2))
    >>> row.number("cost", "spend"), row.text("model"), row.count("tokens")
    (0.002, 'gpt-4o', None)
    """

    values: Mapping[str, Any]
    place: RowPlace

    def find(self, *names: str) -> tuple[str, Any]:
        """Return the first of these fields that is there, and its value; else a name and None."""
        for name in names:
            value = self.values.get(name)
            if value is None or (isinstance(value, float) and math.isnan(value)):
                continue
            if not isinstance(value, str) or value.strip():
                return name, value
        return names[0], None

    def text(self, *names: str) -> str | None:
        """Return a field as text without white space around it."""
        name, value = self.find(*names)
        if value is None:
            return None
        if isinstance(value, list | dict):
            raise self.place.refusal(name, "is a list or an object; it must be text")
        return ("true" if value else "false") if isinstance(value, bool) else str(value).strip()

    def number(self, *names: str, most: float = math.inf) -> float | None:
        """Return a field as a number from 0 on."""
        name, value = self.find(*names)
        if value is None:
            return None
        number = as_number(value)
        if number is None or not 0 <= number <= most:
            upper = "" if most == math.inf else f" and at most {most:,.0f}"
            problem = f"is {shown(value)}; it must be a number, at least 0{upper}"
            raise self.place.refusal(name, problem)
        return number

    def seconds(self, *names: str) -> float | None:
        """Return a field of milliseconds as seconds; raises like `number`."""
        number = self.number(*names)
        return None if number is None else number / 1_000

    def count(self, *names: str) -> int | None:
        """Return a field as a whole number from 0 on; raises like `number`."""
        number = self.number(*names, most=_LARGEST_COUNT)
        if number is not None and number != int(number):
            name, value = self.find(*names)
            raise self.place.refusal(name, f"is {shown(value)}; it must be a whole number")
        return None if number is None else int(number)

    def score(self, *names: str) -> float | None:
        """Return a grade as a number, yes and no as 1 and 0; None where the grader says nothing.

        That is a null, a NaN, a list or an object. Raises like `number`.
        """
        name, value = self.find(*names)
        if no_grade(value):
            return None
        verdict = _verdict(value)
        number = as_number(value) if verdict is None else float(verdict)
        if number is None:
            raise self.place.refusal(name, f"is {shown(value)}; it must be a number")
        return number

    def flag(self, *names: str) -> bool | None:
        """Return a field as yes or no; raises like `number`."""
        name, value = self.find(*names)
        if no_grade(value):
            return None
        verdict = _verdict(value)
        if verdict is None:
            raise self.place.refusal(name, f"is {shown(value)}; it must be true or false")
        return verdict

    def when(self, *names: str) -> datetime | None:
        """Return a moment: seconds since 1970 or ISO 8601, in UTC where no zone is said."""
        value = self.find(*names)[1]
        try:
            if (seconds := as_number(value)) is not None:
                return datetime.fromtimestamp(seconds, UTC)
            found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except (ValueError, OverflowError, OSError):
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def paid(self, *names: str) -> float | None:
        """Return a cost that a log worked out; 0, which logs put for unknown prices, is None."""
        return self.number(*names, most=MOST_USD) or None

    def inner(self, *names: str) -> Any:
        """Return a list or an object, also where a table has it as JSON in a cell; else None."""
        return unpacked(self.find(*names)[1])

    def part(self, *names: str) -> "FileRow":
        """Return an object within this one as a row; one that is not there is empty."""
        name, _ = self.find(*names)
        inside = self.inner(*names)
        path = ".".join(part for part in (self.place.path, name) if part)
        place = RowPlace(self.place.file, self.place.line, path)
        return FileRow(inside if isinstance(inside, dict) else {}, place)

    def parts(self, *names: str) -> "list[FileRow]":
        """Return a list within this record as rows; what in it is no object is an empty one."""
        inside = self.inner(*names)
        listed = inside if isinstance(inside, list) else []
        return [FileRow(one if isinstance(one, dict) else {}, self.place) for one in listed]


def unpacked(value: Any) -> Any:
    """Return a list or an object, also one that is written as JSON in a text; None for all else.

    >>> unpacked('{"a": 1}'), unpacked([2]), unpacked("[sic] 2")
    ({'a': 1}, [2], None)
    """
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            value = msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
    return value if isinstance(value, list | dict) else None


def as_number(value: Any) -> float | None:
    """Return a finite number, also one that is written as text; None for all else.

    >>> as_number("1e-3"), as_number(True), as_number("1,5"), as_number("nan")
    (0.001, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def seconds_between(start: Any, end: Any) -> float | None:
    """Return the seconds from one time to another; None where one is unknown or none at all.

    >>> seconds_between("2025-01-31T12:00:00Z", "2025-01-31 12:00:01.5+00:00")
    1.5
    """
    try:
        first, last = (
            time if isinstance(time, datetime) else datetime.fromisoformat(time)
            for time in (start, end)
        )
        seconds = (last - first).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def without_keys(text: str) -> str:
    """Return a text without what looks like a provider's key.

    >>> without_keys("Incorrect API key provided: sk-proj-abc***xyz.")
    'Incorrect API key provided: ...'
    """
    return _KEYS.sub("...", text)


def call_error(message: str | None, kind: str = "error") -> CallError:
    """Return why a call failed as traces keep it: short, and without keys."""
    return CallError(type=kind, message=without_keys(message or "no message")[:300])


def shown(value: Any) -> str:
    """Return a value as a message may show it: short, and without keys."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    written = without_keys(repr(value))
    return written if len(written) <= 40 else written[:37] + "..."


def no_grade(value: Any) -> bool:
    """Return whether a grader said nothing.

    >>> no_grade(float("nan")), no_grade("NaN"), no_grade({"a": 1}), no_grade(0)
    (True, True, True, False)
    """
    number = isinstance(value, float) and not math.isfinite(value)
    return value is None or number or isinstance(value, list | dict) or bool(_SILENT(str(value)))


def _verdict(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _RIGHT.get(str(value).strip().casefold())
