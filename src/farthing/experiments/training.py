"""Train many policies, side by side in worker processes: the same results in any number of them."""

import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import current_process, get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event as Flag
from pathlib import Path

from threadpoolctl import threadpool_limits

from farthing.algorithms.base import Fitted, Learner, Progress
from farthing.errors import InputError
from farthing.experiments.base import Event, Watch
from farthing.traces.arrays import TraceArrays

BETWEEN_REPORTS_S = 0.2
"""A worker reports at most this often."""

UNGUARDED = (
    "a training process ended before its time: a script that trains must do so under "
    '`if __name__ == "__main__":`, or with one worker; if it does, look for a lack of memory'
)


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


def fit(
    learner: Learner, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress
) -> Fitted:
    """Train on one core, whatever the machine has.

    Matrices here are small: more threads only wait for one another, and how sums are shared out
    among them would show in the last bits of a result.
    """
    with threadpool_limits(limits=1):
        return learner.fit(train, alpha, seed, progress)


def train_all(
    jobs: Sequence[Job], train: TraceArrays, workers: int, watch: Watch
) -> list[Fitted | None]:
    """Run every job; each one's result depends on nothing but itself.

    Ctrl-C ends the trainings that are running and starts no more.

    Args:
        jobs: what to train.
        train: the questions to train on.
        workers: number of processes; 1 trains in this one.
        watch: is told how far each training is.

    Returns:
        One for each job, None where it was interrupted: half a training is no result.

    Raises:
        InputError: a learner cannot learn from these questions, or a process ended before its
            time; the other trainings end.
    """
    if workers <= 1 or sum(not job.instant for job in jobs) <= 1:
        return _here(jobs, train, watch)
    return _in_processes(jobs, train, min(workers, len(jobs)), watch)


class _Here:
    """Passes a learner's reports straight on."""

    def __init__(self, name: str, watch: Watch) -> None:
        self._name, self._watch = name, watch

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        self._watch(Event("train", self._name, done, total, figures))


def _here(jobs: Sequence[Job], train: TraceArrays, watch: Watch) -> list[Fitted | None]:
    fitted: list[Fitted | None] = [None] * len(jobs)
    for i, job in enumerate(jobs):
        try:
            fitted[i] = _whole(fit(job.learner, train, job.alpha, job.seed, _Here(job.name, watch)))
        except KeyboardInterrupt:
            break
        if fitted[i] is None:
            break
    return fitted


def _in_processes(
    jobs: Sequence[Job], train: TraceArrays, workers: int, watch: Watch
) -> list[Fitted | None]:
    if getattr(current_process(), "_inheriting", False):  # a worker that runs the script again
        sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        # In a file, for whoever passes so much to a process that has died waits for ever.
        questions = Path(folder) / "train"
        questions.write_bytes(pickle.dumps(train))
        try:
            return _in_pool(jobs, questions, workers, watch)
        except BrokenProcessPool:
            raise InputError(UNGUARDED) from None


def _in_pool(
    jobs: Sequence[Job], questions: Path, workers: int, watch: Watch
) -> list[Fitted | None]:
    context = get_context("spawn")
    events, stop = context.SimpleQueue(), context.Event()
    fitted: list[Fitted | None] = [None] * len(jobs)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(questions, events, stop)
    )
    try:
        pending = {pool.submit(_fit, job): i for i, job in enumerate(jobs)}
        for future in _as_they_come(pending, events, watch):
            fitted[pending[future]] = future.result()
    except KeyboardInterrupt:
        stop.set()
    finally:
        stop.set()  # also after an error: the other trainings are in vain
        pool.shutdown(cancel_futures=True)
    return fitted


def _as_they_come(
    pending: Mapping[Future[Fitted | None], int], events: "SimpleQueue[Event]", watch: Watch
) -> Iterator[Future[Fitted | None]]:
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


def _fit(job: Job) -> Fitted | None:
    try:
        return _whole(fit(job.learner, _train, job.alpha, job.seed, _There(job.name)))
    except KeyboardInterrupt:
        return None
    except InputError as problem:  # its subclasses take more than a text, and cannot be sent
        raise InputError(str(problem)) from None


def _whole(fitted: Fitted) -> Fitted | None:
    return None if fitted.stopped_early else fitted
