"""The answers of a question as codes and grades."""

from collections.abc import Callable, Iterator, Sequence

from farthing import plugins
from farthing.errors import UnknownNameError
from farthing.tasks import text
from farthing.tasks.base import Particular, Task, is_answer
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


def grades(trace: Trace, calls: Sequence[Call]) -> list[bool | None]:
    """Return whether each call's answer is right: as recorded, else as the task grades it.

    No answer is never right, whatever was recorded. Where the question has no accepted answer and
    nothing was recorded, nobody knows: None.

    Raises:
        UnknownNameError: an answer has no recorded grade and nobody registered the trace's task.

    >>> calls = [Call(round=1, role="a", answer="4.0"), Call(round=1, role="b", correct=True)]
    >>> grades(Trace(id="q", task="gsm8k", gold=["4"], calls=calls), calls)
    [True, False]
    >>> grades(Trace(id="q", calls=calls[:1]), calls[:1])
    [None]
    """
    return [_is_right(trace, call) if is_answer(call.answer) else False for call in calls]


def gold_problems(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) where a trace's task cannot grade against its accepted answers.

    >>> calls = [Call(round=1, role="a", answer="4")]
    >>> print(*gold_problems(Trace(id="q", task="gsm8k", gold=["four"], calls=calls)))
    ('gold', "is 'four', which the task gsm8k cannot grade against; give an answer of its kind")
    """
    try:
        task: Task = plugins.load("tasks", trace.task)
    except UnknownNameError as unknown:
        yield "task", f"{unknown}; name one of these, or give every call its `correct`"
        return
    for i, accepted in enumerate(trace.gold):
        if not is_answer(accepted):
            yield f"gold[{i}]", "is empty; give the accepted answer or remove it"
    if isinstance(task, Particular) and not any(map(task.accepts, trace.gold)):
        problem = f"which the task {trace.task} cannot grade against; give an answer of its kind"
        yield "gold", f"is {', '.join(map(repr, trace.gold))}, {problem}"


def _is_right(trace: Trace, call: Call) -> bool | None:
    if call.correct is not None or not trace.gold:
        return call.correct
    task: Task = plugins.load("tasks", trace.task)
    return task.grade(call.answer, trace.gold)
