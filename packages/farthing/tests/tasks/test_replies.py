"""What real-looking replies say, and what cannot be read."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.tasks.replies import boxed, read_answer, unwrapped

ANSWERS = {
    "It is far.\nAnswer: Paris": "Paris",
    "Answer: Rome\nNo, wait.\nAnswer: Paris": "Paris",
    "**Answer:** Paris": "Paris",
    "**Answer**: **Paris**": "Paris",
    "Final answer: 42": "42",
    "### Answer: 42": "42",
    "answer: -5": "-5",
    "Answer: B": "B",
    r"Answer: $\boxed{\frac{1}{2}}$": r"\frac{1}{2}",
    "So the answer is 42.": "42",
    "The final answer is: 3.5": "3.5",
    "Therefore the answer is 3.5. Good.": "3.5",
    r"Hence $\boxed{x^{2}}$.": "x^{2}",
    "48 + 24 = 72\n#### 72": "72",
    "Answer:": None,
    "Answer:   \n": None,
    "I do not know.": None,
    "": None,
    "It must be Paris": None,
    "My answer to that may vary": None,
}


@pytest.mark.parametrize("reply", ANSWERS)
def test_answers(reply: str) -> None:
    assert read_answer(reply) == ANSWERS[reply]


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(reply=st.text(max_size=200) | st.text("Yesno Answer:[]{}\\boxed#*123\n", max_size=60))
def test_every_reader_takes_every_text(reply: str) -> None:
    for read in (read_answer, boxed, unwrapped):
        found = read(reply)
        assert found is None or found == found.strip()


LONG = 20_000
ENDLESS = {
    "lines": "\n" * LONG,
    "stars": "*\n" * LONG,
    "bullets": "\n* _-> " * LONG,
    "spaces": "the answer is a" + " " * LONG + "b",
    "answers": "the answer is " * LONG,
    "labels": "Answer: " * LONG,
    "responses": "response " * LONG,
    "boxes": "\\boxed{" * LONG,
    "hashes": "a####" * LONG,
    "quotes": '"' * LONG + "a",
    "no": "No" + " -" * LONG,
    "yes": "*" * LONG + "yes",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_text_takes_long_to_read(name: str) -> None:
    """Time grows with the length: a pattern that looks back from each place takes minutes here."""
    started = time.process_time()
    for read in (read_answer, boxed, unwrapped):
        read(ENDLESS[name])
    assert time.process_time() - started < 2
