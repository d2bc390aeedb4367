"""The answers of a question as codes and grades."""

from collections.abc import Callable, Sequence

from farthing import plugins
from farthing.tasks import text
from farthing.tasks.base import Task, is_answer
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.base import Call, Trace


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


def grades(trace: Trace, calls: Sequence[Call]) -> list[bool]:
    """Return whether each call's answer is right: as recorded, else as the task grades it.

    No answer is never right, whatever was recorded.

    Raises:
        UnknownNameError: an answer has no recorded grade and nobody registered the trace's task.

    >>> calls = [Call(round=1, role="a", answer="4.0"), Call(round=1, role="b", correct=True)]
    >>> grades(Trace(id="q", task="gsm8k", gold=["4"], calls=calls), calls)
    [True, False]
    """
    return [is_answer(call.answer) and _is_right(trace, call) for call in calls]


def _is_right(trace: Trace, call: Call) -> bool:
    if call.correct is not None:
        return call.correct
    task: Task = plugins.load("tasks", trace.task)
    return task.grade(call.answer, trace.gold)
