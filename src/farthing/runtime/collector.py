"""Ask every question of a job, many at a time, and store each trace as it is finished."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from farthing.errors import AuthenticationError, BudgetError, FarthingError, InputError
from farthing.runtime.base import Agent
from farthing.runtime.journal import Journal
from farthing.runtime.meter import Meter
from farthing.runtime.rounds import Plan, may_succeed_later, record
from farthing.tasks.base import Question, Task
from farthing.traces.base import Call, Trace

AT_ONCE = 1_000
"""Questions under way at any moment."""
GARBAGE = 50_000
"""New objects, some hundred calls' worth, after which Python looks for unused cycles."""


@dataclass
class Progress:
    """How far a collection is."""

    total: int
    """Questions that were not in the store when it began."""
    done: int = 0
    """Questions whose traces it stored."""
    failed: dict[str, str] = field(default_factory=dict)
    """Question to the failure of one of its calls; asked again by the next run."""
    stopped: str | None = None
    """Why it ended early; None where it did not."""
    replies: Counter[str] = field(default_factory=Counter)
    """Role to its calls that did not fail."""
    unread: Counter[str] = field(default_factory=Counter)
    """Role to those of them whose reply could not be read."""
    examples: dict[str, str] = field(default_factory=dict)
    """Role to the first such reply; empty where it had no text."""

    def plus(self, other: "Progress") -> "Progress":
        """Return both parts of a collection as one."""
        return Progress(
            self.total + other.total,
            self.done + other.done,
            self.failed | other.failed,
            self.stopped or other.stopped,
            self.replies + other.replies,
            self.unread + other.unread,
            other.examples | self.examples,
        )

    def note(self, calls: Iterable[Call]) -> None:
        """Count the replies of a question, and those that say neither an answer nor a verdict."""
        for call in calls:
            if call.error is not None:
                continue
            self.replies[call.role] += 1
            if call.answer is None and call.verdict is None:
                self.unread[call.role] += 1
                self.examples.setdefault(call.role, call.text or "")

    @property
    def left(self) -> int:
        """Questions without a trace, the failed ones among them."""
        return self.total - self.done


@dataclass(frozen=True)
class Recording:
    """What is to be recorded of each question, and how its answers are compared."""

    plan: Plan
    task: Task
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Role to settings of its model that no prompt shows."""
    escalation: Agent | None = None
    """Who is asked where a policy abstains."""


Watch = Callable[[Progress], None]
"""Is shown the progress after every question."""


def unwatched(progress: Progress) -> None:
    """Show nothing."""


async def collect(
    questions: Sequence[Question],
    recording: Recording,
    journal: Journal,
    meter: Meter,
    *,
    at_once: int = AT_ONCE,
    watch: Watch = unwatched,
) -> Progress:
    """Record a trace of every question; return how it went.

    A question any call of which failed, and might succeed another time, is not stored but listed;
    what its other calls said is in the journal. When the meter closes, calls under way are brought
    to an end and no question is begun.

    Args:
        questions: those that are not in the store.
        recording: what to record.
        journal: log, ledger and store.
        meter: pays from that journal; closing it ends the collection.
        at_once: questions under way at any moment, and traces in memory.
        watch: is shown the progress.

    Raises:
        AuthenticationError: a key is wrong; calls under way were brought to an end first.
        InputError: a model has no price, or a trace cannot be stored.
    """
    run = _Run(iter(questions), recording, journal, meter, Progress(len(questions)), watch)
    with garbage_seldom():
        await asyncio.gather(*(run.work() for _ in range(min(at_once, len(questions)))))
    if run.fatal is not None:
        raise run.fatal
    run.progress.stopped = str(meter.closed) if meter.closed and run.progress.left else None
    return run.progress


@contextmanager
def garbage_seldom() -> Iterator[None]:
    """Look for garbage seldom: a thousand calls under way hold objects that are all in use."""
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass
class _Run:
    waiting: Iterator[Question]
    recording: Recording
    journal: Journal
    meter: Meter
    progress: Progress
    watch: Watch
    fatal: FarthingError | None = None

    async def work(self) -> None:
        """Take questions until there are none, or no call can be paid."""
        for question in self.waiting:
            try:
                await self._one(question)
            except BudgetError:
                return
            except (AuthenticationError, InputError) as error:
                self.fatal = self.fatal or error
                self.meter.close(BudgetError(str(error)))
                return
            self.watch(self.progress)

    async def _one(self, question: Question) -> None:
        recording = self.recording
        trace = await record(question, recording.plan, recording.task, self.meter.client)
        self.progress.note(trace.calls)
        failure = transient_failure(trace)
        if failure is None:
            await self.journal.keep(trace)
            self.progress.done += 1
        else:
            self.progress.failed[question.id] = failure


def transient_failure(trace: Trace) -> str | None:
    """Return what kept a question from being recorded; None where nothing did."""
    for call in trace.calls:
        if call.error is not None and may_succeed_later(call):
            return f"round {call.round}, {call.role}: {call.error.type}: {call.error.message}"
    return None


def unrecorded(
    questions: Sequence[Question], plan: Plan, stored: Iterable[Trace]
) -> list[Question]:
    """Return the questions that have no trace yet.

    Raises:
        InputError: the stored trace of a question has other calls than the plan makes.
    """
    ids = {question.id for question in questions}
    acts = sorted((number, agent.role) for number, agent in plan.acts())
    for trace in stored:
        if trace.id not in ids:
            continue
        ids.remove(trace.id)
        same = sorted((c.round, c.role) for c in trace.calls) == acts
        if not same or trace.independent != plan.independent:
            raise InputError(
                f"the store has question '{trace.id}' with other rounds, roles or another mode "
                "than this job records; collect into another store"
            )
    return [question for question in questions if question.id in ids]
