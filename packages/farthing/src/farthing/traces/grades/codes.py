"""The answers of a question: as codes, in words, and as its task grades them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from farthing import plugins
from farthing.errors import InputError
from farthing.tasks import text
from farthing.tasks.base import Task, is_answer
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.base import Call, Trace
from farthing.traces.trace_kind import laid_out

EMPTY_CELL = "nan"


def normaliser(task: str) -> Callable[[str], str]:
    """Return how a task normalises answers; a task that nobody registered compares plain text.

    >>> normaliser("gsm8k")("#### 18"), normaliser("crepe")("Yes.")
    ('18', 'yes')
    """
    if task not in plugins.names("tasks"):
        return text.normalise
    registered: Task = plugins.load("tasks", task)
    return registered.normalise


def answer_codes(answers: Sequence[str | None], normalise: Callable[[str], str]) -> list[int]:
    """Return which distinct answer each one is, numbered as they appear; -1 for none.

    >>> answer_codes(["Paris", None, "paris.", "Rome", ""], text.normalise)
    [0, -1, 0, 1, -1]
    """
    seen: dict[str, int] = {}
    return [
        seen.setdefault(normalise(answer), len(seen))
        if answer is not None and is_answer(answer)
        else NO_ANSWER
        for answer in answers
    ]


def grades(trace: Trace, calls: Sequence[Call]) -> list[bool | None]:
    """Return whether each call's answer is right: as recorded, else as the task grades it.

    No answer is never right, whatever was recorded. Where the question has no accepted answer and
    nothing was recorded, nobody knows: None.

    >>> calls = [Call(round=1, role="a", answer="4.0"), Call(round=1, role="b", correct=True)]
    >>> grades(Trace(id="q", task="gsm8k", gold=["4"], calls=calls), calls)
    [True, False]
    >>> grades(Trace(id="q", calls=calls[:1]), calls[:1])
    [None]
    """
    return [_is_right(trace, call) if is_answer(call.answer) else False for call in calls]


def accepted(trace: Trace) -> list[str]:
    """Return the accepted answers; a blank, or the `nan` of a table's empty cell, is none.

    >>> accepted(Trace(id="q", gold=["nan", "4", " "], calls=[Call(round=1, role="a")]))
    ['4']
    """
    return [gold for gold in trace.gold if is_answer(gold) and gold != EMPTY_CELL]


def _is_right(trace: Trace, call: Call) -> bool | None:
    gold = accepted(trace)
    if call.correct is not None or not gold:
        return call.correct
    task: Task = plugins.load("tasks", trace.task)
    return task.grade(call.answer, gold)


@dataclass(frozen=True)
class AnswerTexts:
    """What the distinct answers of each question say, by their numbers in the arrays."""

    rows: Mapping[str, int]
    """Question id to its row."""
    tasks: tuple[str, ...]
    """[n] the task of each question."""
    texts: tuple[Mapping[int, str], ...]
    """[n] number to the answer, as it was first given."""

    @classmethod
    def of(cls, records: Sequence[Trace], arrays: TraceArrays) -> Self:
        """Read them from the records that the arrays were made of, in the same order."""
        place = {role: i for i, role in enumerate(arrays.roles)}
        texts: list[Mapping[int, str]] = []
        for trace, codes in zip(records, arrays.answer.tolist(), strict=True):
            found: dict[int, str] = {}
            for call in laid_out(trace):
                if call.answer is not None and is_answer(call.answer):
                    found.setdefault(codes[call.round - 1][place[call.role]], call.answer)
            texts.append(found)
        rows = {trace.id: row for row, trace in enumerate(records)}
        return cls(rows, tuple(trace.task for trace in records), tuple(texts))

    @property
    def most(self) -> int:
        """The largest number of distinct answers of any question."""
        return max((max(texts, default=-1) for texts in self.texts), default=-1) + 1

    def row(self, question: str) -> int:
        """Return a question's row."""
        if question not in self.rows:
            raise InputError(f"there is no question '{question}' among the traces; check the id")
        return self.rows[question]

    def code(self, row: int, answer: str) -> int:
        """Return the number of an answer, or of one that the task holds for the same."""
        normalise = normaliser(self.tasks[row])
        wanted = normalise(answer)
        for code, given in self.texts[row].items():
            if normalise(given) == wanted:
                return code
        question = next(name for name, at in self.rows.items() if at == row)
        raise InputError(f"nobody answered '{answer}' to the question '{question}'; check it")

    def accepted(self, row: int, gold: Sequence[str]) -> dict[int, bool]:
        """Return whether each answer of a question is among the accepted ones."""
        task: Task = plugins.load("tasks", self.tasks[row])
        return {code: task.grade(text, gold) for code, text in self.texts[row].items()}
