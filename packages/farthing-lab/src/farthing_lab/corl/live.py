"""Answer questions under a controller live: models write, and the meter pays.

The steps are those of `corl.episode`. Every call goes through the meter, so that what the journal
knows is not paid again, and becomes a call of an ordinary trace: the role `controller`, or the
expert's name, in the round of its turn.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import structs

from farthing.budgets.ledger import MemoryLedger
from farthing.errors import AuthenticationError, BudgetError, InputError, ModelError
from farthing.models.base import MAX_TOKENS, Message, Model, Prompt, Usage
from farthing.money import nano_from_usd, usd_from_nano
from farthing.runtime.agents.base import PlainAgent
from farthing.runtime.base import Agent, AgentReply, CountingClient, SpeakingAgent, Turn
from farthing.runtime.meter import CALLED, Meter, QuestionBudget
from farthing.runtime.protocol import cost_bound, trace_of
from farthing.tasks.base import Question, Task
from farthing.tasks.templates import asked
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import MadeCall, Mode
from farthing_lab.corl.episode import (
    STOPS,
    ControllerTurn,
    Episode,
    FinalAnswer,
    Rules,
    begin,
    closed,
    prompt,
    read,
)
from farthing_lab.corl.policy import ControllerPolicy
from farthing_lab.corl.pool import ControllerPool
from farthing_lab.lm import symbols
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.models.local import LocalSettings

UNPAID = "budget"
"""The type of failure of a call that could not be paid."""
MODE_BUDGET, MALFORMED = "mode_budget_usd", "malformed"
"""What a trace records of the controller's calls: B(mode); 1 where a turn could not be read."""
NO_LIMIT = 2**62
"""Nano-dollars that nobody has."""
Shown = Literal["text", "answer"]
"""What of an expert's reply the controller is shown: all of it, or its answer alone."""


@dataclass(frozen=True)
class ControllerSampling:
    """How a controller writes."""

    max_tokens: int = MAX_TOKENS
    """Most tokens of one turn."""
    temperature: float = 0.0
    top_p: float = 1.0


GREEDY = ControllerSampling()
"""The likeliest token, always."""


@dataclass(frozen=True)
class Controlled:
    """What came of a question under a controller."""

    episode: Episode
    trace: Trace
    """Its calls; truncated where turns were left."""
    why: str = ""
    """What ended it, where that was the budget or a failure."""


@dataclass(frozen=True)
class Controller:
    """A controller, its experts and the task; safe to ask many things at once."""

    model: Model
    experts: Sequence[Agent]
    """Their roles are the names in the rules. An agent is told the turn as its round: one whose
    temperature depends on that, as `BaseAgent`'s does, is given one."""
    rules: Rules
    task: Task
    meter: Meter = field(default_factory=Meter)
    """Pays for every try; with a journal, nothing is paid twice."""
    sampling: ControllerSampling = GREEDY
    shown: Shown = "text"

    def __post_init__(self) -> None:
        for model in (self.model, *(agent.model for agent in self.experts)):
            model.largest_cost_nano(Prompt(()))
        ours = [agent.role for agent in self.experts]
        if sorted(ours) != sorted(self.rules.names):
            raise InputError(
                f"the controller is told of {', '.join(self.rules.names) or 'nobody'}, and there "
                f"are {', '.join(ours) or 'none'}; give an agent for each name, and no other"
            )

    async def answer(
        self,
        question: Question,
        mode: Mode,
        *,
        budget_nano: int | None = None,
        seed: int | None = None,
    ) -> Controlled:
        """Answer one question.

        A mode's budget is what the controller is told; it may be overspent. The hard budget may
        not: a call is made only if the most that it can cost fits what is left, and where it does
        not, the controller is told so. Where its own next turn does not fit, the episode ends. A
        call that failed is told to the controller, and is part of the trace; a wrong key ends the
        episode with what there is.

        Args:
            question: what is asked; `gold` may be empty.
            mode: what the controller is told about money.
            budget_nano: the most that may be paid, in nano-dollars; none: no limit.
            seed: of the controller's sampling; with a journal, other seeds are other episodes.
        """
        cap = NO_LIMIT if budget_nano is None else budget_nano
        budget = QuestionBudget(MemoryLedger(cap, *CALLED))
        play = begin(self.rules, asked(question), mode)
        return await _EpisodeRun(self, question, budget, play, seed).finish()


@dataclass(frozen=True)
class _TurnWriter(SpeakingAgent):
    model: Model
    prompt: Prompt
    experts: Sequence[str]
    role: str = CONTROLLER

    async def _speak(self, _: Turn, client: CountingClient) -> AgentReply:
        completion = await client.ask(self.model, self.prompt)
        text = closed(completion.text, completion.finish)
        move = read(text, self.experts)
        return AgentReply(text, move.text if isinstance(move, FinalAnswer) else None)


@dataclass
class _EpisodeRun:
    controller: Controller
    question: Question
    budget: QuestionBudget
    play: Episode
    seed: int | None
    calls: list[Call] = field(default_factory=list)
    why: str = ""

    async def finish(self) -> Controlled:
        while not self.play.over:
            self.play = await self._write()
            if self.play.asked is not None:
                self.play = await self._call()
        episode, controller = self.play.episode(), self.controller
        truncated = episode.turns < controller.rules.most_turns
        trace = trace_of(self.question, controller.task, self.calls, truncated=truncated)
        return Controlled(episode, trace, self.why)

    async def _write(self) -> Episode:
        play, controller = self.play, self.controller
        sampling = controller.sampling
        prompt = Prompt(
            play.messages,
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            stop=STOPS,
            seed=self.seed,
        )
        writer = _TurnWriter(controller.model, prompt, controller.rules.names)
        largest = controller.model.largest_cost_nano(prompt)
        call, cost = await self._made(writer, self.question, play.turns + 1, largest)
        if call.error is None:
            after = play.wrote(ControllerTurn(call.text or "", cost))
            self._keep(call, malformed=after.malformed > play.malformed)
            return after
        self.why = call.error.message
        if call.error.type != UNPAID:
            self._keep(call)
            return play.stop("failure", cost)
        return play.stop("budget", cost)

    async def _call(self) -> Episode:
        play, question = self.play, self.question
        name = play.asked.expert if play.asked else ""
        agent = next(agent for agent in self.controller.experts if agent.role == name)
        if play.asks != play.question:
            question = Question(question.id, play.asks)
        largest = await cost_bound(agent, Turn(question, play.turns)) or 0
        left = self.budget.left_nano
        if left is not None and largest > left:
            return play.refuse()
        call, cost = await self._made(agent, question, play.turns, largest)
        failure = call.error.type if call.error else ""
        if failure == UNPAID and not cost:
            closed_by = self.controller.meter.closed
            self.why = str(closed_by or "")
            return play.stop("budget") if closed_by else play.refuse()
        self._keep(call)
        shown = call.answer if self.controller.shown == "answer" else call.text
        known = call.input_tokens is not None and call.output_tokens is not None
        usage = Usage(call.input_tokens or 0, call.output_tokens or 0) if known else None
        made = MadeCall(call.round, call.role, play.asks, call.text or "", cost, usage, failure)
        after = play.heard(shown or "", made)
        if failure != AuthenticationError.kind:
            return after
        self.why = call.error.message if call.error else ""
        return after.stop("failure")

    async def _made(
        self, agent: Agent, question: Question, number: int, largest_nano: int
    ) -> tuple[Call, int]:
        """Have an agent act; return its call, whatever became of it, and what it cost.

        The budget knows the cost, also of tries that failed: what nobody knows counts there as the
        most that it can be.
        """
        before = self._spent()
        try:
            client = self.controller.meter.client(question, number, agent, self.budget)
            call = await agent.act(Turn(question, number), client)
        except (AuthenticationError, BudgetError) as error:
            kind = error.kind if isinstance(error, AuthenticationError) else UNPAID
            failure = CallError(type=kind, message=str(error))
            call = Call(round=number, role=agent.role, model=agent.model.name, error=failure)
        cost = self._spent() - before
        largest = usd_from_nano(max(largest_nano, cost))
        paid = structs.replace(call, cost_usd=usd_from_nano(cost), largest_cost_usd=largest)
        return paid, cost

    def _spent(self) -> int:
        return 0 if self.budget.ledger is None else self.budget.ledger.balance().settled_nano

    def _keep(self, call: Call, *, malformed: bool = False) -> None:
        if call.role == CONTROLLER:
            told = {MODE_BUDGET: usd_from_nano(self.play.mode.budget_nano)}
            call = structs.replace(call, extra=told | ({MALFORMED: 1.0} if malformed else {}))
        self.calls.append(call)


def controller_of(pool: ControllerPool, models: Mapping[str, Model]) -> Controller:
    """Return a pool's controller, who takes its likeliest tokens, and its experts.

    Args:
        pool: whose task, rules and limits they keep.
        models: opened, by the names of the pool's sections.

    Raises:
        UnpricedModelError: nothing says what one of them costs.
    """
    task = pool.grader()
    return Controller(
        model=models[pool.controller],
        experts=[
            PlainAgent(models[name], name, task.normalise, pool.max_tokens) for name in pool.experts
        ],
        rules=pool.rules,
        task=task,
        sampling=ControllerSampling(pool.max_tokens),
        shown="answer" if pool.style == "compact" else "text",
    )


def check_readable(pool: ControllerPool, *questions: str) -> None:
    """Refuse questions or a style of prompt with symbols that the pool's controller does not have.

    The networks of the project's own symbols leave out what they do not know: they would play, and
    never have been told what the prompt says. Other vocabularies have every byte.
    """
    if reads_symbols_alone(pool):
        check_symbols(pool, *questions)


def reads_symbols_alone(pool: ControllerPool) -> bool:
    """Return whether a pool's controller is a network of the project's own symbols."""
    settings = pool.models.sections[pool.controller].settings
    if not isinstance(settings, EmbeddedSettings | LocalSettings):
        return False
    try:
        told = msgspec.json.decode((pool.weights() / "tokenizer.json").read_bytes())
        return bool(told["model"]["vocab"] == symbols.NUMBERS)
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return False


def check_symbols(pool: ControllerPool, *questions: str) -> None:
    """Refuse questions or a style of prompt that the project's own symbols cannot write."""
    for question in questions:
        if lacking := symbols.unknown(question):
            raise InputError(
                f"the controller has {len(symbols.SYMBOLS)} symbols, and '{question:.60}' has "
                f"others, such as {' '.join(lacking[:3])}; ask chains such as b=a*3+5;a=4;b?"
            )
    for mode in pool.modes:
        messages = prompt(pool.style, mode, pool.rules.experts, "")
        lacking = symbols.unknown("".join(message.content for message in messages))
        if lacking:
            remedy = "name the modes low, medium, high"
            if pool.style != "compact":
                remedy = "use the style compact (--prompt compact, or style in the pool's file)"
            raise InputError(
                f"the controller has {len(symbols.SYMBOLS)} symbols, and its prompt in the mode "
                f"{mode.name}, style {pool.style}, has others, such as "
                f"{' '.join(lacking[:3])}; {remedy}"
            )


@dataclass(frozen=True)
class Dearest:
    """What it had cost to ask the dearest expert instead."""

    expert: str
    cost_nano: int | None
    """None where nobody knows."""
    measured: bool
    """Whether it was asked this question; else it is the mean of other questions."""


@dataclass(frozen=True)
class LiveAnswer:
    """What came of a question, and what the dearest expert had cost."""

    mode: Mode
    hard_nano: int | None
    """What could be paid at most, in nano-dollars; None: no limit."""
    done: Controlled
    dearest: Dearest


def ask(
    pool: ControllerPool,
    question: str,
    mode: str,
    *,
    budget_nano: int | None = None,
    known_usd: dict[str, float] | None = None,
) -> LiveAnswer:
    """Have the pool's controller answer a question in a mode, by its name.

    At most `budget_nano` nano-dollars are paid; None: no limit. `known_usd` says what a call of
    each expert costs on average, where that is known.
    """
    if not question.strip():
        raise InputError("the question is empty; give its text")
    pool.questions.check(question)
    check_readable(pool, question)
    chosen = ControllerPolicy(pool.rules, pool.modes).mode(mode)
    models = pool.models.open()
    named = Question(f"ask-{sha256(question.encode()).hexdigest()[:12]}", question)

    async def play() -> LiveAnswer:
        try:
            controller = controller_of(pool, models)
            done = await controller.answer(named, chosen, budget_nano=budget_nano)
            dearest = await _dearest(pool, models, done, known_usd or {})
            return LiveAnswer(chosen, budget_nano, done, dearest)
        finally:
            await asyncio.gather(*(model.aclose() for model in models.values()))

    return asyncio.run(play())


async def _dearest(
    pool: ControllerPool, models: dict[str, Model], done: Controlled, known_usd: dict[str, float]
) -> Dearest:
    """Return what asking the dearest expert costs; one that runs here is asked, others are not."""
    prompt = Prompt((Message("user", done.episode.question),), max_tokens=pool.max_tokens)
    known = known_usd if set(pool.experts) <= known_usd.keys() else {}

    def price(name: str) -> tuple[float, int]:
        return known.get(name, 0.0), models[name].largest_cost_nano(prompt)

    expert = max(pool.experts, key=price)
    for call in done.episode.calls:
        if call.expert == expert and call.asked == done.episode.question and not call.error:
            return Dearest(expert, call.cost_nano, measured=True)
    if isinstance(pool.models.sections[expert].settings, EmbeddedSettings | LocalSettings):
        try:
            return Dearest(expert, (await models[expert].complete(prompt)).cost_nano, measured=True)
        except ModelError:
            return Dearest(expert, None, measured=False)
    mean = known_usd.get(expert)
    return Dearest(expert, None if mean is None else nano_from_usd(mean), measured=False)
