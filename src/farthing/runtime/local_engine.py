"""A job in this process: open, collect, close; one Ctrl-C ends it in order, a second at once."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from farthing.budgets.base import Balance
from farthing.errors import BudgetError
from farthing.runtime.collector import Progress, collect, unrecorded
from farthing.runtime.dry_run import Estimate, estimate
from farthing.runtime.job import Job
from farthing.runtime.journal import StoreJournal, Unknown, only_writer
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question
from farthing.traces.store import Store
from farthing.traces.store_file import explained

INTERRUPTED = "interrupted"

Show = Callable[[Progress, Balance], None]
"""Is shown how far a collection is and where the money stands."""


def show_nothing(progress: Progress, balance: Balance) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Report:
    """How a collection ended."""

    progress: Progress
    balance: Balance
    earlier: int
    """Questions of the job that earlier runs had recorded."""
    unknown: list[Unknown]
    """Every try of unknown outcome that the store has seen; each was charged in full."""


def collect_locally(job: Job, path: Path, cap_nano: int, show: Show = show_nothing) -> Report:
    """Record a job's questions into a store, in this process.

    Args:
        job: what to record.
        path: the store; it is created where there is none.
        cap_nano: the most that may be spent in this store, earlier runs included.
        show: is shown the progress.

    Raises:
        InputError: the job or the store cannot be used, or another collection is writing it.
        AuthenticationError: a key is wrong.
        KeyboardInterrupt: Ctrl-C was pressed twice.
    """
    questions = job.questions()
    with only_writer(path), Store.open(path) as store, explained(path):
        store.made_with(job.system())
        journal = StoreJournal(store, cap_nano, source_of(job))
        progress = asyncio.run(_collect(job, questions, store, journal, show))
        earlier = len(questions) - progress.total
        return Report(progress, journal.balance(), earlier, journal.unknown())


async def _collect(
    job: Job, questions: list[Question], store: Store, journal: StoreJournal, show: Show
) -> Progress:
    recording, closing = job.open()
    meter = Meter(journal, recording.parameters)
    try:
        with _interrupts(meter):
            return await collect(
                unrecorded(questions, recording.plan, store.traces()),
                recording,
                journal,
                meter,
                at_once=job.section.at_once,
                watch=lambda progress: show(progress, journal.balance()),
            )
    finally:
        journal.flush()
        for one in closing:
            await one.aclose()


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


def price(job: Job, path: Path, cap_nano: int) -> tuple[Estimate, Balance]:
    """Say what a job would still cost, and what may be spent; nothing is asked.

    Raises:
        InputError: as `collect_locally`.
    """
    questions = job.questions()
    if not path.is_file():
        with Store.open(":memory:") as store:
            return _price(job, questions, store, cap_nano)
    with only_writer(path), Store.open(path) as store:
        return _price(job, questions, store, cap_nano)


def _price(
    job: Job, questions: list[Question], store: Store, cap_nano: int
) -> tuple[Estimate, Balance]:
    journal = StoreJournal(store, cap_nano, source_of(job))

    async def play() -> Estimate:
        recording, closing = job.open()
        todo = unrecorded(questions, recording.plan, store.traces())
        try:
            return await estimate(todo, recording, journal, journal.mean_cost_nano())
        finally:
            for one in closing:
                await one.aclose()

    return asyncio.run(play()), journal.balance()


def source_of(job: Job) -> str:
    """Return what the store calls the origin of a job's traces."""
    return f"collect {Path(job.file).name}"
