"""Dynamic batching: what waits while a worker is busy goes together into its next batch."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class BatchedJob(Generic[Asked, Answered]):
    """Something that was asked, and what waits for its answer."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.given_up = False
        """Whoever asked waits no longer: the worker need not finish it."""
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Answered] = self._loop.create_future()

    def resolve(self, answer: Answered) -> None:
        """Hand over the answer, from any thread; a second one counts for nothing."""
        self._loop.call_soon_threadsafe(self._settle, lambda: self.answer.set_result(answer))

    def fail(self, error: Exception) -> None:
        """Hand over a failure in place of it."""
        self._loop.call_soon_threadsafe(self._settle, lambda: self.answer.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        if not self.answer.done():
            settle()


class Batching(Generic[Asked, Answered]):
    """Calls `work` in a thread, with one batch after another, in the order of arrival.

    Args:
        work: resolves each job of a batch, one by one as it has them; what it raises fails those
            that are left. It looks at `given_up` now and then.
        most: jobs in a batch at most.
    """

    def __init__(
        self, work: Callable[[Sequence[BatchedJob[Asked, Answered]]], None], most: int
    ) -> None:
        self._work = work
        self._most = most
        self._waiting: list[BatchedJob[Asked, Answered]] = []
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, what: Asked) -> Answered:
        """Wait for a place in a batch, and for the answer; cancelling gives up this job alone."""
        job: BatchedJob[Asked, Answered] = BatchedJob(what)
        self._waiting.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._serve())
        try:
            return await job.answer
        finally:
            job.given_up = True

    async def aclose(self) -> None:
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    async def _serve(self) -> None:
        # All who ask at one moment have come before this task first runs.
        while batch := self._next():
            try:
                await asyncio.to_thread(self._attend, batch)
            finally:
                for job in batch:
                    job.given_up = True

    def _next(self) -> list[BatchedJob[Asked, Answered]]:
        waiting = [job for job in self._waiting if not job.given_up]
        batch, self._waiting = waiting[: self._most], waiting[self._most :]
        return batch

    def _attend(self, batch: Sequence[BatchedJob[Asked, Answered]]) -> None:
        try:
            self._work(batch)
        except Exception as error:  # noqa: BLE001 - those who asked get it
            for job in batch:
                job.fail(error)
