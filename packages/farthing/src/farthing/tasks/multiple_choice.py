"""Multiple choice: the letter that a reply chooses, A to J."""

import re
from typing import Any

from farthing.tasks import text
from farthing.tasks.base import ExactMatch, Question
from farthing.tasks.questions import QuestionRow

_LETTER = (
    re.compile(r"\W*([A-Ja-j])\W*"),  # B, (b), **B**
    re.compile(r"\W*([A-Ja-j])[.):\]].*", re.DOTALL),  # B: foo, (b) foo
    re.compile(  # The answer is B; a lower-case letter may be a word, so it must stand at the end
        r".*(?i:\banswer|\bchoice|\boption)(?i:\s+is)?[\s:*(\[\"']+([A-J]\b|[a-j](?=\W*$)).*",
        re.DOTALL,
    ),
)


def normalise(answer: str) -> str:
    """Return the chosen letter as a capital; where none can be read, the text itself.

    >>> [normalise(reply) for reply in ("(b)", "B: Paris", "The answer is B.", "Paris")]
    ['B', 'B', 'B', 'paris']
    """
    for pattern in _LETTER:
        if match := pattern.fullmatch(answer):
            return match[1].upper()
    return text.normalise(answer)


MULTIPLE_CHOICE = ExactMatch("multiple_choice", normalise)

_LETTERS = "ABCDEFGHIJ"
_PART = re.compile(r"_(train|dev|val|test)$")


def question(row: QuestionRow) -> Question:
    """Read a row of MMLU: `SUBJECT_PART.csv` without a header, or the data set on the Hub.

    The CSV has the question, the choices, and the right letter; the data set has the fields
    `question`, `choices`, `answer` (a number from 0) and `subject`. In a CSV that need not be
    graded, a last cell that is no letter of a choice is a choice.

    >>> cells = ["2 + 2?", "3", "4", "B"]
    >>> row = {f"column {i}": cell for i, cell in enumerate(cells, start=1)}
    >>> question(QuestionRow(row, "algebra_test.csv, row 1", "algebra_test", 1)).gold
    ('B',)
    """
    if "column 1" in row.values:
        cells = list(row.values.values())
        asked, choices, answer = cells[0], cells[1:-1], cells[-1]
        if not row.graded and answer.strip() not in list(_LETTERS[: len(choices)]):
            choices, answer = cells[1:], None
        subject: str | None = _PART.sub("", row.source)
        field = f"column {len(row.values)}"
    else:
        asked, choices = row.text("question"), list(row.values.get("choices") or ())
        subject, answer, field = row.label("subject"), row.values.get("answer"), "answer"
    if not 2 <= len(choices) <= len(_LETTERS):
        problem = f"are {len(choices)}; a row is a question, 2 to 10 choices and the right letter"
        raise row.refusal("choices", problem)
    return Question(
        id=f"{subject}-{row.split}-{row.number}" if subject else f"{row.source}-{row.number}",
        text=asked,
        gold=_gold(row, field, answer, len(choices)),
        group=subject,
        split=row.split,
        choices=tuple(choices),
    )


def _gold(row: QuestionRow, field: str, answer: Any, choices: int) -> tuple[str, ...]:
    if not row.graded and (answer is None or answer == -1):  # so data sets hide a test's answers
        return ()
    letters = _LETTERS[:choices]
    letter = letters[answer : answer + 1] if isinstance(answer, int) else str(answer).strip()
    if letter not in list(letters):
        raise row.refusal(field, f"is {answer!r}; it must name one of the choices {letters}")
    return (letter,)
