"""A model that judges recorded answers: whether one is right, or says the same as another.

Every call goes through the meter, so it is budgeted, and found again in the journal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from farthing.errors import BudgetError, ConfigError, FarthingError, InputError
from farthing.models.base import Model, Prompt, Usage, longest
from farthing.models.config import ModelsConfig, read_models
from farthing.runtime.base import AgentReply, CountingClient, SpeakingAgent, Turn
from farthing.runtime.job import sent_mark
from farthing.runtime.journal import Attempt, StoreJournal, entry, exclusive_lock
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
UNREAD = 20
"""Replies after which a judge is asked no more, if it has said neither yes nor no in any."""
LETTERS_PER_TOKEN = 4
"""About so many letters make a token of what it reads."""
_WORDS = {True: "yes", False: "no", None: None}
_WORD = 2
"""Tokens of a yes or no."""


@dataclass(frozen=True)
class Judgement:
    """What a judge is asked, and what it said."""

    question: Question
    answer: str
    other: str | None = None
    """The answer that it is compared with; None: whether it is right is asked."""
    says: bool | None = None
    """Yes or no; None before it is asked, and where its reply is neither."""
    reply: str = ""
    """The whole reply, or why there is none."""


@dataclass(frozen=True)
class JudgeAgent(SpeakingAgent):
    """Says yes or no of the last answer of a turn, beside the one before it where there is one."""

    uses: ClassVar = ("right", "same")
    """The prompts that it fills."""

    model: Model
    prompts: PromptTemplates = BUILT_IN
    role: str = ROLE

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        *others, judged = [call.answer or "" for call in turn.so_far]
        other = others[-1] if others else None
        prompt = self.prompt(Judgement(turn.question, judged, other))
        completion = await client.ask(self.model, prompt)
        return AgentReply(completion.text, _WORDS[read_yes_or_no(completion.text)])

    def prompt(self, one: Judgement) -> Prompt:
        """Return what it is sent for a judgement."""
        quoted = {"question": one.question.text, "answer": one.answer}
        if one.other is None:
            messages = self.prompts["right"].fill(quoted)
        else:
            messages = self.prompts["same"].fill(quoted | {"other": one.other})
        return Prompt(messages, max_tokens=MOST_TOKENS)


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

        Returns:
            Why not all were asked; None: they were.

        Raises:
            InputError: none of its first replies is yes or no.
        """
        with exclusive_lock(self.journal), Store.open(self.journal) as store:
            return asyncio.run(self._ask(wanted, keep, store))

    def price_nano(
        self, wanted: Sequence[Judgement], expected: Sequence[tuple[Judgement, Judgement]]
    ) -> tuple[int, int]:
        """Return what judgements likely cost, and the most, in nano-dollars; nobody is asked.

        What the journal has costs nothing. What a judgement likely costs is what those so far cost
        on average; before the first, that of a word, or of a model that thinks the most.

        Args:
            wanted: those whose texts are known.
            expected: those whose answers are not there yet, as they likely are and at their
                longest.

        Raises:
            UnpricedModelError: nothing says what the judge costs.
        """

        async def play(store: Store) -> tuple[int, int]:
            async with self._opened(store) as (agent, journal):
                found = await _unpaid(wanted, agent, journal, self._mark)
                likely = [*found, *(agent.prompt(one) for one, _ in expected)]
                most = [*found, *(agent.prompt(one) for _, one in expected)]
                mean = journal.mean_cost_nano().get(ROLE)
                each = [self._likely_nano(agent.model, prompt) for prompt in likely]
                total = sum(each) if mean is None else round(mean * len(likely))
                return total, sum(map(agent.model.largest_cost_nano, most))

        if not self.journal.is_file():
            with Store.open(":memory:") as store:
                return asyncio.run(play(store))
        with exclusive_lock(self.journal), Store.open(self.journal) as store:
            return asyncio.run(play(store))

    def _likely_nano(self, model: Model, prompt: Prompt) -> int:
        price = self.config.sections[self.name].settings.price(self.config.prices)
        if price is None or longest(model, prompt).max_tokens > prompt.max_tokens:
            return model.largest_cost_nano(prompt)
        letters = sum(len(message.content) for message in prompt.messages)
        return price.cost_nano(Usage(letters // LETTERS_PER_TOKEN, _WORD), 1.0)

    async def _ask(
        self, wanted: Sequence[Judgement], keep: Callable[[Judgement], None], store: Store
    ) -> str | None:
        async with self._opened(store) as (agent, journal):
            meter = Meter(journal, {ROLE: self._mark})
            waiting, fatal, unread = iter(wanted), [], 0
            speaks = any(read_yes_or_no(text) is not None for text in journal.texts(ROLE))

            async def work() -> None:
                nonlocal unread, speaks
                for one in waiting:
                    try:
                        found = await judge(one, agent, meter)
                        speaks, unread = speaks or found.says is not None, unread + 1
                        if not speaks and unread >= UNREAD:
                            raise _silent(self.name, found)
                        keep_if_said(found, keep)
                    except FarthingError as error:
                        fatal.append(error)
                        meter.close(BudgetError(str(error)))
                        return

            await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(wanted)))))
        first = next(iter(fatal), None)
        if first is not None and not isinstance(first, BudgetError):
            raise first
        return None if first is None else str(first)

    @property
    def _mark(self) -> str:
        return sent_mark(self.config, self.name)

    @asynccontextmanager
    async def _opened(self, store: Store) -> AsyncIterator[tuple[JudgeAgent, StoreJournal]]:
        model = self.config.open()[self.name]
        journal = StoreJournal(store, self.cap_nano, ROLE)
        try:
            model.largest_cost_nano(Prompt(()))
            yield JudgeAgent(model), journal
        finally:
            journal.flush()
            await model.aclose()


async def judge(one: Judgement, agent: JudgeAgent, meter: Meter) -> Judgement:
    """Return a judgement with what the judge says."""
    said = [one.answer] if one.other is None else [one.other, one.answer]
    calls = [Call(round=1, role="answer", answer=text) for text in said]
    client = meter.client(one.question, 1, agent)
    reply = await agent.act(Turn(one.question, 1, calls), client)
    says = None if reply.answer is None else reply.answer == "yes"
    why = reply.error.message if reply.error else ""
    return replace(one, says=says, reply=reply.text or why)


async def _unpaid(
    wanted: Sequence[Judgement], agent: JudgeAgent, journal: StoreJournal, mark: str
) -> list[Prompt]:
    """Return what is sent for judgements of which a journal has no reply, each once."""
    found: dict[str, Prompt] = {}
    for one in wanted:
        prompt = agent.prompt(one)
        call = entry(Attempt(one.question.id, 1, ROLE, mark), agent.model.name, prompt, 0)
        if (await journal.find(call)).reply is None:
            found[call.key] = prompt
    return list(found.values())


def _silent(name: str, last: Judgement) -> InputError:
    said = (
        f"the last one: '{' '.join(last.reply.split())[:80]}'" if last.reply else "they are empty"
    )
    return InputError(
        f"none of the first {UNREAD} replies of the judge {name} is yes or no ({said}), so it is "
        "asked no more; name another judge, or for one that thinks how long (MODEL@low): a reply "
        f"has {MOST_TOKENS} tokens beside its thoughts"
    )


def keep_if_said(one: Judgement, keep: Callable[[Judgement], None]) -> None:
    """Keep a judgement that was made."""
    if one.says is not None:
        keep(one)
