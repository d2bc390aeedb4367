"""Traces from what is in memory: dictionaries in the interchange form, or one row a call."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from farthing.errors import InputError
from farthing.traces.base import Call, Trace
from farthing.traces.importers.row import FileRow, RowPlace
from farthing.traces.importers.table import dollars, known
from farthing.traces.jsonl import decode_all

OF_QUESTION = (
    "task", "question", "gold", "group", "split", "independent", "truncated",
    "system_prompt", "history", "options", "parameters", "missing_because", "requests",
    "cluster",
)  # fmt: skip
"""What rows say of their question rather than of their call; one of its rows at least says it."""
OWN = frozenset({"id", *OF_QUESTION, *Call.__struct_fields__}) - {"extra"}
"""Names of columns in the interchange form; numbers may stand in others."""
COSTS = ("cost_usd", "largest_cost_usd")
"""What may be an amount in words."""
COUNTS = ("round", "input_tokens", "output_tokens", "tool_calls")
"""Whole numbers, which a data frame holds as floats where some are unknown."""
FLAGS = ("independent", "truncated")
"""Of these the first row of a question decides."""
Row = Mapping[str, Any]


@runtime_checkable
class Frame(Protocol):
    """A data frame, as pandas and polars have it."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        ...

    def to_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the content as dictionaries."""
        ...


def from_records(records: "Iterable[Row] | Frame") -> list[Trace]:
    """Read traces from dictionaries, or from a data frame of one row a call.

    Args:
        records: a dictionary a question, as a line of the interchange form; or a dictionary, or row
            of a data frame, a call: `id` and `model` (or `role`), with `answer`, `correct`,
            `cost_usd` and whatever else a call may have; `question`, `gold` and the like in any
            row of a question. An amount may be text, as in a table: "$0.0001525".

    >>> rows = [
    ...     {"id": "q1", "model": "small", "answer": "5", "correct": False, "cost_usd": 0.00001},
    ...     {"id": "q1", "model": "large", "answer": "4", "correct": True, "cost_usd": 0.0004},
    ... ]
    >>> [call.role for call in from_records(rows)[0].calls]
    ['small', 'large']
    """
    rows = rows_of(records)
    rows = [
        _with_amounts(row, RowPlace("records", place)) for place, row in enumerate(rows, start=1)
    ]
    if not any("calls" in row for row in rows):
        rows = _gathered(rows)
    return list(decode_all("records", map(_encoded, range(1, len(rows) + 1), rows)))


def _with_amounts(row: Row, place: RowPlace, path: str = "") -> Row:
    """Return a row whose costs, and those of its calls, are numbers where they were text."""
    amounts: dict[str, Any] = {
        name: dollars(FileRow({path + name: row[name]}, place), path + name)
        for name in COSTS
        if isinstance(row.get(name), str)
    }
    if isinstance(calls := row.get("calls"), list):
        amounts["calls"] = [
            _with_amounts(call, place, f"calls[{i}].") if isinstance(call, Mapping) else call
            for i, call in enumerate(calls)
        ]
    return {**row, **amounts} if amounts else row


def _encoded(place: int, row: Row) -> bytes:
    try:
        return msgspec.json.encode(_plain(row))
    except (TypeError, ValueError, OverflowError, RecursionError) as problem:
        raise InputError(
            f"record {place} holds what is no JSON ({problem}); give text, numbers, lists and None"
        ) from None


def rows_of(records: "Iterable[Row] | Frame") -> list[Row]:
    """Return records, or the rows of a data frame, as dictionaries.

    Raises:
        InputError: they are none, or something else.
    """
    rows = _rows(records)
    if not rows:
        raise InputError("there are no records; give at least one question")
    return rows


def is_foreign(rows: Sequence[Row]) -> bool:
    """Return whether rows, one a call, have other names than the interchange form.

    >>> is_foreign([{"id": "q1", "model": "small", "answer": "4", "length": 1}])
    False
    >>> is_foreign([{"id": "q1", "model": "small", "answer": "4", "latency_ms": 900}])
    True
    """
    fields = {str(name) for name in rows[0]}
    if any("calls" in row for row in rows):
        return False
    return bool(known(fields - OWN)) or "id" not in fields or not fields & {"model", "role"}


def _rows(records: "Iterable[Row] | Frame") -> list[Row]:
    if isinstance(records, Frame) and not isinstance(records, Mapping):
        columns = {str(name): list(records[name]) for name in records.columns}  # type: ignore[index]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(records, Mapping | str | bytes) or not isinstance(records, Iterable):
        kind = type(records).__name__
        raise InputError(
            f"the records are of type {kind}; give a list of dictionaries, or a data frame"
        )
    rows: list[Any] = list(records)
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise InputError(f"record {place} is of type {kind}; give a dictionary a question")
    return rows


def _gathered(rows: Sequence[Row]) -> list[Row]:
    """Put the calls of each question together, in the order of its first row."""
    questions: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(rows, start=1):
        if "id" not in row:
            raise InputError(f"record {place} has no `id`; name the question that the call is of")
        known = _plain(row)
        name = str(known["id"])
        about = {key: known[key] for key in OF_QUESTION if key in known}
        question = questions.setdefault(name, {"id": name, "gold": [], **about, "calls": []})
        for key, value in about.items():
            if key in FLAGS or not value:
                continue
            if (question.get(key) or value) != value:
                raise InputError(
                    f"record {place}: question '{name}' has another {key} in a record before; one "
                    "id is one question"
                )
            question[key] = value
        call = {key: v for key, v in known.items() if key != "id" and key not in OF_QUESTION}
        role = call.get("role") or call.get("model")
        floats = {n: call[n] for n in COUNTS if isinstance(call.get(n), float)}
        call |= {n: int(some) for n, some in floats.items() if some.is_integer()}
        question["calls"].append({"round": 1, **call, "role": role})
    return list(questions.values())


def _plain(value: Any) -> Any:
    """Return JSON values alone: numbers of other libraries as Python's own, without NaN."""
    if value is getattr(sys.modules.get("pandas"), "NA", ...):
        return None
    if isinstance(value, Mapping):
        items = {str(key): _plain(each) for key, each in value.items()}
        return {key: each for key, each in items.items() if each is not None or key == "answer"}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise InputError("a record holds an infinite number; every number must be finite")
    return value
