"""Trace arrays as Parquet: one row a question, one fixed-size list a column.

A list holds the [T, L] values of its question (round by round, role by role within a round), money
as int64 nano-dollars; names stand in the file's metadata. Texts are not kept. Reading goes from
Arrow's buffers to numpy, chunk by chunk. Needs the extra `parquet`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError, MissingExtraError, TraceFormatError
from farthing.traces.arrays import (
    NO_ANSWER,
    NO_CONTEXT,
    NO_REASON,
    SPLITS,
    WHY_MISSING,
    PolicyReplies,
    QuestionContext,
    TraceArrays,
    left_a_trace,
)
from farthing.traces.atomic import replacing

CHUNK_ROWS = 65_536
KEY = b"farthing.traces"
"""Under it a file of arrays has its header."""
_VERSION = 4
"""Version 1 lacks the largest costs, version 2 the unknown grades, version 3 which calls were made
and what was asked."""

_COLUMNS = (
    ("id", "string", False, 1), ("group", "int32", False, 1), ("split", "int8", False, 1),
    ("recorded", "int16", False, 1), ("independent", "bool_", False, 1),
    ("answer", "int16", True, 1), ("correct", "bool_", True, 1), ("cost_nano", "int64", True, 1),
    ("largest_cost_nano", "int64", True, 2), ("ungraded", "bool_", True, 3),
    ("made", "bool_", True, 4), ("asked_probability", "float32", True, 4),
    ("missing_because", "int8", False, 4), ("content", "uint64", False, 4),
)  # fmt: skip
"""Name, type, whether it has a value a call or one a question, and since which version."""
Columns = dict[str, NDArray[Any]]
"""Name to values: [n], [n, T] or [n, T * L], as wide as the file's lists."""


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a file says once, in its metadata."""

    version: int
    horizon: int
    roles: tuple[str, ...]
    models: tuple[str, ...]
    groups: tuple[str, ...]
    signals: tuple[str, ...]
    replies: tuple[str, ...]
    unpriced: dict[str, float] = {}
    contexts: tuple[QuestionContext, ...] = ()
    requests: bool = False
    """Whether some questions stand for more than one request."""
    stopping: bool = False
    """Whether stopping thoughts at their cuts is known to cost something."""
    cuts: bool = False
    """Whether calls are the cuts of one thought."""


def write_parquet(path: str | Path, arrays: TraceArrays | Iterable[TraceArrays]) -> None:
    """Write trace arrays, whole or in chunks that share roles, models, groups and signals."""
    arrow, parquet = load_pyarrow()
    chunks = iter([arrays] if isinstance(arrays, TraceArrays) else arrays)
    first = next(chunks, None)
    if first is None:
        raise InputError(f"{path}: there are no traces to write; give at least one question")
    header = _header(first)
    schema = _schema(arrow, header)
    with (
        replacing(path) as unfinished,
        parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer,
    ):
        for number, chunk in enumerate(chain([first], chunks), start=1):
            if _header(chunk) != header:
                raise InputError(f"{path}: chunk {number} has other columns than the first")
            writer.write_table(_table(arrow, schema, chunk), row_group_size=CHUNK_ROWS)


def read_parquet(path: str | Path) -> TraceArrays:
    """Read a whole file that `write_parquet` wrote, exactly as it was but for the texts."""
    chunks = list(_chunks(path, CHUNK_ROWS))
    if not chunks:
        raise TraceFormatError(str(path), 1, "file", "is empty; a trace file has a row a question")
    header = chunks[0][0]
    names = list(chunks[0][1])
    return _arrays(header, {n: np.concatenate([c.pop(n) for _, c in chunks]) for n in names})


def iter_parquet(path: str | Path, rows: int = CHUNK_ROWS) -> Iterator[TraceArrays]:
    """Read at most so many questions at a time, in memory that does not grow with the file."""
    for header, columns in _chunks(path, rows):
        yield _arrays(header, columns)


def count_rows(path: str | Path) -> int:
    """Return how many questions a file holds, without reading them."""
    arrow, parquet = load_pyarrow()
    with readable(arrow, str(path)), parquet.ParquetFile(str(path)) as file:
        return int(file.metadata.num_rows)


def load_pyarrow() -> tuple[Any, Any]:
    """Return `pyarrow` and `pyarrow.parquet`."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("Parquet", "parquet") from error


def _header(arrays: TraceArrays) -> _Header:
    return _Header(
        version=_VERSION,
        horizon=arrays.horizon,
        roles=arrays.roles,
        models=arrays.models,
        groups=arrays.group_names,
        signals=tuple(arrays.signals),
        replies=tuple(arrays.replies),
        unpriced=dict(arrays.unpriced),
        contexts=arrays.contexts,
        requests=bool((arrays.requests > 1).any()),
        stopping=bool(arrays.stopping_nano.any()),
        cuts=arrays.cuts,
    )


def _layout(header: _Header) -> dict[str, tuple[str, int | None]]:
    """Return each column's type and the length of its lists; None for one value a question."""
    rounds, calls = header.horizon, header.horizon * len(header.roles)
    layout: dict[str, tuple[str, int | None]] = {
        name: (kind, calls if of_calls else None)
        for name, kind, of_calls, since in _COLUMNS
        if since <= header.version
    }
    if header.contexts:
        layout["context"] = ("int32", None)
    if header.requests:
        layout["requests"] = ("int64", None)
    if header.stopping:
        layout["stopping_nano"] = ("int64", calls)
    layout |= {f"signal.{name}": ("float32", calls) for name in header.signals}
    for role in header.replies:
        layout[f"reply.{role}.action"] = ("int8", rounds)
        layout[f"reply.{role}.cost_nano"] = ("int64", rounds)
    return layout


def _schema(arrow: Any, header: _Header) -> Any:
    types = {
        name: getattr(arrow, kind)() if size is None else arrow.list_(getattr(arrow, kind)(), size)
        for name, (kind, size) in _layout(header).items()
    }
    return arrow.schema(types.items(), metadata={KEY: msgspec.json.encode(header)})


def _columns(arrays: TraceArrays) -> Columns:
    columns: Columns = {"id": arrays.ids}
    columns |= {name: getattr(arrays, name) for name, *_ in _COLUMNS if name != "id"}
    if arrays.contexts:
        columns["context"] = arrays.context
    if (arrays.requests > 1).any():
        columns["requests"] = arrays.requests
    if arrays.stopping_nano.any():
        columns["stopping_nano"] = arrays.stopping_nano
    columns |= {f"signal.{name}": values for name, values in arrays.signals.items()}
    for role, replies in arrays.replies.items():
        columns[f"reply.{role}.action"] = replies.action
        columns[f"reply.{role}.cost_nano"] = replies.cost_nano
    return columns


def _table(arrow: Any, schema: Any, arrays: TraceArrays) -> Any:
    columns = []
    for field, values in zip(schema, _columns(arrays).values(), strict=True):
        if arrow.types.is_fixed_size_list(field.type):
            flat = arrow.array(values.reshape(-1), type=field.type.value_type)
            columns.append(arrow.FixedSizeListArray.from_arrays(flat, field.type.list_size))
        else:
            columns.append(arrow.array(values, type=field.type))
    return arrow.Table.from_arrays(columns, schema=schema)


def _chunks(path: str | Path, rows: int) -> Iterator[tuple[_Header, Columns]]:
    arrow, parquet = load_pyarrow()
    name, start = str(path), 0
    with readable(arrow, name), parquet.ParquetFile(name) as file:
        header = _checked_header(arrow, name, file.schema_arrow)
        for batch in file.iter_batches(batch_size=rows):
            columns = _batch_columns(arrow, name, start, batch)
            _refuse_impossible(name, start, header, columns)
            yield header, columns
            start += batch.num_rows


@contextmanager
def readable(arrow: Any, name: str, *others: type[Exception]) -> Iterator[None]:
    """Turn what Arrow raises of a file, and other errors, into one with a remedy."""
    try:
        yield
    except (OSError, arrow.ArrowException, *others) as error:
        problem = f"cannot be read as Parquet ({str(error).splitlines()[0]}); check the path"
        raise TraceFormatError(name, 1, "file", problem) from error


def _checked_header(arrow: Any, name: str, schema: Any) -> _Header:
    try:
        header = msgspec.json.decode((schema.metadata or {})[KEY], type=_Header)
    except (KeyError, msgspec.MsgspecError) as error:
        problem = "was not written by `farthing traces export`; import the JSONL form instead"
        raise TraceFormatError(name, 1, "metadata", problem) from error
    if not 1 <= header.version <= _VERSION:
        problem = f"is {header.version}, this farthing reads 1 to {_VERSION}; export the file again"
        raise TraceFormatError(name, 1, "version", problem)
    expected = _schema(arrow, header)
    for field in expected:
        if field.name not in schema.names or schema.field(field.name).type != field.type:
            problem = f"is missing or no longer {field.type}; export the file again"
            raise TraceFormatError(name, 1, field.name, problem)
    return header


def _batch_columns(arrow: Any, name: str, start: int, batch: Any) -> Columns:
    columns: Columns = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        flat = column.flatten() if arrow.types.is_fixed_size_list(field.type) else column
        if column.null_count or flat.null_count:
            raise TraceFormatError(name, start + 1, field.name, "holds nulls; export it again")
        values = flat.to_numpy(zero_copy_only=False)
        if field.name == "id":
            values = values.astype(np.str_)
        columns[field.name] = values.reshape(batch.num_rows, -1) if flat is not column else values
    return columns


def _refuse_impossible(name: str, start: int, header: _Header, columns: Columns) -> None:
    """Refuse what `write_parquet` cannot have written and what replay would trust."""
    recorded, group, split = columns["recorded"], columns["group"], columns["split"]
    cost = columns["cost_nano"]
    largest = columns.get("largest_cost_nano", cost)
    ungraded = columns.get("ungraded", np.zeros_like(columns["correct"]))
    why = columns.get("missing_because", np.full(len(recorded), NO_REASON))
    context = columns.get("context", np.full(len(recorded), NO_CONTEXT))
    wrong = {
        "cost_nano": (cost < 0).any(axis=1),
        "largest_cost_nano": ((largest != 0) & (largest < cost)).any(axis=1),
        "correct": (columns["correct"] & (columns["answer"] == NO_ANSWER)).any(axis=1),
        "ungraded": (ungraded & ((columns["answer"] == NO_ANSWER) | columns["correct"])).any(
            axis=1
        ),
        "missing_because": (why < NO_REASON) | (why >= len(WHY_MISSING)),
        "recorded": (recorded < 0) | (recorded > header.horizon),
        "context": (context < NO_CONTEXT) | (context >= len(header.contexts)),
        "requests": columns.get("requests", np.ones(len(recorded), dtype=np.int64)) < 1,
        "group": (group < -1) | (group >= len(header.groups)),
        "split": (split < -1) | (split >= len(SPLITS)),
    }
    for field, rows in wrong.items():
        if rows.any():
            row = start + int(rows.argmax()) + 1
            raise TraceFormatError(name, row, field, "holds an impossible value; export it again")


def _arrays(header: _Header, columns: Columns) -> TraceArrays:
    shape = (len(columns["id"]), header.horizon, len(header.roles))
    recorded: dict[str, Any] = {
        name: columns[name].reshape(shape) if of_calls else columns[name]
        for name, _, of_calls, since in _COLUMNS
        if since <= header.version and name != "id"
    }
    recorded |= {name: columns[name] for name in ("context", "requests") if name in columns}
    if header.stopping:
        recorded["stopping_nano"] = columns["stopping_nano"].reshape(shape)
    arrays = TraceArrays(
        ids=columns["id"],
        roles=header.roles,
        models=header.models,
        signals={name: columns[f"signal.{name}"].reshape(shape) for name in header.signals},
        group_names=header.groups,
        unpriced=header.unpriced,
        contexts=header.contexts,
        cuts=header.cuts,
        replies={
            role: PolicyReplies(columns[f"reply.{role}.action"], columns[f"reply.{role}.cost_nano"])
            for role in header.replies
        },
        **recorded,
    )
    return arrays if "made" in recorded else replace(arrays, made=left_a_trace(arrays))
