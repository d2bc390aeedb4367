"""What replies of a dialogue say, and what cannot be read."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing_lab.agents.replies import Verdict, read_exit, read_number, read_verdict

YES = Verdict(agrees=True)
UNREADABLE = Verdict(None)


def no(answer: str | None) -> Verdict:
    return Verdict(agrees=False, correction=answer)


VERDICTS = {
    "Yes": YES,
    "Yes.": YES,
    " yes\n": YES,
    "YES!": YES,
    "**Yes**": YES,
    '"Yes"': YES,
    "[Yes]": YES,
    "`Yes`": YES,
    "Yes, the answer is correct.": YES,
    "Yes. No corrections are needed.": YES,
    "Your response: Yes": YES,
    "Response: yes": YES,
    "**Verdict:** Yes": YES,
    "- Yes": YES,
    "Yes\n\nNo Paris": YES,
    "No Paris": no("Paris"),
    "no paris": no("paris"),
    "No, Paris": no("Paris"),
    "No. Paris": no("Paris"),
    "No: Paris": no("Paris"),
    "No - Paris": no("Paris"),
    "No — Paris": no("Paris"),
    "No\nParis": no("Paris"),
    "No.\n\nParis\nbecause": no("Paris"),
    "**No** Paris": no("Paris"),
    "**No Paris**": no("Paris"),
    "**No Paris**\nbecause": no("Paris"),
    "No.\nThe correct answer is Paris": no("Paris"),
    "No **Paris**": no("Paris"),
    "No, **Paris**.": no("**Paris**."),
    'No "Paris"': no("Paris"),
    "No <Paris>": no("Paris"),
    "No [Paris]": no("[Paris]"),
    "No, the correct answer is Paris": no("Paris"),
    "No. The correct answer is: Paris": no("Paris"),
    "No. Answer: Paris": no("Paris"),
    "No, it should be 5": no("it should be 5"),
    "Your response: No Paris": no("Paris"),
    "No": no(None),
    "No.": no(None),
    "No -5": no("-5"),
    "No .5": no(".5"),
    "No $1,234.50": no("$1,234.50"),
    "No, -5": no("-5"),
    r"No \frac{1}{2}": no(r"\frac{1}{2}"),
    "No [1, 2)": no("[1, 2)"),
    "No yes": no("yes"),
    "No, yes": no("yes"),
    "No no": no("no"),
    "No B": no("B"),
    "No No Country for Old Men": no("No Country for Old Men"),
    "No The Beatles": no("The Beatles"),
    "": UNREADABLE,
    "   ": UNREADABLE,
    "Paris": UNREADABLE,
    "None": UNREADABLE,
    "Yesterday": UNREADABLE,
    "Noam Chomsky": UNREADABLE,
    "Not correct. Paris": UNREADABLE,
    "Incorrect": UNREADABLE,
    "Correct": UNREADABLE,
    "Yes/No": UNREADABLE,
    "Yes and no": UNREADABLE,
    "Yes or No?": UNREADABLE,
    "I think the answer is yes": UNREADABLE,
    "The answer is correct. Yes": UNREADABLE,
    "I'm sorry, I can't help with that. No": UNREADABLE,
    "<<quote 12345678>>\nYes\n<<end 12345678>>\nNo Paris": UNREADABLE,
    "<think>Is it? Yes</think>\nYes": UNREADABLE,
    "Oui": UNREADABLE,
}


@pytest.mark.parametrize("reply", VERDICTS)
def test_verdicts(reply: str) -> None:
    assert read_verdict(reply) == VERDICTS[reply]


NUMBERS = {
    "1": "1",
    "2.": "2",
    " 3\n": "3",
    "(2)": "2",
    "**1**": "1",
    "Action: 3": "3",
    "Action number 3": None,
    "1. Use the base model's answer": "1",
    "2: guide": "2",
    "4": None,
    "0": None,
    "-1": "1",
    "10": None,
    "1.5": None,
    "1 or 2": None,
    "1, 2": None,
    "1/2": None,
    "two": None,
    "I choose 2": None,
    "": None,
}


@pytest.mark.parametrize("reply", NUMBERS)
def test_numbers(reply: str) -> None:
    assert read_number(reply, 3) == NUMBERS[reply]


EXITS = {
    "[EXIT]": "exit",
    "EXIT": "exit",
    "exit.": "exit",
    "**[CONTINUE]**": "continue",
    "Output: [CONTINUE]": "continue",
    "Answer: continue": "continue",
    "[EXIT] or [CONTINUE]": None,
    "I would exit": None,
    "EXIT now": None,
    "exited": None,
    "": None,
}


@pytest.mark.parametrize("reply", EXITS)
def test_exits(reply: str) -> None:
    assert read_exit(reply) == EXITS[reply]


@settings(deadline=None, max_examples=200)
@given(rest=st.text(max_size=200))
def test_nothing_after_the_verdicts_line_matters(rest: str) -> None:
    assert read_verdict(f"Yes\n{rest}") == YES
    assert read_verdict(f"No Paris\n{rest}") == no("Paris")


@settings(deadline=None, max_examples=300)
@given(reply=st.text(max_size=200) | st.text("Yesno Answer:[]{}#*123\n", max_size=60))
def test_every_reader_takes_every_text(reply: str) -> None:
    assert read_exit(reply) in {None, "exit", "continue"}
    assert read_number(reply, 3) in {None, "1", "2", "3"}
    verdict = read_verdict(reply)
    assert verdict.correction is None or verdict.agrees is False


LONG = 20_000
ENDLESS = {
    "lines": "\n" * LONG,
    "stars": "*\n" * LONG,
    "bullets": "\n* _-> " * LONG,
    "labels": "Answer: " * LONG,
    "responses": "response " * LONG,
    "quotes": '"' * LONG + "a",
    "no": "No" + " -" * LONG,
    "yes": "*" * LONG + "yes",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_text_takes_long_to_read(name: str) -> None:
    started = time.perf_counter()
    read_verdict(ENDLESS[name])
    read_exit(ENDLESS[name])
    read_number(ENDLESS[name], 3)
    assert time.perf_counter() - started < 2
