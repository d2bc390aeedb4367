"""The project's own reading of texts is that of the tokenizer which ships with the weights."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.tasks.templates import BUILT_IN
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import message, prompt, replied
from farthing_lab.lm.make import solution
from farthing_lab.lm.symbols import (
    END,
    EXPERTS,
    FIRST,
    MODES,
    NUMBERS,
    PAD,
    SYMBOLS,
    WHOLE,
    decode,
    encode,
    tokenizer,
)
from farthing_lab.models.embedded import WEIGHTS
from farthing_lab.tasks.arithmetic import KINDS, ChainProblem, Recipe, draw

reader = cache(tokenizer)
recipes = st.builds(Recipe, st.sampled_from(KINDS), st.integers(1, 7), st.integers(0, 2))
problems = st.builds(
    lambda recipe, seed: draw(recipe, np.random.default_rng(seed)), recipes, st.integers(0, 2**32)
)
marks = st.builds(
    "<<{} {}>>".format,
    st.sampled_from(["quote", "end"]),
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
)
"""Around what others wrote."""
pieces = st.one_of(
    st.sampled_from([*SYMBOLS, " ", "\n", "\t", "\r\n", "<", ">", "x=", "**", "low", "<<", ">>"]),
    marks,
    st.text(max_size=3),
)
texts = st.lists(pieces, max_size=20).map("".join)
"""Anything, and often what is nearly a symbol or a mark."""


def read(text: str, template: str = WHOLE) -> list[int]:
    numbers: list[int] = reader(template)(text)["input_ids"]
    return numbers


def controlled(problem: ChainProblem, mode: str, expert: str) -> str:
    """Return all that an episode with one call and one refusal may hold."""
    asked = prompt("compact", Mode(mode, 1), (Expert(expert),), problem.text)[0].content
    called = f"<call>{expert}</call>" + message("money", expert, EXPERTS, brief=True)
    return f"{asked}{called}<call>{expert}: {problem.text}</call>{replied(solution(problem))}"


def test_there_are_fewer_than_64_symbols_and_no_two_are_equal() -> None:
    assert len(set(SYMBOLS)) == len(SYMBOLS) < 64
    assert (NUMBERS[PAD], NUMBERS[END]) == (0, 1)


@pytest.mark.slow
@given(problems, st.sampled_from(MODES), st.sampled_from(EXPERTS))
def test_both_read_what_networks_are_taught_alike(
    problem: ChainProblem, mode: str, expert: str
) -> None:
    episode = controlled(problem, mode.removesuffix(":"), expert)
    quoted = BUILT_IN["base"].fill({"question": problem.text, "choices": None})[-1].content
    for text in (problem.text, problem.reasoning, solution(problem), episode, quoted):
        assert read(text) == encode(text)


@pytest.mark.slow
@given(texts)
def test_both_read_anything_alike(text: str) -> None:
    assert read(text) == encode(text)


@given(problems, st.sampled_from(MODES))
def test_what_is_taught_has_a_symbol_for_everything_and_comes_back(
    problem: ChainProblem, mode: str
) -> None:
    text = f"{mode}{problem.text}{solution(problem)}"
    assert 0 not in encode(text)
    assert decode(encode(text)) == text
    assert reader(WHOLE).decode(encode(text)) == text


@pytest.mark.slow
@given(st.lists(st.sampled_from(range(len(SYMBOLS)))))
def test_symbols_are_written_alike(numbers: list[int]) -> None:
    assert decode(numbers) == reader(WHOLE).decode(numbers)


def test_marks_and_white_space_say_nothing() -> None:
    text = "Is it?\n<<quote 0123abcd>>\n a=4; a? \n<<end 0123abcd>>"
    plain = text.replace("<<quote 0123abcd>>", "").replace("<<end 0123abcd>>", "")
    assert read(text) == encode(text) == encode("".join(plain.split()))
    assert encode("<<quote 0123abc>>") != []
    assert encode("a \n=4") == encode("a=4"), "white space parts no symbol"


@pytest.mark.parametrize(
    ("template", "seen"), [(WHOLE, "low:a=4;a?<call>small</call>"), (FIRST, "low:a=4;a?")]
)
def test_a_conversation_is_one_text_or_its_first_message(template: str, seen: str) -> None:
    said: Any = [
        {"role": "user", "content": "low:a=4;a?"},
        {"role": "assistant", "content": "<call>small</call>"},
    ]
    fast = reader(template)
    assert fast.apply_chat_template(said, tokenize=False) == seen
    numbers = fast.apply_chat_template(said, add_generation_prompt=True, return_dict=False)
    assert numbers == encode(seen)


def test_what_ends_and_fills_up_is_known_to_the_tokenizer() -> None:
    fast = reader(WHOLE)
    assert (fast.eos_token_id, fast.pad_token_id) == (NUMBERS[END], NUMBERS[PAD])
    assert fast.decode(encode(f"4{END}"), skip_special_tokens=True) == "4"
    assert len(fast) == len(SYMBOLS)


@pytest.mark.parametrize("folder", sorted(WEIGHTS.glob("*/tokenizer.json")), ids=str)
def test_what_ships_reads_texts_as_this_does(folder: Path) -> None:
    made = json.loads(reader(WHOLE).backend_tokenizer.to_str())
    shipped = json.loads(folder.read_text())
    assert {**shipped, "padding": None, "truncation": None} == made
