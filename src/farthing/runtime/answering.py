"""Many questions under a policy, with the models of a job: open, answer, close."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from farthing.bundle.base import Bundle
from farthing.runtime.answer import Answer
from farthing.runtime.job import Job
from farthing.runtime.journal import Journal, StoreJournal, only_writer
from farthing.runtime.meter import Meter
from farthing.runtime.orchestrator import Orchestrator
from farthing.tasks.base import Question
from farthing.traces.store import Store

SOURCE = "ask"
"""What a store calls the origin of what is asked here."""
NO_CAP = 2**62
"""Nano-dollars that nobody has: questions have budgets here, the store has none."""

Show = Callable[[Answer], None]
"""Is shown every answer."""
Doubt = Callable[[str], None]
"""Is told, before anything is paid, why the certificate will hold for no answer."""


@dataclass(frozen=True)
class Payment:
    """What questions may cost, and what was paid for them before."""

    budget_nano: int | None = None
    """The most that each may cost, in nano-dollars; None: no limit."""
    store: Path | None = None
    """The trace store whose journal is read and written: what it has is not paid again."""


NO_LIMIT = Payment()


def answer_all(
    job: Job,
    bundle: Bundle,
    questions: Sequence[Question],
    *,
    payment: Payment = NO_LIMIT,
    show: Show,
    doubt: Doubt,
) -> None:
    """Answer questions with the models of a job, many at a time; show the answers in order.

    Args:
        job: the agents and their models.
        bundle: the policy.
        questions: what is asked.
        payment: the most that each of them may cost, and the store that is written.
        show: is shown each answer.
        doubt: is told why the certificate holds for no answer.

    Raises:
        InputError: the bundle does not fit the agents, a key or a price is missing, or another
            process is writing the store.
    """
    with _journal(payment.store) as journal:
        asked = _Asked(job, bundle, journal, payment.budget_nano)
        asyncio.run(_answer_all(asked, questions, show, doubt))


@contextmanager
def _journal(store: Path | None) -> Iterator[StoreJournal | None]:
    if store is None:
        yield None
        return
    with only_writer(store), Store.open(store) as opened:
        yield StoreJournal(opened, NO_CAP, SOURCE)


@dataclass(frozen=True)
class _Asked:
    job: Job
    bundle: Bundle
    journal: Journal | None
    budget_nano: int | None

    @asynccontextmanager
    async def orchestrator(self) -> AsyncIterator[Orchestrator]:
        """Open the models while the block runs."""
        recording, closing = self.job.open()
        meter = Meter(self.journal, recording.parameters)
        try:
            yield Orchestrator(
                self.bundle,
                recording.plan,
                recording.task,
                meter,
                recording.escalation,
                self.job.system(),
            )
        finally:
            for one in closing:
                await one.aclose()


async def _answer_all(
    asked: _Asked, questions: Sequence[Question], show: Show, doubt: Doubt
) -> None:
    room = asyncio.Semaphore(asked.job.section.at_once)
    async with asked.orchestrator() as orchestrator:
        for clause in orchestrator.doubts:
            doubt(clause)

        async def answer(question: Question) -> Answer:
            async with room:
                return await orchestrator.answer(question, budget_nano=asked.budget_nano)

        tasks = [asyncio.ensure_future(answer(question)) for question in questions]
        try:
            for task in tasks:
                show(await task)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
