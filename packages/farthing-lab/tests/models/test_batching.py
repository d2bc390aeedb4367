"""What waits together is worked on together; nobody's failure is another's."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from farthing_lab.models.local import BatchedJob, Batching

Batch = Sequence[BatchedJob[int, int]]


class Worker:
    """Doubles numbers, once it is let."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.free = threading.Event()
        self.started = threading.Event()
        self.do: Callable[[BatchedJob[int, int]], None] = lambda job: job.resolve(2 * job.asked)

    def __call__(self, batch: Batch) -> None:
        self.batches.append([job.asked for job in batch])
        self.started.set()
        assert self.free.wait(60)
        for job in batch:
            self.do(job)


def test_what_waits_goes_together_in_the_order_of_arrival() -> None:
    worker = Worker()

    async def ask() -> list[int]:
        batching = Batching(worker, 3)
        first = asyncio.create_task(batching.ask(1))
        await asyncio.to_thread(worker.started.wait)
        others = [asyncio.create_task(batching.ask(n)) for n in range(2, 8)]
        await asyncio.sleep(0)
        worker.free.set()
        return list(await asyncio.gather(first, *others))

    assert asyncio.run(ask()) == [2, 4, 6, 8, 10, 12, 14]
    assert worker.batches == [[1], [2, 3, 4], [5, 6, 7]]


def test_all_who_ask_at_one_moment_are_in_the_first_batch() -> None:
    worker = Worker()
    worker.free.set()

    async def ask() -> list[int]:
        batching = Batching(worker, 64)
        return list(await asyncio.gather(*(batching.ask(n) for n in range(10))))

    assert asyncio.run(ask()) == list(range(0, 20, 2))
    assert worker.batches == [list(range(10))]
    assert asyncio.run(ask()) == list(range(0, 20, 2)), "another loop, another worker"


def test_a_cancelled_caller_harms_nobody() -> None:
    worker = Worker()
    given_up: list[int] = []

    def work(batch: Batch) -> None:
        worker(batch)
        given_up.extend(job.asked for job in batch if job.given_up)

    async def ask() -> list[int]:
        batching = Batching(work, 8)
        tasks = [asyncio.create_task(batching.ask(n)) for n in range(3)]
        await asyncio.to_thread(worker.started.wait)
        waiting = [asyncio.create_task(batching.ask(n)) for n in (10, 11)]
        await asyncio.sleep(0)
        for task in (tasks[1], waiting[0]):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        worker.free.set()
        answers = [await tasks[0], await tasks[2], await waiting[1]]
        await batching.aclose()
        return answers

    assert asyncio.run(ask()) == [0, 4, 22]
    assert worker.batches == [[0, 1, 2], [11]], "who went away while waiting is never worked on"
    assert 1 in given_up


def test_a_failure_is_of_its_own_job_and_a_crash_of_all_that_are_left() -> None:
    worker = Worker()
    worker.free.set()

    def do(job: BatchedJob[int, int]) -> None:
        if job.asked == 1:
            job.fail(ValueError("not this one"))
        elif job.asked == 3:
            raise ZeroDivisionError("the worker broke")
        else:
            job.resolve(job.asked)

    worker.do = do

    async def ask() -> list[int | BaseException]:
        batching = Batching(worker, 8)
        found = await asyncio.gather(*(batching.ask(n) for n in range(5)), return_exceptions=True)
        return [*found, await batching.ask(7)]

    found = asyncio.run(ask())
    assert [type(f).__name__ if isinstance(f, Exception) else f for f in found] == [
        *(0, "ValueError", 2, "ZeroDivisionError", "ZeroDivisionError"),
        7,
    ]


def test_the_end_of_the_loop_gives_up_what_is_under_way() -> None:
    """Otherwise `asyncio.run` would wait for the thread to the end."""
    seen = threading.Event()

    def work(batch: Batch) -> None:
        for _ in range(1_000):
            if all(job.given_up for job in batch):
                seen.set()
                return
            threading.Event().wait(0.01)

    async def leave() -> None:
        batching: Batching[int, int] = Batching(work, 8)
        asyncio.create_task(batching.ask(1))  # noqa: RUF006 - left behind on purpose
        await asyncio.sleep(0.05)

    asyncio.run(leave())
    assert seen.is_set()
