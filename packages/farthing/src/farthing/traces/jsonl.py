"""The interchange form: JSON Lines, one question a line, plain or gzipped.

Reading is all or nothing: the first thing wrong is refused with its file, line and field.
"""

import codecs
import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec

from farthing.errors import TraceFormatError
from farthing.traces.atomic import replacing
from farthing.traces.base import Call, Trace
from farthing.traces.schema import near, plain
from farthing.traces.trace_kind import Checker, shape_of

LINES = (".jsonl", ".jsonl.gz")
"""How names of such files end."""
_TRACE_FIELDS = frozenset(Trace.__struct_fields__)
_CALL_FIELDS = frozenset(Call.__struct_fields__) - {"extra"}
_SECONDS = frozenset(
    {"seconds", "secs", "duration", "duration_s", "elapsed", "elapsed_s", "time_s"}
)
"""What others call `latency_s`."""
_WHERE = re.compile(r"(.*) - at `\$\.?(.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`$")
_DEPENDENT_POOL = (
    "is false, but calls of a pool are independent; remove it, or record rounds of base and guide"
)
_OF_A_TABLE = (
    "for a table of one call a line say which columns are which: farthing traces import FILE "
    "--store traces.db --from table --column question=COLUMN --column model=COLUMN --column "
    "text=COLUMN"
)
_NAMED = 12
"""Unknown fields that are named."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class _WrongError(Exception):
    """A field and what is wrong with it, before file and line are known."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field, self.problem = field, problem


def read_traces(path: str | Path) -> list[Trace]:
    """Read a whole file of traces, `.jsonl` or `.jsonl.gz`."""
    return list(iter_traces(path))


def iter_traces(path: str | Path, checker: Checker | None = None) -> Iterator[Trace]:
    """Read one trace after another, in memory that does not grow with their texts.

    Traces that come before the first one that is wrong are yielded, so import only what a whole
    pass has accepted.

    Args:
        path: the file.
        checker: knows of traces that these are to stand beside (`Checker.after`).
    """
    name, checker, line = str(path), checker or Checker(), 0
    for line, raw in _lines(name):
        yield _checked(name, line, raw, checker)
    if line == 0:
        raise TraceFormatError(name, 1, "file", "is empty; a trace file has one question a line")


def write_traces(path: str | Path, traces: Iterable[Trace]) -> None:
    """Write traces, gzipped if the name ends in `.gz`; the same traces give the same bytes.

    Every line is read back before it is kept, so what was written can be read and is the same.
    """
    name, checker, line = str(path), Checker(), 0
    with replacing(path) as unfinished, unfinished.open("wb") as raw, _packed(name, raw) as file:
        for line, trace in enumerate(traces, start=1):
            encoded = encode(trace)
            if _checked(name, line, encoded, checker) != trace:
                problem = "would not read back the same: NaN, or `extra` holds the name of a field"
                raise TraceFormatError(name, line, "calls", problem)
            file.write(encoded + b"\n")
        if line == 0:
            raise TraceFormatError(name, 1, "file", "would be empty; give at least one trace")


def encode(trace: Trace) -> bytes:
    """Return one line of the interchange form, without the line's end.

    >>> print(encode(Trace(id="q", gold=["4"], calls=[Call(round=1, role="m")])).decode())
    {"id":"q","task":"text","question":"","gold":["4"],"calls":[{"round":1,"role":"m","answer":null}]}
    """
    always = {name: getattr(trace, name) for name in ("id", "task", "question", "gold")}
    calls = [_flat(call) for call in trace.calls]
    return msgspec.json.encode(always | msgspec.to_builtins(trace) | {"calls": calls})


def decode(raw: bytes, file: str = "record", line: int = 1) -> Trace:
    """Read one line of the interchange form by itself."""
    return _checked(file, line, raw, Checker())


def decode_all(file: str, lines: Iterable[bytes]) -> Iterator[Trace]:
    """Read lines of the interchange form that belong together; raises like `decode`."""
    checker = Checker()
    for line, raw in enumerate(lines, start=1):
        yield _checked(file, line, raw, checker)


def _flat(call: Call) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(call)
    extra: dict[str, Any] = record.pop("extra", {})
    return record | {"answer": call.answer} | dict(sorted(extra.items()))


def _lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, numbered from 1."""
    line = 0
    try:
        with gzip.open(name, "rb") if name.endswith(".gz") else Path(name).open("rb") as file:
            for line, raw in enumerate(file, start=1):
                text = raw.removeprefix(codecs.BOM_UTF8) if line == 1 else raw
                if text.strip():
                    yield line, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problem = f"is damaged gzip after line {line} ({error}); fetch the file again"
        raise TraceFormatError(name, line + 1, "file", problem) from error
    except OSError as error:
        problem = f"cannot be read ({error.strerror}); check the path"
        raise TraceFormatError(name, line + 1, "file", problem) from error


def _packed(name: str, file: BinaryIO) -> BinaryIO | gzip.GzipFile:
    """Compress what is written, without the name and the time that gzip would add."""
    if name.endswith(".gz"):
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
    return file


def _checked(name: str, line: int, raw: bytes, checker: Checker) -> Trace:
    try:
        trace = _trace(_parsed(raw))
    except _WrongError as wrong:
        raise TraceFormatError(name, line, wrong.field, wrong.problem) from None
    for where, field, problem in checker.problems(trace, line):
        raise TraceFormatError(name, where, field, problem)
    return trace


def _parsed(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse_unreadable(raw, str(error))


def _refuse_unreadable(raw: bytes, problem: str) -> NoReturn:
    """Name the field of a number that is no number; Python's own parser lets those pass."""
    try:
        for field, value in _numbers(json.loads(raw)):
            if not math.isfinite(value):
                raise _WrongError(field, f"is {value}; a number must be finite")
    except (ValueError, RecursionError):
        pass
    raise _WrongError("line", f"is no JSON ({problem}); write one JSON object a line")


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _numbers(inner, f"{path}[{i}]")


def _trace(raw: Any) -> Trace:
    if not isinstance(raw, dict):
        raise _WrongError("line", "is not a JSON object; write one question a line")
    if unknown := sorted(raw.keys() - _TRACE_FIELDS):
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        names = ", ".join(unknown[:_NAMED]) + more
        raise _WrongError(names, _unknown(unknown, table="calls" not in raw))
    calls = raw.get("calls")
    gathered = raw
    if isinstance(calls, list):
        gathered = raw | {"calls": [_gathered(call, i) for i, call in enumerate(calls)]}
    try:
        trace = msgspec.convert(gathered, Trace)
    except msgspec.ValidationError as error:
        raise _named(str(error), raw) from None
    if raw.get("independent") is False and shape_of(trace) == "pool":
        raise _WrongError("independent", _DEPENDENT_POOL)
    return trace


def _unknown(names: Sequence[str], *, table: bool) -> str:
    what = "is not a field of a trace" if len(names) == 1 else "are not fields of a trace"
    meant = {name: found for name in names if (found := near(name, _TRACE_FIELDS))}
    if table and len(meant) < len(names):
        return f"{what}; {_OF_A_TABLE}"
    if len(names) == 1:
        return f"{what}; {_mend(names[0], _TRACE_FIELDS)}"
    guesses = "".join(f"; did you mean `{found}` by {name}?" for name, found in meant.items())
    return f"{what}; remove or rename them{guesses}"


def _gathered(call: Any, i: int) -> Any:
    """Move the numbers that the format does not know into `extra`."""
    if not isinstance(call, dict):
        return call
    unknown = call.keys() - _CALL_FIELDS
    if not unknown:
        return call
    known = {name: value for name, value in call.items() if name not in unknown}
    extra = {name: _number(call[name], f"calls[{i}]", name) for name in sorted(unknown)}
    return known | {"extra": extra}


def _number(value: Any, call: str, name: str) -> float:
    """Read a number that the format does not know; what looks like a misspelt field is none."""
    field, mend = f"{call}.{name}", _mend(name, _CALL_FIELDS)
    if name in _SECONDS or near(name, _CALL_FIELDS):
        raise _WrongError(field, f"is not a field of a call; {mend}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongError(field, f"is not a field of a call; only numbers may be added; {mend}")
    try:
        return float(value)
    except OverflowError:
        raise _WrongError(field, "is too large for a number") from None


def _mend(name: str, known: Iterable[str]) -> str:
    meant = "latency_s" if name in _SECONDS else near(name, known)
    return f"did you mean `{meant}`?" if meant else "remove it"


def _named(message: str, raw: Any) -> _WrongError:
    """Turn a message of msgspec into a field, its value and what is expected of it."""
    found = _WHERE.match(message)
    expected, path = (found[1], found[2]) if found else (message, "")
    if missing := _MISSING.match(expected):
        return _WrongError(f"{path}.{missing[1]}".lstrip("."), "is missing; every one needs it")
    value = raw
    for name, index in _STEP.findall(path):
        value = value[int(index)] if index else value[name]
    return _WrongError(path or "line", f"is {_shown(value)}; it {plain(expected, path)}")


def _shown(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 40 else written[:37] + "..."
