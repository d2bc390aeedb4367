import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.tasks.text import TEXT, normalise


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ("Paris.", " paris"),
        ('"Tea for  Two"', "tea for two"),
        ("STRASSE", "straße"),
        ("1989", "1989"),
        ('{"b": 1, "a": "Yes"}', '{"a":"yes",  "b":1.0}'),
        ("```json\n[1,\n 2]\n```", "[1, 2.0]"),
        ('{"a": "caf\\u00e9"}', '{"a": "Café"}.'),
    ],
)
def test_what_counts_as_the_same(answer: str, same: str) -> None:
    assert TEXT.grade(answer, [same])


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("-5", "5"),
        ("C++", "C"),
        ("$5", "5"),
        (".5", "5"),
        ("!!", "??"),
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 1}', '{"a": 1, "b": null}'),
        ("[1, 2]", "[2, 1]"),
        ('{"a": 1, "a": 2}', '{"a": 2}'),
        ("[1", "[1]"),
        ("1", "1.0"),
    ],
)
def test_what_stays_different(answer: str, other: str) -> None:
    assert not TEXT.grade(answer, [other])


def test_an_answer_of_punctuation_stays_an_answer() -> None:
    assert normalise(' "?" ') == '"?"'


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(width=32, allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "Infinity" not in json.dumps(value))


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: turned(inner) for name, inner in reversed(value.items())}
    return [turned(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(VALUES, st.booleans())
def test_json_is_the_same_however_it_is_written(value: Any, escaped: bool) -> None:
    """In another order, with other white space and escapes; to normalise twice changes nothing."""
    said = json.dumps([value])
    again = json.dumps(turned([value]), indent=1, ensure_ascii=escaped, separators=(" , ", " : "))
    assert normalise(said) == normalise(normalise(said)) == normalise(again)
