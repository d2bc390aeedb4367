"""Numbers, as in GSM8K: the last number of a reply, compared exactly as a fraction."""

import re
from fractions import Fraction

from farthing.tasks import text
from farthing.tasks.base import ExactMatch, Question
from farthing.tasks.questions import QuestionRow

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_SIGNED = re.compile(
    rf"(?<![\w.])([-+−]?)\$?({_NUMBER})(?:[eE]([-+]?[0-9]{{1,2}})(?!\w))?(?:/([0-9]+(?:\.[0-9]+)?))?"
)


def normalise(answer: str) -> str:
    """Return the last number (after `####` where there is one) as a reduced fraction.

    Currency signs, thousands separators and trailing zeros do not matter. A percentage counts as
    its figure, 50% as 50, the way GSM8K writes its answers. A reply without a number stays text.

    >>> [normalise(reply) for reply in ("so 6 * 3 #### 18", "$1,234.00", "18.0000", "50%", "-0.5")]
    ['18', '1234', '18', '50', '-1/2']
    """
    final = answer.rpartition("####")[2]
    for found in (*reversed(_SIGNED.findall(final)), *reversed(_SIGNED.findall(answer))):
        value = _value(*found)
        if value is not None:
            return str(value)
    return text.normalise(answer)


def _value(sign: str, digits: str, exponent: str, divisor: str) -> Fraction | None:
    try:
        size = Fraction(digits.replace(",", "")) * Fraction(10) ** int(exponent or 0)
        size /= Fraction(divisor or 1)
    except (ValueError, ZeroDivisionError):  # over 4,300 digits, which Python refuses, or x / 0
        return None
    return size if sign in {"", "+"} else -size


NUMBERS = ExactMatch("gsm8k", normalise, re.compile(r"-?[0-9]+(/[0-9]+)?"))


def question(row: QuestionRow) -> Question:
    """Read a row of GSM8K: `question`, and an `answer` whose number stands after `####`.

    >>> row = {"question": "6 * 3?", "answer": "6 * 3 = <<6*3=18>>18 #### 18"}
    >>> question(QuestionRow(row, "test.jsonl, line 1", "test", 1)).gold
    ('18',)
    """
    return Question(
        id=f"{row.source}-{row.number}",
        text=row.text("question"),
        gold=_gold(row),
        split=row.split,
    )


def _gold(row: QuestionRow) -> tuple[str, ...]:
    if not row.graded and "answer" not in row.values:
        return ()
    _, found, number = row.text("answer").rpartition("####")
    if not found or not number.strip():
        raise row.refusal("answer", "has no number after ####")
    return (number.strip(),)
