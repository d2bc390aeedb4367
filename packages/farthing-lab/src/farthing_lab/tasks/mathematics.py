r"""Mathematics: answers are the same when they are equivalent, as decided by math-verify.

Needs the extra `math`. math-verify stops an endless simplification by a signal, which works in the
main thread only; elsewhere answers run without that clock, and the guards below are all there is.
"""

import logging
import re
import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from farthing.errors import MissingExtraError
from farthing.tasks import text
from farthing.tasks.base import Question, is_answer
from farthing.tasks.questions import QuestionRow
from farthing.tasks.replies import boxed

_TIMEOUT_S = 5
_LONGEST = 300
_EXPLOSIVE = re.compile(r"!|\^\{?[^}]*\^|\*\*.*\*\*|[0-9]{16}|(?:\^|\*\*)\s*\{?-?\s*[0-9]{3}")
"""Factorials, towers of powers and large exponents: evaluating them may never end."""
_PROSE = re.compile(r"(?<![\\a-zA-Z])(?!sin|cos|tan|cot|sec|csc|log|exp)[a-zA-Z]{3}")
_WORDS_ONLY = re.compile(r"\$?\\(?:text|mathrm|textbf)\{([^{}]*[a-zA-Z]{2}[^{}]*)\}\$?")
_FAILURES = (
    ArithmeticError,
    AttributeError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


class Mathematics:
    r"""Grades by mathematical equivalence.

    >>> MATHEMATICS.grade(r"\frac{1}{2}", ["0.5"]), MATHEMATICS.grade("(x+1)^2", ["x^2+2x+1"])
    (True, True)
    """

    name = "math"

    def normalise(self, answer: str) -> str:
        r"""Return the expanded expression as LaTeX, decimals as fractions; failing that, the text.

        >>> MATHEMATICS.normalise(r"\boxed{0.50}"), MATHEMATICS.normalise(r"\text{Monday}")
        ('\\frac{1}{2}', 'monday')
        """
        return _normalise(answer)

    def grade(self, answer: str | None, gold: Sequence[str]) -> bool:
        if answer is None or not is_answer(answer):
            return False
        return any(_equivalent(answer, accepted) for accepted in gold)


MATHEMATICS = Mathematics()


@cache
def _library() -> ModuleType:
    try:
        library = import_module("math_verify")
    except ImportError as error:
        raise MissingExtraError("comparing mathematics", "math", "farthing-lab") from error
    # What it cannot read or decide in time counts as different here and needs no line on stderr.
    logging.getLogger("math_verify").setLevel(logging.CRITICAL + 1)
    return library


def _timeout_s() -> int | None:
    return _TIMEOUT_S if threading.current_thread() is threading.main_thread() else None


def _parsed(answer: str) -> list[Any]:
    """Return what math-verify reads: an expression first, or nothing."""
    library = _library()
    if len(answer) > _LONGEST or _EXPLOSIVE.search(answer) or _WORDS_ONLY.fullmatch(answer.strip()):
        return []
    delimited = "$" in answer or "\\boxed" in answer or _PROSE.search(answer)
    try:
        return list(
            library.parse(answer if delimited else f"${answer}$", parsing_timeout=_timeout_s())
        )
    except _FAILURES:
        return []


@lru_cache(maxsize=65_536)
def _normalise(answer: str) -> str:
    parsed = _parsed(answer)
    if not parsed or isinstance(parsed[0], str):
        words = _WORDS_ONLY.fullmatch(answer.strip())
        return text.normalise(words[1] if words else answer)
    return _latex(parsed[0])


def _latex(expression: Any) -> str:
    sympy = import_module("sympy")
    try:
        if isinstance(expression, sympy.Expr):
            expression = sympy.expand(sympy.nsimplify(expression.doit(), rational=True))
        return str(sympy.latex(expression))
    except _FAILURES:
        return str(expression)


def _equivalent(answer: str, accepted: str) -> bool:
    if _normalise(answer) == _normalise(accepted):
        return True
    given, wanted = _parsed(answer), _parsed(accepted)
    if not given or not wanted:
        return False
    return bool(_library().verify(wanted, given, timeout_seconds=_timeout_s()))


def question(row: QuestionRow) -> Question:
    r"""Read a problem of MATH: `problem`, and `answer` or a `solution` that boxes it.

    One file a problem (`test/algebra/1.json`), JSON Lines, or the data set on the Hub.

    >>> row = {"problem": "1/2 + 1/2?", "solution": r"It is $\boxed{1}$.", "type": "Algebra"}
    >>> read = question(QuestionRow(row, "MATH/test/algebra/7.json, row 1", "7", 1, "test"))
    >>> read.id, read.gold
    ('Algebra-test-7-1', ('1',))
    """
    subject = row.label("type", "subject")
    named = [part for part in (subject, row.split, row.source, str(row.number)) if part]
    return Question(
        id=row.label("unique_id") or "-".join(named),
        text=row.text("problem"),
        gold=_gold(row),
        group=subject,
        split=row.split,
    )


def _gold(row: QuestionRow) -> tuple[str, ...]:
    if not row.graded and not {"answer", "solution"} & row.values.keys():
        return ()
    gold = row.text("answer") if "answer" in row.values else boxed(row.text("solution"))
    if gold is None:
        raise row.refusal("solution", r"has no \boxed{answer}")
    return (gold,)
