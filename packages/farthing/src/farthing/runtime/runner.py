"""Answer questions under a trained policy: buy calls until it says stop, and say what is promised.

After each step, a round or a single call, the policy scores what is known as a replay would, so
that it decides live as it was calibrated. `answer_all` answers many with the models of a job.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np

from farthing import plugins
from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.models.base import MAX_TOKENS, Model
from farthing.runtime.agents.base import AgentParts, BaseAgent, PlainAgent
from farthing.runtime.answer import Answer
from farthing.runtime.base import Agent
from farthing.runtime.call_plan import CallPlan, by_call, call_plan
from farthing.runtime.job import Job
from farthing.runtime.journal import StoreJournal, exclusive_lock
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Dialogue, Independent, Protocol, apart
from farthing.runtime.run import QuestionRun
from farthing.runtime.system import system_of
from farthing.runtime.validity import Validity, validity_of
from farthing.tasks.base import Question, Task
from farthing.tasks.templates import BUILT_IN
from farthing.traces.store import Store
from farthing.traces.system import ALONE, LIMIT, LOGGED, SentRequest, System, prompt_mark
from farthing.traces.trace_kind import PROTOCOL_ROLES


@dataclass(frozen=True)
class PolicyRunner:
    """A bundle, the agents it decides about, and the task; safe to ask many things at once."""

    bundle: Bundle
    protocol: Protocol
    """The agents, as their traces were collected; its number of rounds is the bundle's."""
    task: Task
    meter: Meter = field(default_factory=Meter)
    """Pays for every try; with a journal, nothing is paid twice."""
    escalation: Agent | None = None
    """Answers by itself where the policy abstains; nothing is promised of what it says. Left out
    where the bundle promises to pass questions on: it names whom, among the agents."""
    system: System | None = None
    """What the agents are, prices and parameters included; none: what they say of themselves."""

    validity: Validity = field(init=False, repr=False)
    """Whether the bundle's certificate can hold for an answer of these agents."""
    _plan: CallPlan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse agents that the policy was not trained for, before anything is paid."""
        plan = call_plan(self.bundle, self.protocol, self.escalation)
        ours = system_of(self.protocol) if self.system is None else self.system
        object.__setattr__(self, "_plan", plan)
        object.__setattr__(self, "validity", validity_of(plan, ours))

    @classmethod
    def with_models(
        cls, bundle: Bundle, models: Mapping[str, Model], task: Task, system: str = ""
    ) -> Self:
        """Return a runner whose agents are as plain as can be.

        Models of a pool whose log shows that questions were sent alone, or after just this system
        prompt, are sent them likewise.

        Args:
            bundle: the policy.
            models: who fills each role: `base` and `guide`, of the paper's dialogue or, where the
                policy buys single calls, each by itself; else the models of a pool, by the names
                that they have in its traces.
            task: says when two answers are the same.
            system: the system prompt of the log.

        Raises:
            InputError: the log shows another system prompt, or more than that, or is of base and
                guide.
        """
        if models.keys() != set(PROTOCOL_ROLES):
            if system and not all(_sent_after(bundle, name, system) for name in models):
                raise InputError(
                    "system: the requests of this bundle's traces were not questions after just "
                    "this system prompt; give the one of the log, or leave it out"
                )
            pool = tuple(
                _as_recorded(bundle, name, model, system) for name, model in models.items()
            )
            return cls(bundle, Independent(pool, 1, task), task)
        if system:
            raise InputError(
                "system: base and guide have prompts of their own, and no system prompt of a log; "
                "leave it out"
            )
        rounds, base = bundle.origin.horizon, BaseAgent(models["base"])
        if by_call(bundle.policy):
            alone = apart((base, BaseAgent(models["guide"], role="guide")))
            return cls(bundle, Independent(alone, rounds, task), task)
        section = plugins.load("sections", "guide")(model="guide")
        guide = section.agent("guide", AgentParts(models, BUILT_IN))
        return cls(bundle, Dialogue((base, guide), rounds), task)

    async def answer(
        self,
        question: Question,
        *,
        budget_nano: int | None = None,
        rng: np.random.Generator | None = None,
        meter: Meter | None = None,
    ) -> Answer:
        """Answer one question.

        A call that failed is part of the trace, as no answer, and the policy decides about it. A
        wrong key and a spent budget end the question with what there is. The policy is shown what
        is left of the budget, and may buy only steps, rounds or calls, whose largest possible cost
        fits it. Where none does, and it would have gone on, the set is what the steps so far give:
        at least their best answer.

        Args:
            question: what is asked; `gold` may be empty.
            budget_nano: the most that may be paid for it, in nano-dollars; none: no limit.
            rng: draws the actions of a policy without a threshold; by default the question's id
                is its seed.
            meter: pays for this question; none: the runner's.
        """
        rng = rng or np.random.default_rng(crc32(question.id.encode(errors="surrogatepass")))
        plan, task = self._plan, self.task
        run = QuestionRun(
            plan, self.validity, task, question, meter or self.meter, rng, budget_nano
        )
        return await run.play()


def _sent_after(bundle: Bundle, role: str, system: str) -> SentRequest | None:
    """Return what a log shows of a role's requests: just the question, after this system prompt."""
    part = (bundle.origin.system or {}).get(role)
    sent = None if part is None or part.kind != LOGGED else part.sent
    if sent is None or sent.around != ALONE or sent.system != (prompt_mark(system),):
        return None
    return sent


def _as_recorded(bundle: Bundle, role: str, model: Model, system: str) -> Agent:
    sent = _sent_after(bundle, role, system)
    if sent is None:
        return BaseAgent(model, role=role)
    parameters = sent.parameters or {}
    most, temperature = parameters.get(LIMIT), parameters.get("temperature")
    return PlainAgent(
        model,
        role,
        max_tokens=most if isinstance(most, int) else MAX_TOKENS,
        temperature=1.0 if not isinstance(temperature, int | float) else float(temperature),
        system=system,
    )


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
    """

    async def answer(journal: StoreJournal | None) -> None:
        async with _opened(job, bundle, journal) as runner:
            for clause in runner.validity.invalid_because:
                doubt(clause)
            room = asyncio.Semaphore(job.section.at_once)

            async def within(question: Question) -> Answer:
                async with room:
                    return await runner.answer(question, budget_nano=payment.budget_nano)

            await _in_order([within(question) for question in questions], show)

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
    recording, closing = job.open()
    meter = Meter(journal, recording.parameters)
    protocol, task, escalation = recording.protocol, recording.task, recording.escalation
    try:
        yield PolicyRunner(bundle, protocol, task, meter, escalation, job.system())
    finally:
        for closable in closing:
            await closable.aclose()


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
