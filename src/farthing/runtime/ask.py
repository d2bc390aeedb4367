"""Many questions under a policy, with the models of a job: open, answer, close."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.bundle.base import Bundle
from farthing.runtime.answer import Answer
from farthing.runtime.job import Job
from farthing.runtime.journal import StoreJournal, exclusive_lock
from farthing.runtime.meter import Meter
from farthing.runtime.runner import PolicyRunner
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

    async def answer(journal: StoreJournal | None) -> None:
        async with _opened(job, bundle, journal) as runner:
            for clause in runner.validity.invalid_because:
                doubt(clause)
            room, budget_nano = asyncio.Semaphore(job.section.at_once), payment.budget_nano
            await _in_order([_within(room, runner, q, budget_nano) for q in questions], show)

    with _journal(payment.store) as journal:
        asyncio.run(answer(journal))


@contextmanager
def _journal(store: Path | None) -> Iterator[StoreJournal | None]:
    if store is None:
        yield None
        return
    with exclusive_lock(store), Store.open(store) as opened:
        yield StoreJournal(opened, NO_CAP, SOURCE)


@asynccontextmanager
async def _opened(
    job: Job, bundle: Bundle, journal: StoreJournal | None
) -> AsyncIterator[PolicyRunner]:
    """Open the models of a job while the block runs."""
    recording, closing = job.open()
    meter = Meter(journal, recording.parameters)
    protocol, task, escalation = recording.protocol, recording.task, recording.escalation
    try:
        yield PolicyRunner(bundle, protocol, task, meter, escalation, job.system())
    finally:
        for closable in closing:
            await closable.aclose()


async def _within(
    room: asyncio.Semaphore, runner: PolicyRunner, question: Question, budget_nano: int | None
) -> Answer:
    async with room:
        return await runner.answer(question, budget_nano=budget_nano)


async def _in_order(answers: Sequence[Coroutine[Any, Any, Answer]], show: Show) -> None:
    """Wait for answers that are under way at the same time; show them in order."""
    tasks = [asyncio.ensure_future(answer) for answer in answers]
    try:
        for task in tasks:
            show(await task)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
