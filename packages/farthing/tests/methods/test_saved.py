"""A policy is rebuilt from its arrays and settings as it was, whatever it is made of."""

import json
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from farthing.methods.serialization import rebuilt, state_of
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Part:
    """What a policy may hold."""

    weight: FloatArray
    names: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Whole:
    """Everything at once: arrays of each kind, parts, tuples and tuples of tuples of arrays."""

    values: FloatArray
    models: IntArray
    good: BoolArray
    part: Part
    rows: tuple[IntArray, ...]
    plans: tuple[tuple[BoolArray, ...], ...]
    both: tuple[FloatArray, BoolArray]
    kind: str
    strong: int


SHAPES = arrays_of.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3)
FLOATS = arrays_of.arrays(np.float64, SHAPES, elements=st.floats(allow_nan=False))
INTS = arrays_of.arrays(np.int64, SHAPES)
BOOLS = arrays_of.arrays(np.bool_, SHAPES)
WHOLES = st.builds(
    Whole,
    values=FLOATS,
    models=INTS,
    good=BOOLS,
    part=st.builds(
        Part,
        weight=FLOATS,
        names=st.lists(st.text(max_size=3), max_size=3).map(tuple),
        share=st.floats(0, 1),
    ),
    rows=st.lists(INTS, max_size=3).map(tuple),
    plans=st.lists(st.lists(BOOLS, max_size=3).map(tuple), max_size=3).map(tuple),
    both=st.tuples(FLOATS, BOOLS),
    kind=st.text(max_size=5),
    strong=st.integers(0, 9),
)


def assert_same(ours: Any, theirs: Any) -> None:
    """Same kinds and same values; an infinite number may have become the largest finite one."""
    if is_dataclass(ours):
        assert type(ours) is type(theirs)
        for field in fields(ours):
            assert_same(getattr(ours, field.name), getattr(theirs, field.name))
    elif isinstance(ours, tuple):
        assert isinstance(theirs, tuple)
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        expected = np.clip(ours, -LARGEST, LARGEST) if ours.dtype.kind == "f" else ours
        np.testing.assert_array_equal(theirs, expected)
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs


@pytest.mark.slow
@given(WHOLES)
def test_what_is_rebuilt_is_what_was_saved(policy: Whole) -> None:
    arrays, settings = state_of(policy)
    assert all(values.dtype.kind in "iuf" for values in arrays.values())
    assert all(np.isfinite(values).all() for values in arrays.values())
    settings = json.loads(json.dumps(settings))
    assert_same(policy, rebuilt(Whole, arrays, settings))


def test_infinite_thresholds_compare_as_before() -> None:
    scores = np.array([-1e300, -1.0, 0.0, 1e300])
    for end in (np.inf, -np.inf):
        part = Part(np.array([end]), (), 0.0)
        again = rebuilt(Part, *state_of(part))
        np.testing.assert_array_equal(scores < again.weight, scores < part.weight)


def test_arrays_of_parts_have_dotted_names() -> None:
    part = Part(np.zeros(2), ("a",), 0.5)
    both = (np.ones(1), np.ones(2, dtype=bool))
    whole = Whole(
        values=np.zeros(1),
        models=np.zeros(1, dtype=np.int64),
        good=np.ones(1, dtype=bool),
        part=part,
        rows=(np.zeros(1, dtype=np.int64),),
        plans=((np.ones(1, dtype=bool),),),
        both=both,
        kind="k",
        strong=1,
    )
    arrays, settings = state_of(whole)
    assert {"part.weight", "rows.0", "plans.0.0", "both.1"} <= set(arrays)
    assert settings["part.names"] == ["a"]
    with pytest.raises(KeyError):
        rebuilt(Whole, arrays, settings | {"rows": 2})
