"""The shapes of a trace: the paper's, a pool, samples, a thought, or a controller's episode.

The paper's has base and guide in each round; a pool asks every model in round 1. Samples are calls
of one role alone, one a round, none of which saw another. A thought has one role as well, and each
round goes on from the one before: its cuts. An episode has the controller's own call in each round,
its turn, and beside it at most one call of an expert.

Roles `policy-NAME` and `exit-NAME` are no answers: they are replies of an LLM that was asked what
to do, and they may accompany either shape.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

from msgspec import structs

from farthing import plugins
from farthing.errors import UnknownNameError
from farthing.tasks.base import Particular, Task, is_answer
from farthing.traces.base import Call, Trace

Shape = Literal["paper", "pool", "samples", "thinking", "controlled"]
Problem = tuple[str, str]
"""The field that is wrong, and what is wrong with it and how to mend it."""

PROTOCOL_ROLES = ("base", "guide")
CONTROLLER = "controller"
"""The role that makes a trace an episode of a controller."""
REPLY_PREFIXES = ("policy-", "exit-")
_PAIR = frozenset(PROTOCOL_ROLES)
ANSWERING = "answering_usd"
"""Number of a call: of the price of a cut, what was paid for the answer there, in US dollars."""
READ_AGAIN = "read_again_usd"
"""Number of a call: of its price, what it took to read the thought so far again, in US dollars."""
OF_STOPPING = (ANSWERING, READ_AGAIN)


def is_reply(role: str) -> bool:
    """Return whether calls of this role say what to do instead of answering the question.

    >>> is_reply("policy-gpt-4o"), is_reply("exit-guide"), is_reply("guide")
    (True, True, False)
    """
    return role.startswith(REPLY_PREFIXES)


def replies_of(policy: object) -> str | None:
    """Return the role whose replies a policy goes by, or one that it wraps; None for nobody's."""
    role, inner = getattr(policy, "replies", None), getattr(policy, "inner", None)
    if isinstance(role, str):
        return role
    return None if inner is None else replies_of(inner)


def answering(trace: Trace) -> list[Call]:
    """Return the calls that answer the question, in the order of the file."""
    return [call for call in trace.calls if not is_reply(call.role)]


def cut_name(number: int) -> str:
    """Return the role that thinking up to a cut has, numbered from 1."""
    return f"cut-{number}"


def laid_out(trace: Trace) -> list[Call]:
    """Return the calls that answer the question where arrays hold them.

    The cuts of a thought are ways to answer that stand side by side, as the models of a pool do.
    """
    calls = answering(trace)
    if shape_of(trace) != "thinking":
        return calls
    return [structs.replace(call, round=1, role=cut_name(call.round)) for call in calls]


def shape_of(trace: Trace) -> Shape:
    """Return the shape of one trace: a controller makes it an episode, base or guide the paper's.

    Independent calls of one role alone are samples, where there are several rounds of them; and of
    base or guide also where there is one, unless more was to come. Others of one role are a
    thought, where there are several rounds of them, or one says whether the thought ended there.

    >>> calls = [Call(round=n, role="gpt-4o", answer="4", correct=True) for n in (1, 2)]
    >>> shape_of(Trace(id="q", calls=calls[:1])), shape_of(Trace(id="q", calls=calls))
    ('pool', 'thinking')
    >>> shape_of(Trace(id="q", calls=calls, independent=True))
    'samples'
    """
    roles = {call.role for call in trace.calls}
    if CONTROLLER in roles:
        return "controlled"
    in_pair = not _PAIR.isdisjoint(roles)
    if trace.independent and len(roles) == 1:
        later = any(call.round > 1 for call in trace.calls)
        if not trace.truncated if in_pair else later:
            return "samples"
    alone = len(roles) == 1 and not trace.independent and not is_reply(trace.calls[0].role)
    if alone and any(call.round > 1 or call.ended is not None for call in trace.calls):
        return "thinking"
    return "paper" if in_pair else "pool"


def rounds_of(trace: Trace) -> int:
    """Return the last round in which the question was answered."""
    return max(call.round for call in answering(trace))


def recorded_rounds(trace: Trace) -> int:
    """Return how many rounds, from the first, were recorded in full.

    A truncated pool has none: which models would have been asked next is not known. Of an episode
    all were, as far as it went. A thought is one round of cuts, if its end is known.
    """
    if shape_of(trace) == "thinking":
        return int(not trace.truncated)
    if not trace.truncated or shape_of(trace) in {"controlled", "samples"}:
        return rounds_of(trace)
    if shape_of(trace) == "pool":
        return 0
    present = {(call.round, call.role) for call in trace.calls}
    full = 0
    while all((full + 1, role) in present for role in PROTOCOL_ROLES):
        full += 1
    return full


@dataclass
class Checker:
    """Checks traces one after another, each by itself and against those before it.

    >>> call = Call(round=2, role="gpt-4o", answer="4", correct=True)
    >>> print(*Checker().problems(Trace(id="q", calls=[call]), line=1))
    (1, 'calls', 'cut 1 is missing; number the cuts of a thought from 1 on')
    """

    before: str = ""
    """What line 0 is: where the traces come from that were there before the file."""
    _ids: dict[str, int] = field(default_factory=dict)
    _shape: tuple[Shape, int] | None = None
    _complete: tuple[int, int] | None = None
    """Rounds and line of the first trace that must have as many rounds as any other."""
    _longest: tuple[int, int] = (0, 0)
    """Rounds and line of the longest trace that may have fewer."""

    @classmethod
    def after(cls, traces: Iterable[Trace], before: str) -> Self:
        """Return a checker of traces that are to stand beside others, which are sound.

        Args:
            traces: the others; they are read up to the first that cannot be shorter than others.
            before: what messages call them.
        """
        checker = cls(before)
        for trace in traces:
            checker._shape = (shape_of(trace), 0)
            if not _may_be_shorter(trace):
                checker._complete = (rounds_of(trace), 0)
                break
            checker._longest = max(checker._longest, (rounds_of(trace), 0))
        return checker

    def problems(self, trace: Trace, line: int) -> Iterator[tuple[int, str, str]]:
        """Yield (line, field, problem) for what is wrong with the next trace."""
        if trace.id in self._ids:
            yield line, "id", f"'{trace.id}' is that of line {self._ids[trace.id]}; ids are unique"
        self._ids[trace.id] = line
        found = list(trace_problems(trace))
        yield from ((line, where, problem) for where, problem in found)
        if not found:
            yield from self._against_others(trace, line)

    def _against_others(self, trace: Trace, line: int) -> Iterator[tuple[int, str, str]]:
        shape = shape_of(trace)
        self._shape = self._shape or (shape, line)
        if shape != self._shape[0]:
            yield line, "calls", self._other_shape(shape)
            return
        rounds = rounds_of(trace)
        if _may_be_shorter(trace):
            self._longest = max(self._longest, (rounds, line))
        else:
            self._complete = self._complete or (rounds, line)
            yield from self._fewer_rounds((rounds, line), self._complete)
        if self._complete:
            yield from self._fewer_rounds(self._complete, max(self._longest, (rounds, line)))

    def _other_shape(self, shape: Shape) -> str:
        first, line = self._shape or (shape, 0)
        said = f"have the shape '{shape}', but {self._at(line)} has '{first}'"
        if {shape, first} == {"pool", "thinking"}:
            said += " (of a thought with one cut, say whether it `ended` there)"
        return f"{said}; use one {'store' if line == 0 else 'file'} for each shape"

    def _fewer_rounds(
        self, ours: tuple[int, int], theirs: tuple[int, int]
    ) -> Iterator[tuple[int, str, str]]:
        if ours[0] >= theirs[0]:
            return
        if ours[1] == 0:
            problem = f"have {theirs[0]} rounds, but {self.before} has {ours[0]}; use another store"
            yield theirs[1], "calls", problem
        else:
            thought = (self._shape or ("",))[0] == "thinking"
            problem = (
                f"round {ours[0] + 1} is missing, but {self._at(theirs[1])} has it; "
                f"record it{', say `ended` of the last cut,' if thought else ''} "
                'or mark the trace "truncated": true'
            )
            yield ours[1], "calls", problem

    def _at(self, line: int) -> str:
        return f"line {line}" if line else self.before


def _may_be_shorter(trace: Trace) -> bool:
    return trace.truncated or any(call.ended for call in trace.calls)


def trace_problems(trace: Trace) -> Iterator[Problem]:
    """Yield what is wrong with one trace beyond the types and bounds of its fields."""
    if not answering(trace):
        yield "calls", "hold no answer to the question; record at least one call that answers it"
        return
    seen: dict[tuple[int, str], int] = {}
    for i, call in enumerate(trace.calls):
        first = seen.setdefault((call.round, call.role), i)
        if first != i:
            yield (
                f"calls[{i}].role",
                f"'{call.role}' answers round {call.round} already in calls[{first}]; keep one",
            )
    for i, call in enumerate(trace.calls):
        cost, largest = call.cost_usd, call.largest_cost_usd
        if cost is not None and largest is not None and largest < cost:
            yield (
                f"calls[{i}].largest_cost_usd",
                f"is {largest:g}, below cost_usd, {cost:g}; give the most that it could have cost",
            )
    # What keeps accepted answers from grading; a question may also have none at all.
    ungraded = (c for c in answering(trace) if c.correct is None and is_answer(c.answer))
    if trace.gold and any(ungraded):
        yield from gold_problems(trace)
    yield from _ended(trace)
    yield from _PROBLEMS[shape_of(trace)](trace)


def _ended(trace: Trace) -> Iterator[Problem]:
    thought, last = shape_of(trace) == "thinking", rounds_of(trace)
    for i, call in enumerate(trace.calls):
        if call.ended is not None and not thought:
            problem = "is said of the cuts of one thought, which have one role and saw one another"
            yield f"calls[{i}].ended", f"{problem}; leave it out"
        elif call.ended and (call.round < last or trace.truncated):
            goes_on = "later cuts follow" if call.round < last else "the trace is truncated"
            yield f"calls[{i}].ended", f"is true, but {goes_on}; keep one of the two"


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


def _pool_problems(trace: Trace) -> Iterator[Problem]:
    for i, call in enumerate(trace.calls):
        if call.round != 1:
            problem = 'a pool asks all in round 1; samples say "independent": true'
            yield f"calls[{i}].round", f"is {call.round}; {problem}"


def _sample_problems(trace: Trace) -> Iterator[Problem]:
    for number in _absent(trace, {call.round for call in trace.calls}):
        yield "calls", f"sample {number} is missing; number the rounds of samples from 1 on"


def _absent(trace: Trace, present: set[int]) -> list[int]:
    rounds = range(1, min(rounds_of(trace), len(trace.calls) + 1) + 1)
    return [number for number in rounds if number not in present]


def _thinking_problems(trace: Trace) -> Iterator[Problem]:
    for number in _absent(trace, {call.round for call in trace.calls}):
        yield "calls", f"cut {number} is missing; number the cuts of a thought from 1 on"
    for i, call in enumerate(trace.calls):
        parts = [call.extra[name] for name in OF_STOPPING if name in call.extra]
        cost = call.cost_usd
        most = math.inf if cost is None else cost * (1 + 1e-9)  # sums of floats are not exact
        if not all(0 <= part < math.inf for part in parts) or sum(parts) > most:
            problem = f"({' and '.join(OF_STOPPING)}) must be parts of `cost_usd`, at least 0"
            yield f"calls[{i}].extra", problem


def _paper_problems(trace: Trace) -> Iterator[Problem]:
    last = rounds_of(trace)
    for i, call in enumerate(trace.calls):
        if is_reply(call.role):
            if call.round > last:
                yield f"calls[{i}].round", f"is {call.round}; no answer was recorded in that round"
        elif call.role not in _PAIR:
            yield (
                f"calls[{i}].role",
                f"is '{call.role}'; beside base and guide only policy-NAME and exit-NAME may stand",
            )
    present = {(call.round, call.role) for call in trace.calls}
    for number in range(1, min(last, len(trace.calls) + 1) + 1):
        gone = [role for role in PROTOCOL_ROLES if (number, role) not in present]
        if gone and not (trace.truncated and (trace.independent or number == last)):
            yield (
                "calls",
                (
                    f"round {number} is missing its {' and its '.join(gone)}; record the call"
                    + ("" if trace.truncated else ' or mark the trace "truncated": true')
                ),
            )


def _controlled_problems(trace: Trace) -> Iterator[Problem]:
    asked: dict[int, int] = {}
    for i, call in enumerate(trace.calls):
        if call.role == CONTROLLER or is_reply(call.role):
            continue
        if (first := asked.setdefault(call.round, i)) != i:
            yield (
                f"calls[{i}].role",
                f"is '{call.role}', and calls[{first}] is an expert's of the same turn already",
            )
    for number in _absent(trace, {c.round for c in trace.calls if c.role == CONTROLLER}):
        yield "calls", f"round {number} is missing its {CONTROLLER}; record the call"


_PROBLEMS: dict[Shape, Callable[[Trace], Iterator[Problem]]] = {
    "paper": _paper_problems,
    "pool": _pool_problems,
    "samples": _sample_problems,
    "thinking": _thinking_problems,
    "controlled": _controlled_problems,
}
