"""From single calls to traces: the calls of one question, one a model, become a pool.

Where the user says that calls are samples, all of a model are kept, a round each.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any

import msgspec

from farthing import plugins
from farthing.models.usage import added
from farthing.tasks.base import is_answer
from farthing.tasks.replies import read_answer
from farthing.traces.base import REASONING_TOKENS, Trace
from farthing.traces.importers.base import ImportedCall, ImportEvent, ImportNote, LeftOut
from farthing.traces.importers.chat import Messages
from farthing.traces.kept_usage import kept as usage_kept
from farthing.traces.parameters import BY_ROLE, written
from farthing.traces.schema import plain
from farthing.traces.system import prompt_mark
from farthing.traces.trace_kind import PROTOCOL_ROLES, is_reply

LONGEST = 2_000
"""Most characters of a system prompt or a history that a trace keeps as text."""
DIGITS = 16
"""Hexadecimal digits of a question's hash: 64 bits, so that no two of a million agree."""
_OF_CALL = (
    "correct", "text", "confidence", "uncertainty", "input_tokens", "output_tokens", "latency_s",
    "cost_usd", "asked_probability", "error", "score",
)  # fmt: skip
_SAID = ("answer", "text", "correct", "score")
"""What two calls that say the same have in common."""


@dataclass
class QuestionCalls:
    """The calls of one question so far, in the order of the file."""

    first: ImportedCall
    calls: dict[tuple[str, int], ImportedCall] = field(default_factory=dict)
    """By role (a model, or a model at an effort) and round."""
    asked: Counter[str] = field(default_factory=Counter)
    """Role to how often it was asked; its samples are one request."""

    @property
    def requests(self) -> int:
        """How many requests asked the question: as many as asked one model at most."""
        return max(self.asked.values(), default=1)

    @property
    def recorded(self) -> list[ImportedCall]:
        """Every call that was kept."""
        return list(self.calls.values())


@dataclass
class Gathered:
    """Questions with their calls, and what had to be left out."""

    questions: dict[str, QuestionCalls] = field(default_factory=dict)
    repeats: int = 0
    """Calls of a model that was asked the same question before."""
    otherwise: int = 0
    """Of these, those with another answer or grade than the one that is kept."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason to rows."""
    remarks: dict[str, None] = field(default_factory=dict)
    """What is to be said of the files, in order."""
    times: list[datetime] = field(default_factory=list)
    """When calls were made, repeated ones among them, as far as the files say."""

    @property
    def period(self) -> tuple[datetime, datetime] | None:
        """When the first and the last call was made; None where no file says."""
        return (min(self.times), max(self.times)) if self.times else None

    @property
    def messages(self) -> dict[str, Messages | None]:
        """What was sent, whole, by question; None where it was more than texts, or nobody says."""
        return {name: question.first.messages for name, question in self.questions.items()}


def short_hash(text: str) -> str:
    """Return the id of a question that has none: the start of its SHA-256.

    >>> short_hash("2 + 2?")
    '70b499c547e0a11f'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def group_calls(recorded: Iterable[ImportEvent], *, samples: bool = False) -> Gathered:
    """Put the calls of each question together, one a model.

    Of several calls of one model the first one that was answered counts, unless they are samples.

    Args:
        recorded: what importers yield, in the order of the files.
        samples: whether several calls are samples of one model, a round each.
    """
    gathered = Gathered()
    for call in recorded:
        if isinstance(call, LeftOut):
            gathered.left_out[call.why] += 1
        elif isinstance(call, ImportNote):
            gathered.remarks[call.text] = None
        else:
            _add(gathered, call, samples=samples)
    if samples:
        _refuse_no_samples(gathered)
    return gathered


def trace_of(name: str, question: QuestionCalls, task: str) -> Trace:
    """Return the trace of a question, its answers read as the task reads them."""
    calls = question.recorded
    rounds = [number for _, number in question.calls]
    gold = next((list(call.gold) for call in calls if call.gold), [])
    unscored = any(call.unscored for call in calls)  # accepted answers would grade it
    made = [_call(*one, task) for one in zip(calls, rounds, strict=True)]
    for call, kept in zip(calls, made, strict=True) if unscored and gold else ():
        if call.correct is None and not call.unscored and call.error is None:
            kept["correct"] = plugins.load("tasks", task).grade(kept["answer"], gold)
    fields = {
        "id": name,
        "question": next((call.question for call in calls if call.question), ""),
        "gold": [] if unscored else gold,
        "task": task,
        "group": next((call.group for call in calls if call.group), None),
        "split": next((call.split for call in calls if call.split), None),
        "cluster": next((call.cluster for call in calls if call.cluster), None),
        "missing_because": next((c.missing_because for c in calls if c.missing_because), None),
        "independent": True,
        "system_prompt": _kept([call.system for call in calls]),
        "history": _kept([call.history for call in calls]),
        "parameters": _parameters(calls),
        "requests": question.requests,
        "calls": made,
    }
    try:
        return msgspec.convert(fields, Trace)
    except msgspec.ValidationError as error:
        expected, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`")
        raise question.first.place.refusal(field or "row", plain(expected, field)) from None


def _kept(texts: Sequence[str | None]) -> str | None:
    """Return what all calls say, or its fingerprint where that is long; None where one says none.

    Calls that say otherwise were refused.
    """
    text = None if None in texts else texts[0]
    return text if text is None or len(text) <= LONGEST else prompt_mark(text)


def _parameters(calls: Sequence[ImportedCall]) -> str | None:
    """Return what was asked for as JSON: of all calls alike, or by role where they differ."""
    said = {call.role: call.parameters for call in calls}
    if all(one is None for one in said.values()):
        return None
    first = calls[0].parameters
    alike = first is not None and all(one == first for one in said.values())
    return written(first if alike and first is not None else {BY_ROLE: said})


def reader(task: str) -> Callable[[str], str | None]:
    r"""Return how a task reads an answer off a whole reply.

    Plain text takes the reply as it is; other tasks take what it says is its answer, and failing
    that leave the reply to their own normalisation, which finds a number or a letter in it.

    >>> reader("gsm8k")("3 + 1 = 4\nAnswer: 4"), reader("text")(" Four. ")
    ('4', 'Four.')
    """
    plugins.load("tasks", task)
    if task == "text":
        return lambda reply: reply.strip() or None
    return lambda reply: read_answer(reply) or reply.strip() or None


def _add(gathered: Gathered, call: ImportedCall, *, samples: bool) -> None:
    _refuse_unusable(call)
    asked = filter(None, (call.cluster, call.key or call.question))
    name = call.id or short_hash("\n\n".join(asked))
    question = gathered.questions.setdefault(name, QuestionCalls(call))
    _refuse_contradiction(question.first, call, name)
    place = call.role, len(question.calls) + 1 if samples else 1
    if not samples:
        question.asked[call.role] += 1
    before = question.calls.get(place)
    gathered.repeats += before is not None
    if call.asked_at is not None:
        gathered.times.append(call.asked_at)
    if before is None or (_unanswered(before) and not _unanswered(call)):
        question.calls[place] = call
    elif not _unanswered(call):
        gathered.otherwise += any(getattr(before, name) != getattr(call, name) for name in _SAID)


def _refuse_no_samples(gathered: Gathered) -> None:
    first: tuple[str, QuestionCalls] | None = None
    for name, question in gathered.questions.items():
        first = first or (name, question)
        one, n = first[1].first.role, len(first[1].calls)
        for model, number in question.calls:
            if model != one:
                problem = f"is '{model}' and before it was '{one}'; import samples of one model"
                raise question.calls[model, number].place.refusal("model", f"{problem} at a time")
        if len(question.calls) != n or n == 1:
            counts = f"'{first[0]}' has {n} and '{name}' has {len(question.calls)}"
            problem = f"stands for {len(question.calls)} samples of '{name}' alone"
            problem = problem if first[0] == name else f"is of samples of which {counts}"
            needed = "at least 2 for each question, and as many for all"
            raise question.first.place.refusal("row", f"{problem}; record {needed}")


def _call(call: ImportedCall, number: int, task: str) -> dict[str, Any]:
    if call.error is not None:  # what failed is no answer, whatever was written down
        call = replace(call, answer=None, text=None, correct=None, score=None, confidence=None)
    answer = call.answer
    if answer is None and call.text is not None:
        answer = reader(task)(call.text)
    kept = {name: getattr(call, name) for name in _OF_CALL}
    kept["error"] = call.error and msgspec.to_builtins(call.error)
    if (used := reduce(added, call.usages, None)) is not None:
        told = {name: getattr(used, name) for name in ("input_tokens", "output_tokens")}
        kept |= {name: None if name in used.unknown else n for name, n in told.items()}
        kept["extra"] = usage_kept(used)
    elif call.reasoning_tokens is not None:
        kept["extra"] = {REASONING_TOKENS: call.reasoning_tokens}
    return {"round": number, "role": call.role, "model": call.model, "answer": answer, **kept}


def _unanswered(call: ImportedCall) -> bool:
    return call.error is not None or not (is_answer(call.answer) or is_answer(call.text))


def _refuse_unusable(call: ImportedCall) -> None:
    if is_reply(call.model) or call.model in PROTOCOL_ROLES:
        problem = "is a name that traces keep for other roles; rename the model in the file"
        raise call.place.refusal("model", f"'{call.model}' {problem}")
    texts = (call.id, call.key, call.question, call.model, call.text, call.answer, call.group)
    for text in (*texts, *call.gold, call.system, call.history):
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            problem = "holds half a character (a lone surrogate); mend the text"
            raise call.place.refusal("row", problem) from None


def _refuse_contradiction(first: ImportedCall, call: ImportedCall, name: str) -> None:
    for what, before, now in (
        ("question", first.question or None, call.question or None),
        ("system prompt", first.system, call.system),
        ("conversation before the question", first.history, call.history),
        ("accepted answer", first.gold or None, call.gold or None),
        ("group", first.group or None, call.group or None),
        ("split", first.split or None, call.split or None),
        ("cluster", first.cluster, call.cluster),
        ("missing_because", first.missing_because, call.missing_because),
    ):
        if None not in (before, now) and before != now:
            problem = f"'{name}' has another {what} in {first.place}; one id is one question"
            raise call.place.refusal("id", problem)
