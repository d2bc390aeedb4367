"""Any file of traces that the form allows, for tests of what goes round."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call, CallError, Trace

ANSWERS = st.sampled_from(["4", " 4.0 ", "four", "Paris.", "paris", "B", "(b)", "", " ", None])
IDS = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), min_size=1, max_size=4)
TASKS = ("text", "mmlu")


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


CALL: dict[str, st.SearchStrategy[Any]] = {
    "model": maybe(st.sampled_from(["llama-2-7b", "gpt-4o", ""])),
    "answer": ANSWERS,
    "text": maybe(st.text(max_size=5)),
    "verdict": maybe(st.booleans()),
    "confidence": maybe(st.floats(0, 1)),
    "uncertainty": maybe(st.floats(0, 1e9)),
    "input_tokens": maybe(st.integers(0, 2**40)),
    "output_tokens": maybe(st.integers(0, 2**40)),
    "tool_calls": maybe(st.integers(0, 9)),
    "latency_s": maybe(st.floats(0, 1e6)),
    "cost_usd": maybe(st.floats(0, 1e6)),
    "error": maybe(st.builds(CallError, type=st.text(max_size=5), message=st.text(max_size=5))),
    "f1": maybe(st.floats(0, 1)),
    "score": maybe(st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)),
    "extra": st.dictionaries(
        st.sampled_from(["depth", "log p", "extra", "gold"]),
        st.floats(allow_nan=False, allow_infinity=False),
        max_size=2,
    ),
}


@st.composite
def fields_of_a_call(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = draw(st.fixed_dictionaries(CALL))
    largest = draw(maybe(st.floats(fields["cost_usd"] or 0, 1e6)))
    return fields | {"largest_cost_usd": largest}


@st.composite
def one_trace(
    draw: st.DrawFn, tasks: Sequence[str], name: str, places: list[tuple[int, str]], truncated: bool
) -> Trace:
    gold = draw(st.lists(st.sampled_from(["4", "Paris", "B"]), max_size=2))
    tasks = [*tasks, *(["gsm8k"] if "4" in gold or not gold else [])]
    grade = maybe(st.booleans()) if gold else st.booleans()
    return Trace(
        id=name,
        question=draw(st.text(max_size=5)),
        gold=gold,
        calls=[
            Call(round=number, role=role, correct=draw(grade), **draw(fields_of_a_call()))
            for number, role in draw(st.permutations(places))
        ],
        task=draw(st.sampled_from(tasks if gold else [*tasks, "nobody-registered-this"])),
        group=draw(maybe(st.sampled_from(["", "algebra", "law"]))),
        split=draw(maybe(st.sampled_from(["train", "calibrate", "test"]))),
        independent=draw(st.booleans()),
        truncated=truncated,
    )


@st.composite
def protocol_file(draw: st.DrawFn, tasks: Sequence[str]) -> list[Trace]:
    horizon = draw(st.integers(1, 3))
    names = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    traces = []
    for name in names:
        truncated = draw(st.booleans())
        rounds = draw(st.integers(1, horizon)) if truncated else horizon
        places = [(t + 1, role) for t in range(rounds) for role in ("base", "guide")]
        if truncated and draw(st.booleans()):
            places.pop()
        places += [(t + 1, "policy-gpt-4o") for t in range(rounds) if draw(st.booleans())]
        traces.append(draw(one_trace(tasks, name, places, truncated)))
    return traces


@st.composite
def pool_file(draw: st.DrawFn, tasks: Sequence[str]) -> list[Trace]:
    models = ["gpt-4o", "a model", "modèle", "llama"]
    names = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    traces = []
    for name in names:
        asked = draw(st.lists(st.sampled_from(models), min_size=1, unique=True))
        traces.append(
            draw(one_trace(tasks, name, [(1, role) for role in asked], draw(st.booleans())))
        )
    return traces


@pytest.fixture(scope="session")
def any_file() -> st.SearchStrategy[list[Trace]]:
    """Traces of one file: the paper's protocol or a pool of models."""
    return files_of(TASKS)


def files_of(tasks: Sequence[str]) -> st.SearchStrategy[list[Trace]]:
    return protocol_file(tasks) | pool_file(tasks)


@pytest.fixture(scope="session")
def assert_same() -> Callable[[TraceArrays, TraceArrays], None]:
    """Compare two sets of arrays field by field, kinds of numbers included."""
    return _assert_same


def _assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    for field in fields(ours):
        _assert_equal(getattr(ours, field.name), getattr(theirs, field.name))


def _assert_equal(ours: Any, theirs: Any) -> None:
    if isinstance(ours, np.ndarray):
        assert ours.dtype.kind == theirs.dtype.kind
        assert ours.dtype == theirs.dtype or ours.dtype.kind == "U"
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name in ours:
            _assert_equal(ours[name], theirs[name])
    elif hasattr(ours, "__dataclass_fields__"):
        _assert_same(ours, theirs)
    else:
        assert ours == theirs
