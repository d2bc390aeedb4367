"""Who acts in a live round, the client of its paid calls, and how its call is recorded."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from farthing.errors import AuthenticationError, ContentRefusedError, ModelError
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.models.http_failures import EXCERPT
from farthing.models.usage import added
from farthing.money import usd_from_nano
from farthing.tasks.base import Question
from farthing.tasks.tools import Tool, ToolReply
from farthing.traces.base import Call, CallError
from farthing.traces.costs import kept


class Client(Protocol):
    """Makes the calls that agents ask for, for one question.

    Agents never call a model or a tool themselves: what is asked through a client can be written
    down, answered from the journal, reserved against a budget, or cut off.
    """

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer.

        Raises:
            ModelError: the call failed.
            BudgetError: the budget does not allow it; nothing was sent.
        """
        ...

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer; raises like `ask`."""
        ...


class DirectClient:
    """Makes every call there and then."""

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer."""
        return await model.complete(prompt)

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer."""
        return await tool.run(query)


@dataclass(frozen=True)
class Turn:
    """What an agent is to act on."""

    question: Question
    round: int
    """From 1."""
    so_far: Sequence[Call] = ()
    """What it may see: calls of earlier rounds, and this round's base for its guide."""


class Agent(Protocol):
    """Makes one call of a trace: one or more prompts and tool calls that end in an answer.

    It may also have `marks()`, the settings that tell it from others beside its numbers, and
    `doubt(acts)`, what may surprise whoever pays for so many acts of each role.
    """

    @property
    def role(self) -> str:
        """The role that it fills: `base`, `guide`, or any other name."""
        ...

    @property
    def model(self) -> Model:
        """Who answers for it."""
        ...

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the call as it goes into the trace, with its cost and everything known about it.

        A reply that cannot be read becomes `answer=None`; a call that failed carries its `error`.
        Only what no call can mend is raised: BudgetError, AuthenticationError, UnpricedModelError.
        """
        ...


@runtime_checkable
class BudgetedAgent(Agent, Protocol):
    """An agent with a budget of its own."""

    @property
    def most_nano(self) -> int | None:
        """The most that a call may cost, in nano-dollars; None: no limit."""
        ...

    def dearest(self) -> Agent:
        """Return the agent whose calls are the longest that there can be."""
        ...


@runtime_checkable
class CutAgent(Agent, Protocol):
    """An agent whose thought is stopped at cuts, where it answers."""

    @property
    def probe(self) -> Prompt:
        """What its model is asked once, beside all questions."""
        ...

    @property
    def cuts(self) -> tuple[int, ...]:
        """Tokens of thought up to each cut, ascending."""
        ...

    def at(self, number: int) -> Agent:
        """Return an agent that thinks up to one cut, numbered from 1, without answering before."""
        ...


class Closable(Protocol):
    """Something that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@dataclass(frozen=True)
class AgentReply:
    """What an agent's reply comes to."""

    text: str
    """The whole of it, also where it could not be read."""
    answer: str | None = None
    verdict: bool | None = None
    uncertainty: float | None = None
    counts_tools: bool = False
    """Whether the agent has tools, so that none used is worth recording."""
    numbers: dict[str, float] = field(default_factory=dict)
    """What else is recorded of it, by name."""
    ended: bool | None = None
    """Of a cut of a thought, whether the thought ended there by itself."""


@dataclass
class CountingClient:
    """A client that adds up what goes through another one."""

    client: Client
    cost_nano: int | None = 0
    """None once something was paid whose price is not known."""
    usage: Usage | None = None
    """Of all its calls; None: it has made none."""
    tool_calls: int = 0
    latency_s: float | None = None

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer; what a failed or refused call cost is counted too."""
        try:
            completion = await self.client.ask(model, prompt)
        except ModelError as error:
            self._pay(error.cost_nano)
            raise
        self._pay(completion.cost_nano)
        self.usage = added(self.usage, completion.usage)
        self.latency_s = (self.latency_s or 0.0) + completion.latency_s
        if completion.finish == "refused":  # what two models refuse, they do not agree on
            raise ContentRefusedError(f"{completion.model} refused: {completion.text[:EXCERPT]}")
        return completion

    def beside(self) -> Client:
        """Return a client of what is asked once for all questions, and is no part of this call."""
        found: Client = getattr(self.client, "beside", lambda: self.client)()
        return found

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer; one that fails counts as used."""
        self.tool_calls += 1
        try:
            reply = await self.client.use(tool, query)
        except ModelError as error:
            self._pay(error.cost_nano)
            raise
        self._pay(reply.cost_nano)
        self.latency_s = (self.latency_s or 0.0) + reply.latency_s
        return reply

    def _pay(self, cost_nano: int | None) -> None:
        known = self.cost_nano is not None and cost_nano is not None
        self.cost_nano = (self.cost_nano or 0) + (cost_nano or 0) if known else None


async def recorded(
    agent: Agent,
    turn: Turn,
    client: Client,
    speak: Callable[[Turn, CountingClient], Awaitable[AgentReply]],
) -> Call:
    """Have an agent speak and return the call as it goes into the trace.

    Args:
        agent: whose call it is.
        turn: what it is to act on.
        client: makes its calls.
        speak: says something in a turn, through the client that it is given.

    Raises:
        AuthenticationError: no call can succeed with this key.
        BudgetError: the budget does not allow a call.
        UnpricedModelError: a budget applies to a model without a price.
    """
    counting = CountingClient(client)
    said, failure = AgentReply(""), None
    try:
        said = await speak(turn, counting)
    except AuthenticationError:
        raise
    except ModelError as error:
        failure = CallError(type=error.kind, message=str(error))
    return Call(
        round=turn.round,
        role=agent.role,
        model=agent.model.name,
        answer=said.answer,
        text=said.text or None,
        verdict=said.verdict,
        uncertainty=said.uncertainty,
        input_tokens=None if counting.usage is None else counting.usage.input_tokens,
        output_tokens=None if counting.usage is None else counting.usage.output_tokens,
        tool_calls=counting.tool_calls if said.counts_tools or counting.tool_calls else None,
        latency_s=counting.latency_s,
        cost_usd=None if counting.cost_nano is None else usd_from_nano(counting.cost_nano),
        error=failure,
        ended=said.ended,
        extra=said.numbers | kept(counting.usage),
    )


class _Speaker(Agent, Protocol):
    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply: ...


class SpeakingAgent:
    """An agent whose call is all that it says in a turn; what cannot be read is no answer."""

    async def act(self: _Speaker, turn: Turn, client: Client) -> Call:
        """Return the call, as `recorded` has it."""
        return await recorded(self, turn, client, self._speak)
