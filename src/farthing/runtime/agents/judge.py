"""A model that judges recorded answers: whether one is right, or says the same as another.

Every call goes through the meter, so it is budgeted, and found again in the journal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from farthing.errors import BudgetError, ConfigError, FarthingError
from farthing.models.base import Model, Prompt
from farthing.models.config import ModelsConfig, read_models
from farthing.runtime.base import AgentReply, Client, CountingClient, Turn, recorded
from farthing.runtime.job import sent_mark
from farthing.runtime.journal import StoreJournal, exclusive_lock
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question
from farthing.tasks.replies import read_yes_or_no
from farthing.tasks.templates import BUILT_IN, PromptTemplates
from farthing.traces.base import Call
from farthing.traces.store import Store

ROLE = "judge"
AT_ONCE = 16
MOST_TOKENS = 16
"""Of its reply, which is a word."""
_WORDS = {True: "yes", False: "no", None: None}


@dataclass(frozen=True)
class Judgement:
    """What a judge is asked, and what it said."""

    question: Question
    answer: str
    other: str | None = None
    """The answer that it is compared with; None: whether it is right is asked."""
    says: bool | None = None
    """Yes or no; None before it is asked, and where its reply is neither."""


@dataclass(frozen=True)
class JudgeAgent:
    """Says yes or no of the last answer of a turn, beside the one before it where there is one."""

    uses: ClassVar = ("right", "same")
    """The prompts that it fills."""

    model: Model
    prompts: PromptTemplates = BUILT_IN
    role: str = ROLE

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the reply, `answer` yes or no; None where it is neither."""
        return await recorded(self, turn, client, self._speak)

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        *others, judged = [call.answer for call in turn.so_far]
        quoted = {"question": turn.question.text, "answer": judged}
        if others:
            messages = self.prompts["same"].fill(quoted | {"other": others[-1]})
        else:
            messages = self.prompts["right"].fill(quoted)
        completion = await client.ask(self.model, Prompt(messages, max_tokens=MOST_TOKENS))
        return AgentReply(completion.text, _WORDS[read_yes_or_no(completion.text)])


@dataclass(frozen=True)
class Judge:
    """A model of a configuration, and what may be paid for it."""

    config: ModelsConfig
    name: str
    """A section `[models.NAME]`."""
    journal: Path
    """The store whose journal is read and written: what it has is not paid again."""
    cap_nano: int
    """The most that may be spent in that store, in nano-dollars, earlier runs included."""

    @classmethod
    def read(cls, file: Path, name: str, journal: Path, cap_nano: int) -> "Judge":
        """Read the judge of a configuration; no model is opened."""
        config = read_models(file)
        if name not in config.sections:
            known = ", ".join(sorted(config.sections)) or "none"
            raise ConfigError(str(file), f"models.{name}", f"is missing; there are {known}")
        return cls(replace(config, sections={name: config.sections[name]}), name, journal, cap_nano)

    def ask(self, wanted: Sequence[Judgement], keep: Callable[[Judgement], None]) -> str | None:
        """Have the judge say yes or no; each yes or no is kept at once.

        Return why not all were asked; None: they were.
        """
        with exclusive_lock(self.journal), Store.open(self.journal) as store:
            return asyncio.run(self._ask(wanted, keep, store))

    async def _ask(
        self, wanted: Sequence[Judgement], keep: Callable[[Judgement], None], store: Store
    ) -> str | None:
        async with self._opened(store) as (agent, meter):
            waiting, fatal = iter(wanted), []

            async def work() -> None:
                for one in waiting:
                    try:
                        keep_if_said(await judge(one, agent, meter), keep)
                    except FarthingError as error:
                        fatal.append(error)
                        meter.close(BudgetError(str(error)))
                        return

            await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(wanted)))))
        first = next(iter(fatal), None)
        if first is not None and not isinstance(first, BudgetError):
            raise first
        return None if first is None else str(first)

    @asynccontextmanager
    async def _opened(self, store: Store) -> AsyncIterator[tuple[JudgeAgent, Meter]]:
        model = self.config.open()[self.name]
        journal = StoreJournal(store, self.cap_nano, ROLE)
        try:
            model.largest_cost_nano(Prompt(()))
            yield JudgeAgent(model), Meter(journal, {ROLE: sent_mark(self.config, self.name)})
        finally:
            journal.flush()
            await model.aclose()


async def judge(one: Judgement, agent: JudgeAgent, meter: Meter) -> Judgement:
    """Return a judgement with what the judge says."""
    said = [one.answer] if one.other is None else [one.other, one.answer]
    calls = [Call(round=1, role="answer", answer=text) for text in said]
    client = meter.client(one.question, 1, agent)
    reply = await agent.act(Turn(one.question, 1, calls), client)
    return replace(one, says=None if reply.answer is None else reply.answer == "yes")


def keep_if_said(one: Judgement, keep: Callable[[Judgement], None]) -> None:
    """Keep a judgement that was made."""
    if one.says is not None:
        keep(one)
