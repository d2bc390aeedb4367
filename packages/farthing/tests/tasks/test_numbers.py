from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.tasks.numbers import NUMBERS, normalise


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("#### 18", "18"),
        ("She sells 16 - 3 - 4 = 9 eggs.\n#### 18", "18"),
        ("$1,234.00", "1234"),
        ("$-1,234", "-1234"),
        ("18.0000", "18"),
        ("50%", "50"),
        ("12.5 %", "25/2"),
        ("-$3.50", "-7/2"),
        ("−4", "-4"),
        ("3/4", "3/4"),
        ("The answer is 18 dollars.", "18"),
        ("10-5", "5"),
        ("1e3", "1000"),
        (".5", "1/2"),
        ("1,2", "2"),
        ("1/0", "1/0"),
        ("18 ####", "18"),
        ("none", "none"),
    ],
)
def test_the_number_of_a_reply(reply: str, value: str) -> None:
    assert normalise(reply) == value


@settings(deadline=None)
@given(st.decimals(-(10**9), 10**9, places=4), st.booleans())
def test_every_way_of_writing_a_number_is_one(value: Decimal, grouped: bool) -> None:
    written = f"{value:,f}" if grouped else str(value)
    assert Fraction(normalise(f"so it is {written}")) == Fraction(value)
    assert NUMBERS.grade(written, [f"#### {value:f}"])
    assert not NUMBERS.grade(written, [str(value + 1)])


def test_a_number_too_long_to_convert_is_text() -> None:
    assert normalise("9" * 5_000) == "9" * 5_000
