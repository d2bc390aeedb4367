"""Which calls make up a trace, in which order they are made, and the most that they can cost."""

import asyncio
import typing
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from farthing.errors import UnpricedModelError
from farthing.models.adaptive import Gate
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.money import usd_from_nano
from farthing.runtime.agents.base import Sampler
from farthing.runtime.base import Agent, BudgetedAgent, Client, Turn
from farthing.tasks.base import Question, Task, is_answer
from farthing.tasks.tools import Tool, ToolReply
from farthing.traces.base import Call, Trace

TOOL_REPLY = 4_000
"""Bytes that a tool's reply is taken to have."""
_ACTION = "Action: search[{}]"
"""The longest reply leads an agent with tools on to its last step."""


def longest_completion(model: Model, prompt: Prompt) -> Completion:
    """Return a reply of the largest length; n tokens of it count as n where it is repeated."""
    text = _ACTION.format("x" * max(1, prompt.max_tokens - len(_ACTION)))
    return Completion(text, model.name, "length", Usage(0, prompt.max_tokens), 0, 0.0)


@dataclass
class CostBoundClient:
    """A client that asks nobody and adds up the most that the calls can cost, without retries."""

    largest_nano: int = 0

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Count a call to a model."""
        self.largest_nano += model.largest_cost_nano(prompt)
        return longest_completion(model, prompt)

    async def use(self, tool: Tool, query: str) -> ToolReply:  # noqa: ARG002 - the protocol's
        """Count a use of a tool."""
        self.largest_nano += tool.cost_nano
        return ToolReply("x" * TOOL_REPLY)


async def cost_bound(agent: Agent, turn: Turn) -> int | None:
    """Return the most that an agent's call can cost, in nano-dollars, without retries.

    None where one of its models has no price. What an agent's own budget refuses it counts as if
    it were not refused, but for the money: a refused tool leaves room for longer ways.
    """
    client, most = CostBoundClient(), None
    if isinstance(agent, BudgetedAgent):
        most, agent = agent.most_nano, agent.dearest()
    try:
        await agent.act(turn, client)
    except UnpricedModelError:
        return None
    return client.largest_nano if most is None else min(most, client.largest_nano)


FINAL = frozenset({"refused", "filtered", "incomplete", "context_too_long"})
"""Failures that are results: asked again, the same call would fail again."""
Finish = Callable[[Trace, Trace | None], Trace]
"""A new trace and an earlier one of the same question to the one that is stored."""
Clients = Callable[[Question, int, Agent], Client]
"""Opens the client through which an agent acts on a question in a round."""


class Protocol(typing.Protocol):
    """What is to be recorded of each question."""

    @property
    def independent(self) -> bool:
        """Whether no call sees another one's output."""
        ...

    def turns(self) -> list[tuple[int, Agent]]:
        """Return every (round, agent) of a question."""
        ...

    async def calls(self, question: Question, clients: Clients) -> list[Call]:
        """Make all calls for one question.

        Raises:
            FarthingError: as `Agent.act`, once every call that was begun has ended.
        """
        ...


def may_succeed_later(call: Call) -> bool:
    """Return whether a call failed in a way that may pass."""
    return call.error is not None and call.error.type not in FINAL


def transient_failure(trace: Trace) -> str | None:
    """Return what kept a question from being recorded; None where nothing did."""
    for call in trace.calls:
        if call.error is not None and may_succeed_later(call):
            return f"round {call.round}, {call.role}: {call.error.type}: {call.error.message}"
    return None


async def ask_agent(agent: Agent, turn: Turn, clients: Clients) -> Call:
    """Have an agent act; its call says the most that it could have cost when it was sent.

    That is one try of each prompt, at its dearest; or, where failed tries came on top and cost
    more, what was paid. Raises like `Agent.act`.
    """
    bound = await cost_bound(agent, turn)
    call = await agent.act(turn, clients(turn.question, turn.round, agent))
    if bound is None:
        return call
    largest = max(usd_from_nano(bound), call.cost_usd or 0.0)
    return structs.replace(call, largest_cost_usd=largest)


@dataclass(frozen=True)
class Dialogue:
    """The paper's protocol: in each round the agents act in turn and see what came before."""

    agents: tuple[Agent, ...]
    """`base`, `guide`, then those that only comment, such as an LLM as the policy."""
    rounds: int
    independent: bool = False

    def turns(self) -> list[tuple[int, Agent]]:
        """Return every (round, agent) of a question."""
        return [(t, agent) for t in range(1, self.rounds + 1) for agent in self.agents]

    async def calls(self, question: Question, clients: Clients) -> list[Call]:
        """Make all calls for one question, one after another, up to one to be made again.

        What followed would have seen the failure, and be paid for in vain; and after the end of a
        thought nothing follows.
        """
        so_far: list[Call] = []
        for number, agent in self.turns():
            turn = Turn(question, number, tuple(so_far))
            so_far.append(await ask_agent(agent, turn, clients))
            if may_succeed_later(so_far[-1]) or so_far[-1].ended:
                break
        return so_far


@dataclass(frozen=True)
class Independent:
    """Attempts that know nothing of each other: any subset of the calls could have been made.

    Agents that answer the question by themselves, all at the same time: base and guide in T rounds,
    the models of a pool in one, or one agent alone T times, which are samples. The guide's verdict
    is whether its answer is the base's.
    """

    agents: tuple[Agent, ...]
    rounds: int
    task: Task
    """Says when two answers are the same."""
    independent: bool = True

    def turns(self) -> list[tuple[int, Agent]]:
        """Return every (round, agent) of a question."""
        return [(t, agent) for t in range(1, self.rounds + 1) for agent in self.agents]

    async def calls(self, question: Question, clients: Clients) -> list[Call]:
        """Make all calls for one question at the same time."""
        calls = await _all(
            [ask_agent(agent, Turn(question, number), clients) for number, agent in self.turns()]
        )
        return judged(calls, self.task)


def apart(agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return agents that answer independently, so that no two draw the same samples.

    Of those that ask one model the same, all but the first get a stream of their own. The others
    stay as they are: so what was recorded of them goes on to count, and is found in the journal.
    """
    asked: Counter[tuple[type, str]] = Counter()
    found = []
    for agent in agents:
        alike = type(agent), agent.model.name
        found.append(_streaming(agent, asked[alike]) if asked[alike] else agent)
        asked[alike] += 1
    return tuple(found)


def sampling(agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return agents whose first round is a sample as the others are, and has a seed."""
    return tuple(_streaming(agent, 0) for agent in agents)


def _streaming(agent: Agent, stream: int) -> Agent:
    drawing: Any = agent
    return replace(drawing, stream=stream) if isinstance(agent, Sampler) else agent


def judged(calls: Sequence[Call], task: Task) -> list[Call]:
    """Return independent attempts with the guide's verdict: whether its answer is the base's."""
    bases = {call.round: call for call in calls if call.role == "base"}
    return [_judged(call, bases.get(call.round), task) for call in calls]


def _judged(call: Call, base: Call | None, task: Task) -> Call:
    if call.role != "guide" or base is None or call.error or base.error:
        return call
    if call.answer is None or base.answer is None:
        return call
    if not (is_answer(call.answer) and is_answer(base.answer)):
        return call
    same = task.normalise(call.answer) == task.normalise(base.answer)
    return structs.replace(call, verdict=same)


async def _all(turns: list[Coroutine[Any, Any, Call]]) -> list[Call]:
    """Wait for all, and only then raise the first failure: what was begun is paid for."""
    results = await asyncio.gather(*turns, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Call)]


def trace_of(
    question: Question,
    task: Task,
    calls: list[Call],
    *,
    independent: bool = False,
    truncated: bool = False,
) -> Trace:
    """Return the trace of a question and the calls that were made for it."""
    return Trace(
        id=question.id,
        question=question.text,
        gold=list(question.gold),
        calls=calls,
        task=task.name,
        group=question.group,
        split=question.split,  # type: ignore[arg-type]  # the loaders check it
        **question.beside,
        independent=independent,
        truncated=truncated,
    )


@dataclass(frozen=True)
class RecordingPlan:
    """What is to be recorded of each question, and how its answers are compared."""

    protocol: Protocol
    task: Task
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Role to settings of its model that no prompt shows."""
    escalation: Agent | None = None
    """Who is asked where a policy abstains."""
    gate: Gate | None = None
    """Says how many questions may be under way; None: as many as the job says."""
    stored: Finish | None = None
    """Makes of a question's new trace, and of what the store has of it, what is stored; None: it is
    stored as it is, and each question once."""
