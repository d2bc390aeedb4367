"""Fingerprints: of traces as a whole, and of each question, to tell later what was used before."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from farthing.traces.arrays import RIGHT, BoolArray, TraceArrays, left_a_trace


def fingerprint(arrays: TraceArrays) -> str:
    """Return the SHA-256 of everything the arrays hold, in hexadecimal.

    The same traces have the same fingerprint, whichever file they came from.
    """
    digest = hashlib.sha256()
    _hash(arrays, digest.update)
    return digest.hexdigest()


def _hash(value: Any, update: Callable[[bytes], None]) -> None:
    """Feed a value with its kind and its length, so that no two values read alike."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), value.dtype.type(np.nan), value)  # one NaN, one hash
        update(f"{value.dtype.str.lstrip('<|=')}{value.shape}".encode())
        update(np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes())
    elif isinstance(value, Mapping):
        update(f"mapping {len(value)}".encode())
        for name in sorted(value):
            _hash(name, update)
            _hash(value[name], update)
    elif is_dataclass(value):
        _hash(_marked(value), update)
    else:
        words = value.tolist() if isinstance(value, np.ndarray) else value
        update(json.dumps(words).encode())


_WHERE_ANY = (
    *("largest_cost_nano", "stopping_nano", "ungraded", "made"),
    *("at_worst", "requests", "cuts"),
)
"""What counts only where there is any."""
_NEVER = (
    *("question", "content", "missing_because", "context", "contexts", "beside_gold"),
    "requests_per_day",
)


def _marked(value: Any) -> dict[str, Any]:
    """Return the fields that tell one record from another.

    What was not always recorded (largest costs, unknown grades and costs, requests beyond the
    first) counts where there is any, as before it was; which calls were made where nothing else
    says it. The text of questions does not, since their ids do; nor what they were asked with,
    which their origin says; nor why calls are missing, nor the rate at which requests came.
    """
    held = {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, TraceArrays):
        return held
    # Which calls were made counts where neither rounds nor what a call leaves says so.
    rounds = (np.arange(value.horizon) < value.recorded[:, None])[..., None]
    if (value.made == rounds).all() or (value.made == left_a_trace(value)).all():
        held["made"] = np.zeros_like(value.made)
    held["requests"] = value.requests - 1
    for name in _NEVER:
        held.pop(name)
    if np.isnan(value.asked_probability).all():
        held.pop("asked_probability")
    if value.grade == RIGHT:
        held.pop("grade")
    for name in _WHERE_ANY:
        if not np.any(held[name]):
            held.pop(name)
    if not value.unpriced:
        held.pop("unpriced")
    return held


Marks = frozenset[int]
"""64 bits for each record of a question, and 64 for what it asks."""
NO_TEXT = 0


def question_hashes(arrays: TraceArrays) -> Marks:
    """Return the first 64 bits of the SHA-256 of each question's id, answers and costs.

    The same id with other recorded calls has another mark: it is another trace. Grades do not
    count: the same question may be graded later, or by another grade.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> calls = (Call(round=1, role="r1", answer="4", cost_usd=usd) for usd in (0.1, 0.2))
    >>> one, other = (question_hashes(assemble([Trace(id="q", calls=[made])])) for made in calls)
    >>> len(one), len(one & other)
    (1, 0)
    """
    return frozenset(_each(arrays))


def marks_of(arrays: TraceArrays) -> Marks:
    """Return the marks that a bundle keeps of questions: of each record, and of what it asks.

    What a question asks is known again under another id, with other calls and other grades.
    """
    return question_hashes(arrays) | (frozenset(arrays.content.tolist()) - {NO_TEXT})


def seen_before(
    arrays: TraceArrays, known: Mapping[str, Marks], *, by_text: bool = True
) -> dict[str, BoolArray]:
    """Return which questions have one of the marks of each part, part to [n].

    Args:
        arrays: the questions.
        known: part to its marks: of records, and of texts where the bundle kept these.
        by_text: whether another record of the same text counts; not where each request does.
    """
    texts = arrays.content.tolist() if by_text else [NO_TEXT] * len(arrays)
    each = [{*pair} - {NO_TEXT} for pair in zip(_each(arrays), texts, strict=True)]
    return {
        part: np.array([not marks.isdisjoint(pair) for pair in each], dtype=bool)
        for part, marks in known.items()
    }


def _each(arrays: TraceArrays) -> list[int]:
    columns = (arrays.answer, arrays.cost_nano)
    rows = np.stack([column.astype("<i8") for column in columns], axis=1)  # [n, 2, T, L]
    marks = []
    for name, recorded in zip(arrays.ids.tolist(), rows, strict=True):
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(recorded.tobytes())
        marks.append(int.from_bytes(digest.digest()[:8], "little"))
    return marks
