"""Ask every question of a job, many at a time, and store each trace as it is finished.

One Ctrl-C ends a collection in order, a second one at once.
"""

import asyncio
import gc
import signal
import threading
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from farthing.budgets.ledger import Balance
from farthing.errors import AuthenticationError, BudgetError, FarthingError, InputError
from farthing.runtime.base import Closable
from farthing.runtime.dry_run import JobEstimate, estimate
from farthing.runtime.job import AT_ONCE
from farthing.runtime.journal import (
    FailedTries,
    Journal,
    StoreJournal,
    UnknownOutcome,
    exclusive_lock,
)
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import (
    RecordingPlan,
    may_succeed_later,
    trace_of,
    transient_failure,
)
from farthing.runtime.refusals import Refusals, refuses
from farthing.runtime.unrecorded import lacking
from farthing.tasks.base import Question
from farthing.traces.base import Call, Trace
from farthing.traces.store import Store, explained
from farthing.traces.system import System

GARBAGE = 50_000
"""New objects, some hundred calls' worth, after which Python looks for unused cycles."""
INTERRUPTED = "interrupted"
"""Why a collection ended that Ctrl-C stopped."""
HOPELESS = 25
"""Questions after which a collection stops if none was recorded, or no reply of a role is read."""


class Collectable(typing.Protocol):
    """What can be collected: a job, or a log that is asked again."""

    @property
    def file(self) -> str:
        """Its name, for messages."""
        ...

    @property
    def at_once(self) -> int:
        """Questions under way at any moment, at most."""
        ...

    def questions(self) -> list[Question]:
        """Return what is asked."""
        ...

    def open(self, *, workers: int = 1) -> tuple[RecordingPlan, list[Closable]]:
        """Open what answers; return what is to be recorded, and what to close afterwards."""
        ...

    def system(self) -> System | None:
        """Return what its traces are made with; None where each of them says so itself."""
        ...

    def likely_nano(self) -> Mapping[str, float]:
        """Return what a call of a role is likely to cost, where something says so."""
        ...


@dataclass
class CollectionProgress:
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
    unanswered: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Role and kind of failure to the calls that were recorded without an answer for it."""

    def plus(self, other: "CollectionProgress") -> "CollectionProgress":
        """Return both parts of a collection as one."""
        return CollectionProgress(
            self.total + other.total,
            self.done + other.done,
            self.failed | other.failed,
            self.stopped or other.stopped,
            self.replies + other.replies,
            self.unread + other.unread,
            other.examples | self.examples,
            self.unanswered + other.unanswered,
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
    def hopeless(self) -> str | None:
        """Why going on would be money for nothing; None while it is not."""
        if len(self.failed) >= HOPELESS and not self.done:
            return f"all of the first {len(self.failed)} questions failed"
        for role, replies in self.replies.items():
            if replies >= HOPELESS and self.unread[role] == replies:
                example = " ".join(self.examples[role].split())[:50]
                first = f"the first of them {example!r}" if example else "all empty or blank"
                return f"none of {role}'s {replies} replies can be read, {first}"
        return None

    @property
    def left(self) -> int:
        """Questions without a trace, the failed ones among them."""
        return self.total - self.done


Watch = Callable[[CollectionProgress], None]
"""Is shown the progress after every question."""


def unwatched(progress: CollectionProgress) -> None:
    """Show nothing."""


async def collect(
    questions: Sequence[Question],
    recording: RecordingPlan,
    journal: Journal,
    meter: Meter,
    *,
    at_once: int = AT_ONCE,
    watch: Watch = unwatched,
    earlier: Mapping[str, Trace] | None = None,
) -> CollectionProgress:
    """Record a trace of every question that is not in the store; return how it went.

    A question any call of which failed, and might succeed another time, is not stored but listed;
    what its other calls said is in the journal, from which the meter pays. When the meter closes,
    calls under way are brought to an end and no question is begun. At most `at_once` questions are
    under way at any moment, and so many traces in memory. `earlier` has what the store holds of
    questions that get more calls. Where nothing succeeds, or nothing can be read, it stops. What is
    refused by a role that answers others is recorded at the end.
    """
    progress = CollectionProgress(len(questions))
    refusals = Refusals()
    todo = iter(questions)
    run = _Collection(todo, recording, journal, meter, progress, watch, earlier or {}, refusals)
    with garbage_seldom():
        await asyncio.gather(*(run.work() for _ in range(min(at_once, len(questions)))))
    if run.fatal is not None:
        raise run.fatal
    for trace in refusals.results():
        await run.keep(trace)
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
class _Collection:
    waiting: Iterator[Question]
    recording: RecordingPlan
    journal: Journal
    meter: Meter
    progress: CollectionProgress
    watch: Watch
    earlier: Mapping[str, Trace]
    refusals: Refusals
    fatal: FarthingError | None = None

    async def work(self) -> None:
        """Take questions until there are none, or no call can be paid."""
        gate = self.recording.gate or nullcontext()
        while self.meter.closed is None:
            try:
                async with gate:
                    question = next(self.waiting, None)
                    if question is None or self.meter.closed is not None:
                        return
                    await self._one(question)
            except BudgetError:
                return
            except (AuthenticationError, InputError) as error:
                self.fatal = self.fatal or error
                self.meter.close(BudgetError(str(error)))
                return
            self.watch(self.progress)
            unreached = self.recording.gate and self.recording.gate.dead(self.progress.failed)
            hopeless = unreached or self.progress.hopeless or self.refusals.hopeless
            if hopeless is not None:
                self.meter.close(BudgetError(hopeless))

    async def _one(self, question: Question) -> None:
        protocol, task = self.recording.protocol, self.recording.task
        calls = await protocol.calls(question, self.meter.client)
        trace = trace_of(question, task, calls, independent=protocol.independent)
        self.progress.note(trace.calls)
        self.refusals.note(trace.calls)
        failure = transient_failure(trace)
        if failure is None:
            await self.keep(trace)
            return
        self.progress.failed[question.id] = failure
        if protocol.independent and all(map(refuses, filter(may_succeed_later, calls))):
            self.refusals.waiting.append(trace)

    async def keep(self, trace: Trace) -> None:
        finish, before = self.recording.stored, self.earlier.get(trace.id)
        await self.journal.keep(trace if finish is None else finish(trace, before))
        self.progress.done += 1
        self.progress.failed.pop(trace.id, None)
        self.progress.unanswered.update((c.role, c.error.type) for c in trace.calls if c.error)


Show = Callable[[CollectionProgress, Balance], None]
"""Is shown how far a collection is and where the money stands."""


def show_nothing(progress: CollectionProgress, balance: Balance) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Report:
    """How a collection ended."""

    progress: CollectionProgress
    balance: Balance
    earlier: int
    """Questions of the job that earlier runs had recorded."""
    unknown: list[UnknownOutcome]
    """Every try of unknown outcome that the store has seen; each was charged in full."""
    failures: list[FailedTries] = field(default_factory=list)
    """The failed tries of the store, by role and kind, with what they count as."""


def collect_locally(
    job: Collectable, path: Path, cap_nano: int, show: Show = show_nothing
) -> Report:
    """Record a job's questions into a store, in this process; it is made where there is none.

    `cap_nano` is the most that may be spent in this store, earlier runs included.
    """
    questions = job.questions()
    with exclusive_lock(path), Store.open(path) as store, explained(path):
        if (system := job.system()) is not None:
            store.made_with(system)
        journal = StoreJournal(store, cap_nano, source_of(job))
        progress = asyncio.run(_collect(job, questions, store, journal, show))
        earlier = len(questions) - progress.total
        unknown, failures = journal.unknown(), journal.failures()
        return Report(progress, journal.balance(), earlier, unknown, failures)


async def _collect(
    job: Collectable, questions: list[Question], store: Store, journal: StoreJournal, show: Show
) -> CollectionProgress:
    recording, closing = job.open()
    meter = Meter(journal, recording.parameters)
    try:
        todo, earlier = lacking(questions, recording, store)
        with _interrupts(meter):
            return await collect(
                todo,
                recording,
                journal,
                meter,
                at_once=job.at_once,
                watch=lambda progress: show(progress, journal.balance()),
                earlier=earlier,
            )
    finally:
        journal.flush()
        for closable in closing:
            await closable.aclose()


@contextmanager
def _interrupts(meter: Meter) -> Iterator[None]:
    """Let the first Ctrl-C close the meter and the second end everything."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        loop.call_soon_threadsafe(meter.close, BudgetError(INTERRUPTED))

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def price(job: Collectable, path: Path, cap_nano: int) -> tuple[JobEstimate, Balance]:
    """Say what a job would still cost, and what may be spent; nothing is asked."""
    questions = job.questions()
    if not path.is_file():
        with Store.open(":memory:") as store:
            return _price(job, questions, store, cap_nano)
    with exclusive_lock(path), Store.open(path) as store:
        return _price(job, questions, store, cap_nano)


def _price(
    job: Collectable, questions: list[Question], store: Store, cap_nano: int
) -> tuple[JobEstimate, Balance]:
    journal = StoreJournal(store, cap_nano, source_of(job))

    async def play() -> JobEstimate:
        recording, closing = job.open()
        todo, _ = lacking(questions, recording, store)
        try:
            likely = {**job.likely_nano(), **journal.mean_cost_nano()}
            return await estimate(todo, recording, journal, likely)
        finally:
            for closable in closing:
                await closable.aclose()

    return asyncio.run(play()), journal.balance()


def source_of(job: Collectable) -> str:
    """Return what the store calls the origin of a job's traces."""
    return f"collect {Path(job.file).name}"
