"""The interchange form: JSON Lines, one question a line, plain or gzipped.

Reading is all or nothing: the first thing wrong is refused with its file, line and field. The JSON
Schema of a line is here too.
"""

import ast
import codecs
import gzip
import inspect
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, get_args

import msgspec

from farthing.errors import TraceFormatError
from farthing.traces import base
from farthing.traces.atomic import replacing
from farthing.traces.base import Call, MissingBecause, SplitName, Trace
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
    calls: list[dict[str, Any]] = [msgspec.to_builtins(call) for call in trace.calls]
    for call, record in zip(trace.calls, calls, strict=True):
        record["answer"] = call.answer
        record |= dict(sorted(record.pop("extra", {}).items()))
    return msgspec.json.encode(always | msgspec.to_builtins(trace) | {"calls": calls})


def decode(raw: bytes, file: str = "record", line: int = 1) -> Trace:
    """Read one line of the interchange form by itself."""
    return _checked(file, line, raw, Checker())


def decode_all(file: str, lines: Iterable[bytes]) -> Iterator[Trace]:
    """Read lines of the interchange form that belong together; raises like `decode`."""
    checker = Checker()
    for line, raw in enumerate(lines, start=1):
        yield _checked(file, line, raw, checker)


def _lines(name: str) -> Iterator[tuple[int, bytes]]:
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
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0) if name.endswith(".gz") else file


def _checked(name: str, line: int, raw: bytes, checker: Checker) -> Trace:
    try:
        trace = _trace(raw)
    except _WrongError as wrong:
        raise TraceFormatError(name, line, *wrong.args) from None
    for where, field, problem in checker.problems(trace, line):
        raise TraceFormatError(name, where, field, problem)
    return trace


def _unreadable(raw: bytes, problem: str) -> _WrongError:
    """Name the field of a number that is no number; Python's own parser lets those pass."""
    try:
        for field, value in _numbers(json.loads(raw)):
            if not math.isfinite(value):
                return _WrongError(field, f"is {value}; a number must be finite")
    except (ValueError, RecursionError):
        pass
    return _WrongError("line", f"is no JSON ({problem}); write one JSON object a line")


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _numbers(inner, f"{path}[{i}]")


def _trace(line: bytes) -> Trace:
    try:
        raw: Any = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(line, str(error)) from None
    if not isinstance(raw, dict):
        raise _WrongError("line", "is not a JSON object; write one question a line")
    if unknown := sorted(raw.keys() - _TRACE_FIELDS):
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        names = ", ".join(unknown[:_NAMED]) + more
        raise _WrongError(names, _unknown(unknown, table="calls" not in raw))
    gathered, calls = raw, raw.get("calls")
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
    """Move the numbers that the format does not know into `extra`.

    What looks like a misspelt field is none of them.
    """
    if not isinstance(call, dict) or not (unknown := call.keys() - _CALL_FIELDS):
        return call
    extra = {}
    for name in sorted(unknown):
        value, field, mend = call[name], f"calls[{i}].{name}", _mend(name, _CALL_FIELDS)
        if name in _SECONDS or near(name, _CALL_FIELDS):
            raise _WrongError(field, f"is not a field of a call; {mend}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = "is not a field of a call; only numbers may be added"
            raise _WrongError(field, f"{problem}; {mend}")
        try:
            extra[name] = float(value)
        except OverflowError:
            raise _WrongError(field, "is too large for a number") from None
    known = {name: value for name, value in call.items() if name not in unknown}
    return known | {"extra": extra}


def _mend(name: str, known: Iterable[str]) -> str:
    meant = "latency_s" if name in _SECONDS else near(name, known)
    return f"did you mean `{meant}`?" if meant else "remove it"


def _named(message: str, raw: Any) -> _WrongError:
    found = _WHERE.match(message)
    expected, path = (found[1], found[2]) if found else (message, "")
    if missing := _MISSING.match(expected):
        return _WrongError(f"{path}.{missing[1]}".lstrip("."), "is missing; every one needs it")
    value = raw
    for name, index in _STEP.findall(path):
        value = value[int(index)] if index else value[name]
    written = json.dumps(value, ensure_ascii=False)
    written = written if len(written) <= 40 else written[:37] + "..."
    return _WrongError(path or "line", f"is {written}; it {plain(expected, path)}")


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REPLY = {"properties": {"role": {"pattern": "^(policy|exit)-"}}, "required": ["role"]}


def trace_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one line.

    What a schema of a line cannot say is checked where a file is read: ids are unique, no round is
    missing, and a role answers a round once.

    >>> trace_schema()["required"]
    ['id', 'calls']
    """
    definitions: dict[str, Any]
    _, definitions = msgspec.json.schema_components([Trace], ref_template="#/$defs/{name}")
    for name, definition in definitions.items():
        definition["description"] = definition["description"].partition("\n")[0]
        # The line under each field of the record describes it, so that it is written once only.
        (body,) = ast.parse(inspect.getsource(getattr(base, name))).body
        for field, text in pairwise(getattr(body, "body", ())):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=known)), ast.Expr(value=ast.Constant(said)):
                    definition["properties"][known]["description"] = " ".join(str(said).split())
    trace, call = definitions.pop("Trace"), definitions["Call"]
    # In a file the other numbers stand in the call itself; the record gathers them in `extra`.
    del call["properties"]["extra"]
    call["additionalProperties"] = {
        "type": "number",
        "description": "Any other number; a feature only when asked for by name.",
    }
    trace["additionalProperties"] = False
    trace["properties"]["calls"]["contains"] = {"not": _REPLY}
    return {"$schema": DIALECT, **trace, "$defs": definitions}


_KINDS = {
    "str": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "an object in braces",
}
_EXPECTED = re.compile(r"Expected `(\w+)(?: \| null)?`(?: (.*)|, got .*)?$", re.DOTALL)
_BOUNDS = {">=": "at least", "<=": "at most", ">": "above"}
_CHOICES = {"split": SplitName, "missing_because": MissingBecause}
"""The fields that hold one of a few words."""


def plain(message: str, field: str) -> str:
    """Say what is expected of the value of a field.

    >>> plain("Expected `float | null`, got `str`", "f1"), plain("Expected `int` >= 1", "round")
    ('must be a number', 'must be a whole number, at least 1')
    >>> plain("Expected `array` of length >= 1", "calls"), plain("Invalid enum value 'x'", "split")
    ('must not be empty', 'must be train, calibrate or test')
    >>> plain("Invalid enum value 'foo'", "missing_because")
    'must be chance, earlier_reply or unknown'
    """
    if message.startswith("Invalid enum value") and field in _CHOICES:
        *names, last = get_args(_CHOICES[field])
        return f"must be {', '.join(names)} or {last}"
    found = _EXPECTED.match(message)
    if not found:
        return message[:1].lower() + message[1:]
    kind, bound = _KINDS.get(found[1], found[1]), found[2] or ""
    if bound.startswith("of length"):
        return "must not be empty"
    if bound.startswith("matching"):
        return "must not hold the character NUL"
    sign, _, limit = bound.partition(" ")
    beyond = f", {_BOUNDS[sign]} {float(limit):.15g}" if sign in _BOUNDS else ""
    return f"must be {kind}{beyond}"


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that another was probably meant to be.

    >>> near("cost", ["cost_usd", "round"]), near("Anwser", ["answer"]), near("extra", ["text"])
    ('cost_usd', 'answer', None)
    """
    said = name.casefold().replace(" ", "_")
    parts = [field for field in sorted(known) if said in {*field.split("_"), field}]
    close = parts or get_close_matches(said, sorted(known), n=1, cutoff=0.75)
    return close[0] if close else None
