"""Collections and trainings on a Ray cluster: the results are those of one process.

Joins the cluster that `RAY_ADDRESS` names, else starts one here. Of a collection one actor, the
keeper, has the store. Each worker has its share of the questions, of the limits and of the money
that is left, and asks the keeper before and after every try. A training takes one core.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from farthing.budgets.ledger import Balance, MemoryLedger, Reservation
from farthing.errors import BudgetError, InputError, MissingExtraError, ModelError
from farthing.methods.base import Silent
from farthing.models.base import Completion
from farthing.recommendation.base import Event, Watch
from farthing.runtime.collect import (
    INTERRUPTED,
    CollectionProgress,
    Report,
    Show,
    collect,
    show_nothing,
    source_of,
)
from farthing.runtime.job import Job
from farthing.runtime.journal import (
    Entry,
    RecordedReply,
    StoreJournal,
    UnknownOutcome,
    exclusive_lock,
)
from farthing.runtime.meter import Meter
from farthing.runtime.unrecorded import unrecorded
from farthing.tasks.base import Question
from farthing.tasks.tools import ToolReply
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Trace
from farthing.traces.store import Store
from farthing.traces.system import System
from farthing_lab.comparison.parallel import OnResult, Result, Task, drop

_POLL_S = 0.2


def collect_on_ray(
    job: Job, path: Path, cap_nano: int, show: Show = show_nothing, *, workers: int = 2
) -> Report:
    """Record a job's questions into a store of this machine, on workers of a Ray cluster.

    The workers must see the job's files and keys. `cap_nano` is the most that may be spent in
    this store, earlier runs included.
    """
    ray = _cluster("collecting on Ray")
    questions = job.questions()
    keeper = ray.remote(Keeper).options(num_cpus=0).remote()
    try:
        opened = keeper.open.remote(str(path.absolute()), cap_nano, source_of(job), job.system())
        balance = _result_of(ray, opened)
        todo = asyncio.run(_unrecorded(job, questions, path))
        work = ray.remote(_work).options(num_cpus=0)
        cap = balance.left_nano // workers  # each takes its share of the money and of the limits
        parts = [
            work.remote(job, todo[k::workers], keeper, cap, (k, workers)) for k in range(workers)
        ]
        _watch(ray, keeper, parts, show)
        progress = _sum_of(_result_of(ray, part) for part in parts)
        balance, unknown = _result_of(ray, keeper.close.remote())
        return Report(progress, balance, len(questions) - len(todo), unknown)
    finally:
        ray.kill(keeper)


async def _unrecorded(job: Job, questions: list[Question], path: Path) -> list[Question]:
    recording, closing = job.open()
    try:
        with Store.open(path, create=False) as store:
            return unrecorded(questions, recording.protocol, store.traces())
    finally:
        for closable in closing:
            await closable.aclose()


def _watch(ray: Any, keeper: Any, parts: list[Any], show: Show) -> None:
    stopped = False  # the first Ctrl-C stops the workers in order
    waiting = parts
    while waiting:
        try:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_POLL_S)
            show(*ray.get(keeper.state.remote()))
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            keeper.stop.remote(INTERRUPTED)


class Keeper:
    """The one process that has the store open; every method runs in one thread."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._stopped: str | None = None
        self._progress: dict[int, CollectionProgress] = {}

    async def open(self, path: str, cap_nano: int, source: str, system: System) -> Balance:
        """Open the store; raises like `collect_locally`."""
        self._open.enter_context(exclusive_lock(path))
        self._store = self._open.enter_context(Store.open(path))
        self._store.made_with(system)
        self._journal = StoreJournal(self._store, cap_nano, source)
        return self._journal.balance()

    async def find(self, entry: Entry) -> RecordedReply:
        return await self._journal.find(entry)

    async def start(self, entry: Entry, largest_nano: int) -> int | str:
        if self._stopped is not None:
            return self._stopped
        try:
            return await self._journal.start(entry, largest_nano)
        except BudgetError as error:
            return str(error)

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        await self._journal.complete(number, reply, cost_nano)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        await self._journal.fail(number, error, cost_nano)

    async def keep(self, trace: Trace) -> None:
        await self._journal.keep(trace)

    async def report(self, worker: int, progress: CollectionProgress) -> None:
        self._progress[worker] = progress

    async def state(self) -> tuple[CollectionProgress, Balance]:
        return _sum_of(self._progress.values()), self._journal.balance()

    async def stop(self, why: str) -> None:
        self._stopped = why

    async def close(self) -> tuple[Balance, list[UnknownOutcome]]:
        """Close the store; return where the money stands, and the tries of unknown outcome."""
        self._journal.flush()
        end = self._journal.balance(), self._journal.unknown()
        self._open.close()
        return end


class RemoteJournal:
    """The keeper's journal as a worker sees it, and the worker's share of the money."""

    def __init__(self, keeper: Any, cap_nano: int) -> None:
        self._keeper = keeper
        self._ledger = MemoryLedger(cap_nano)
        self._open: dict[int, Reservation] = {}

    async def find(self, entry: Entry) -> RecordedReply:
        known: RecordedReply = await self._keeper.find.remote(entry)
        return known

    async def start(self, entry: Entry, largest_nano: int) -> int:
        held = self._ledger.reserve(largest_nano)
        number = await self._keeper.start.remote(entry, largest_nano)
        if isinstance(number, str):
            self._ledger.release(held)
            raise BudgetError(number)
        self._open[number] = held
        return int(number)

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        await self._keeper.complete.remote(number, reply, cost_nano)
        self._settle(number, cost_nano)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        await self._keeper.fail.remote(number, error, cost_nano)
        self._settle(number, cost_nano)

    async def keep(self, trace: Trace) -> None:
        await self._keeper.keep.remote(trace)

    def _settle(self, number: int, cost_nano: int | None) -> None:
        held = self._open.pop(number)
        self._ledger.settle(held, held.nano if cost_nano is None else cost_nano)


def _work(
    job: Job, questions: list[Question], keeper: Any, cap_nano: int, which: tuple[int, int]
) -> CollectionProgress:
    worker, workers = which

    async def run() -> CollectionProgress:
        journal = RemoteJournal(keeper, cap_nano)
        recording, closing = job.open(workers=workers)
        meter = Meter(journal, recording.parameters)
        try:
            return await collect(
                questions,
                recording,
                journal,
                meter,
                at_once=max(1, job.section.at_once // workers),
                watch=lambda progress: keeper.report.remote(worker, progress),
            )
        finally:
            for closable in closing:
                await closable.aclose()

    return asyncio.run(run())


def _sum_of(parts: Iterable[CollectionProgress]) -> CollectionProgress:
    return reduce(CollectionProgress.plus, parts, CollectionProgress(0))


def preload_on_ray(modules: Sequence[str], workers: int) -> None:
    """Join or start the cluster, and let workers begin to load modules; see `preload`."""
    load = _cluster("training on Ray").remote(num_cpus=1)(_load)
    for _ in range(workers):
        load.remote(list(modules))


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        with suppress(ImportError):  # whoever needs it will say so
            import_module(module)


def train_on_ray(
    jobs: Sequence[Task[Result]],
    train: TraceArrays,
    workers: int,
    watch: Watch,
    keep: OnResult[Result] = drop,
) -> list[Result | None]:
    """Run every job; see `parallel.train_all`. A training is reported when it is done."""
    ray = _cluster("training on Ray")
    shared, work = ray.put(train), ray.remote(max_retries=0, num_cpus=1)(_train)
    results: list[Result | None] = [None] * len(jobs)
    waiting, running = list(enumerate(jobs)), dict[Any, int]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                place, job = waiting.pop(0)
                running[work.remote(job, shared)] = place
            (done,), _ = ray.wait(list(running), num_returns=1)
            place = running.pop(done)
            result = results[place] = _result_of(ray, done)
            if result is not None:
                keep(place, result)
            watch(Event("train", jobs[place].name, 1, 1))
    except KeyboardInterrupt:
        pass  # what is whole is kept
    finally:
        for one in running:
            ray.cancel(one, force=True)
    return results


def _train(job: Task[Any], train: TraceArrays) -> Any:
    try:
        return job.run(train, Silent())
    except InputError as problem:  # its subclasses take more than a text, and cannot be sent
        raise InputError(str(problem)) from None


def _cluster(doing: str) -> Any:
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise MissingExtraError(doing, "ray", "farthing-lab") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    return ray


def _result_of(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
