"""Run trainings side by side in worker processes: the same results in any number of them."""

import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import (
    current_process,
    forkserver,
    get_context,
    resource_tracker,
    set_forkserver_preload,
)
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event as Flag
from pathlib import Path
from typing import Any, Protocol, TypeVar

from farthing.errors import InputError
from farthing.methods.base import Fitted, Learner, Progress
from farthing.recommendation.base import Event, Watch
from farthing.recommendation.fitting import fit
from farthing.traces.arrays import TraceArrays

BETWEEN_REPORTS_S = 0.2
"""A worker reports at most this often."""


START = "forkserver" if sys.platform == "linux" else "spawn"
"""How processes start: on Linux as copies of one that has loaded everything and done nothing."""


UNGUARDED = (
    "a training process ended before its time: a script that trains must do so under "
    '`if __name__ == "__main__":`, or with one worker; if it does, look for a lack of memory'
)


Result = TypeVar("Result")


Result_co = TypeVar("Result_co", covariant=True)


OnResult = Callable[[int, Result], None]
"""Is handed each result as soon as it is there, with the place of its job."""


def drop(place: int, result: object) -> None:
    """Keep nothing."""


class Task(Protocol[Result_co]):
    """One piece of work on the training questions, whose result depends on nothing else."""

    @property
    def name(self) -> str:
        """What a progress display calls it."""
        ...

    @property
    def instant(self) -> bool:
        """Whether it takes no time, so that no process need be started for it."""
        ...

    def run(self, train: TraceArrays, progress: Progress) -> Result_co | None:
        """Do it; None where it was interrupted, for half a training is no result."""
        ...


@dataclass(frozen=True)
class Job:
    """One training."""

    name: str
    """What a progress display calls it."""
    learner: Learner
    alpha: Fraction
    seed: int
    instant: bool = False
    """Whether it takes no time, so that no process need be started for it."""

    def run(self, train: TraceArrays, progress: Progress) -> Fitted | None:
        fitted = fit(self.learner, train, self.alpha, self.seed, progress)
        return None if fitted.stopped_early else fitted


def preload(modules: Sequence[str], workers: int) -> None:  # noqa: ARG001 - one serves all
    """Let a process begin to load modules, of which workers will be copies.

    Loading PyTorch and scikit-learn takes longer than some trainings. So it is done once for all
    workers, and beside whatever this process does meanwhile. Where that cannot be done, workers
    load what they need themselves.
    """
    if START == "spawn" or _is_worker():
        return
    set_forkserver_preload(list(modules))
    resource_tracker.ensure_running()  # or the next line would be undone by it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()  # Ctrl-C is for this process alone
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_worker() -> bool:
    """Say whether this is a worker that is reading a script again, to know what is in it."""
    return getattr(current_process(), "_inheriting", False)


def train_all(
    jobs: Sequence[Task[Result]],
    train: TraceArrays,
    workers: int,
    watch: Watch,
    keep: OnResult[Result] = drop,
) -> list[Result | None]:
    """Run every job; each one's result depends on nothing but itself.

    Ctrl-C ends the trainings that are running and starts no more.

    Args:
        jobs: what to train.
        train: the questions to train on.
        workers: number of processes; 1 trains in this one.
        watch: is told how far each training is.
        keep: is handed each result as it comes.

    Returns:
        One for each job, None where it was interrupted: half a training is no result.
    """
    if workers <= 1 or sum(not job.instant for job in jobs) <= 1:
        return _here(jobs, train, watch, keep)
    return _in_processes(jobs, train, min(workers, len(jobs)), watch, keep)


class _Here:
    def __init__(self, name: str, watch: Watch) -> None:
        self._name, self._watch = name, watch

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        self._watch(Event("train", self._name, done, total, figures))


def _here(
    jobs: Sequence[Task[Result]], train: TraceArrays, watch: Watch, keep: OnResult[Result]
) -> list[Result | None]:
    results: list[Result | None] = [None] * len(jobs)
    try:
        for i, job in enumerate(jobs):
            result = results[i] = job.run(train, _Here(job.name, watch))
            if result is None:
                break
            keep(i, result)
    except KeyboardInterrupt:
        pass  # what is whole is kept
    return results


def _in_processes(
    jobs: Sequence[Task[Result]],
    train: TraceArrays,
    workers: int,
    watch: Watch,
    keep: OnResult[Result],
) -> list[Result | None]:
    if _is_worker():
        sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        # In a file, for whoever passes so much to a process that has died waits for ever.
        questions = Path(folder) / "train"
        questions.write_bytes(pickle.dumps(train))
        try:
            return _in_pool(jobs, questions, workers, watch, keep)
        except BrokenProcessPool:
            raise InputError(UNGUARDED) from None


def _in_pool(
    jobs: Sequence[Task[Result]],
    questions: Path,
    workers: int,
    watch: Watch,
    keep: OnResult[Result],
) -> list[Result | None]:
    context = get_context(START)
    events, stop = context.SimpleQueue(), context.Event()
    results: list[Result | None] = [None] * len(jobs)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(questions, events, stop)
    )
    try:
        pending: dict[Future[Result | None], int] = {
            pool.submit(_work, job): i for i, job in enumerate(jobs)
        }
        for future in _as_they_come(pending, events, watch):
            place, result = pending[future], future.result()
            results[place] = result
            if result is not None:
                keep(place, result)
    except KeyboardInterrupt:
        stop.set()
    finally:
        stop.set()  # also after an error: the other trainings are in vain
        pool.shutdown(cancel_futures=True)
    return results


def _as_they_come(
    pending: Mapping[Future[Result | None], int], events: "SimpleQueue[Event]", watch: Watch
) -> Iterator[Future[Result | None]]:
    running = set(pending)
    while running:
        done, running = wait(running, timeout=BETWEEN_REPORTS_S / 2, return_when=FIRST_COMPLETED)
        while not events.empty():
            watch(events.get())
        yield from done


_train: TraceArrays


_events: "SimpleQueue[Event]"


_stop: Flag


def _start(questions: Path, events: "SimpleQueue[Event]", stop: Flag) -> None:
    """Set a worker up: the parent alone hears Ctrl-C, and passes it on through `stop`."""
    global _train, _events, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    train = pickle.loads(questions.read_bytes())  # noqa: S301 - the parent wrote it just now
    _train, _events, _stop = train, events, stop


class _There:
    """Sends a learner's reports to the parent, and interrupts the learner when told to."""

    def __init__(self, name: str) -> None:
        self._name, self._last = name, 0.0

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        if _stop.is_set():
            raise KeyboardInterrupt
        now = time.monotonic()
        if done == total or now - self._last >= BETWEEN_REPORTS_S:
            self._last = now
            _events.put(Event("train", self._name, done, total, dict(figures)))


def _work(job: Task[Any]) -> Any:
    try:
        return job.run(_train, _There(job.name))
    except KeyboardInterrupt:
        return None
    except InputError as problem:  # its subclasses take more than a text, and cannot be sent
        raise InputError(str(problem)) from None
