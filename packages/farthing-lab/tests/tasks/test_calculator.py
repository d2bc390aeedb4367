"""The calculator: it is right on whatever it reads, and says so where it reads nothing."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.models.base import Message, Prompt
from farthing.models.config import models_from
from farthing.models.prices import PriceTable
from farthing.tasks.numbers import NUMBERS
from farthing_lab.tasks.arithmetic import ARITHMETIC, Recipe, draw_of
from farthing_lab.tasks.calculator import LONGEST, UNREAD, CalculatorSettings, calculate


def test_it_is_right_on_chains_of_every_kind() -> None:
    recipes = [Recipe("affine", 3), Recipe("sums", 7), Recipe("products", 1, 0)]
    drawn = draw_of("test", recipes, np.random.default_rng(0))
    for _ in range(50):
        one = next(drawn)
        assert calculate(one.text) == one.answer


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 999)), min_size=1, max_size=5))
def test_it_is_right_on_sums_in_words(terms: list[tuple[str, int]]) -> None:
    text = "7" + "".join(f" {sign} {value}" for sign, value in terms)
    assert calculate(f"What is {text}? Say the number.") == str(eval(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<<quote 1234abcd>>\nb=a+4;a=9;b?\n<<end 1234abcd>>", "3"),
        ("What is 6 × 7?", "42"),
        ("6x7", "42"),
        ("What is 2 + 2? They said 3 + 3 = 6.", "4"),
        ("What is 7?", None),
        ("b=a+4;b?", None),
        ("What is 1.5 + 2?", None),
        ("What is 1 + 2.5?", None),
        (f"{'9' * (LONGEST + 1)} * 2", None),
        ("", None),
    ],
)
def test_what_it_cannot_read_has_no_value(text: str, value: str | None) -> None:
    assert calculate(text) == value


def reply(text: str, usd: float | None = None) -> tuple[str, int | None]:
    async def ask() -> tuple[str, int | None]:
        line = {"input_per_million": 0, "output_per_million": 0, "per_request": usd}
        tables = {
            "models": {"dear": {"provider": "calculator"}},
            "prices": {} if usd is None else {"calculator": line},
        }
        model = models_from(tables, "job.toml").open()["dear"]
        done = await model.complete(Prompt((Message("user", text),)))
        return done.text, done.cost_nano

    return asyncio.run(ask())


def test_it_is_a_model_with_a_price_of_the_users_own() -> None:
    assert reply("a=4;b=a*3;b?") == ("Answer: 2", None)
    assert reply("What is 3 + 4?", 0.0004) == ("Answer: 7", 400_000)
    assert reply("Who wrote Emma?", 0.0004) == (UNREAD, 400_000)
    assert CalculatorSettings().price(PriceTable()) is None


def test_tasks_read_its_replies() -> None:
    assert ARITHMETIC.grade(reply("a=4;b=a*3;b?")[0], ["2"])
    assert NUMBERS.grade(reply("What is 12 * 12?")[0], ["144"])
