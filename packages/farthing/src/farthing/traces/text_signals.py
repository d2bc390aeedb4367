"""A few numbers read off questions and answers, for policies that ask for calls in any order.

They are crude on purpose: lengths and digits tell kinds of questions apart, and whether an answer
is a number or a yes tells kinds of answers apart, for any task and at no cost.
"""

import math

OF_QUESTION = ("question_words", "question_digits")
"""Known before anything is asked."""
OF_ANSWER = ("answer_number", "answer_yes")


def read_question(text: str) -> tuple[float | None, float | None]:
    """Return the number of words and of digits; None where no text was recorded.

    >>> read_question("What is 12 + 7?")
    (5.0, 3.0)
    """
    if not text.strip():
        return None, None
    return float(len(text.split())), float(sum(map(text.count, filter(str.isdigit, set(text)))))


def read_answer(answer: str | None) -> tuple[float | None, float | None]:
    """Return log(1 + |number|), and 1 for yes or true and 0 for no or false; None where it is not.

    >>> read_answer("1,000")[0] == math.log1p(1000), read_answer("Yes"), read_answer(None)
    (True, (None, 1.0), (None, None))
    """
    said = (answer or "").strip().casefold()
    yes = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}.get(said)
    try:
        number = float(said.replace(",", "").removeprefix("$"))
    except ValueError:
        return None, yes
    return (math.log1p(abs(number)) if math.isfinite(number) else None), yes
