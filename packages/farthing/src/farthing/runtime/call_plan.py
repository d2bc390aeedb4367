"""Which calls a policy may play: its bundle fitted to the agents that there are."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.process.base import Policy
from farthing.process.budget import CASCADE
from farthing.runtime.answer import Bought, passes_to, selective
from farthing.runtime.base import Agent, CutAgent, Turn
from farthing.runtime.protocol import Clients, Protocol, ask_agent, judged
from farthing.tasks.base import Question, Task
from farthing.traces.base import Call
from farthing.traces.pool import THOUGHT, is_thought
from farthing.traces.trace_kind import is_reply, replies_of


@dataclass(frozen=True)
class PlanStep:
    """What is asked before one decision: a round, or a single call."""

    number: int
    """The round as the trace has it, from 1; every model of a pool is asked in round 1."""
    agents: tuple[Agent, ...]
    independent: bool
    """Whether no agent sees what another one said."""

    async def play(
        self,
        question: Question,
        before: Sequence[Call],
        clients: Clients,
        made: list[Call],
        task: Task,
    ) -> None:
        """Make the calls of the step, after those of earlier steps.

        Each is added to `made` when it is made, so that none is lost if another fails.
        """
        if self.independent:
            await self._together(question, clients, made, task)
            return
        for agent in self.agents:
            turn = Turn(question, self.number, (*before, *made))
            made.append(await ask_agent(agent, turn, clients))

    async def _together(
        self, question: Question, clients: Clients, made: list[Call], task: Task
    ) -> None:
        results = await asyncio.gather(
            *(ask_agent(agent, Turn(question, self.number), clients) for agent in self.agents),
            return_exceptions=True,
        )
        made += judged([result for result in results if isinstance(result, Call)], task)
        for result in results:
            if isinstance(result, BaseException):
                raise result


@dataclass(frozen=True)
class CallPlan:
    """A bundle fitted to the agents that there are: the steps that its policy decides about."""

    bundle: Bundle
    lines: tuple[tuple[PlanStep, ...], ...]
    """Of each line the next step may be played, as in `process.action_space`: rounds are one line;
    where single calls are bought, each role, or each model of a pool, has its own."""
    independent: bool
    """Whether no call sees another one's output."""
    escalation: Agent | None = None
    """Answers where the policy abstains; None: nobody."""

    @property
    def unit(self) -> Bought:
        """What one step is."""
        return "calls" if by_call(self.bundle.policy) else "rounds"

    @property
    def most_steps(self) -> int:
        """The most rounds, or single calls, that a question can take."""
        return sum(map(len, self.lines))

    @property
    def roles(self) -> list[str]:
        """The roles that the policy may ask, each once."""
        agents = (agent.role for line in self.lines for step in line for agent in step.agents)
        return list(dict.fromkeys(agents))


def by_call(policy: Policy) -> bool:
    """Return whether a policy buys single calls, in an order of its own."""
    return policy.space == "calls"


def call_plan(bundle: Bundle, protocol: Protocol, escalation: Agent | None = None) -> CallPlan:
    """Return the steps that a bundle's policy decides about, with the agents of a protocol.

    Agents that only comment are left out, unless the policy goes by what they say. In rounds a pool
    is asked one model after another, in the order of the bundle. `escalation` answers where the
    policy abstains and the bundle names nobody.
    """
    agents = [agent for number, agent in protocol.turns() if number == 1]
    escalation = escalation_agent(bundle, agents, escalation)
    roles = bundle.origin.roles
    straight = is_thought(roles) and roles != THOUGHT  # to one cut, whatever the job's protocol
    lines = _lines(bundle, protocol, agents)
    return CallPlan(bundle, lines, protocol.independent or straight, escalation)


def _lines(
    bundle: Bundle, protocol: Protocol, agents: Sequence[Agent]
) -> tuple[tuple[PlanStep, ...], ...]:
    origin, single = bundle.origin, by_call(bundle.policy)
    if is_thought(origin.roles):
        return _cuts(bundle, agents)
    if single and not protocol.independent:
        raise InputError(
            "the bundle's policy buys call by call, and here calls see one another; write "
            'mode = "independent" in the job, which is how its traces were recorded'
        )
    if origin.roles == CASCADE:
        steps = _cascade(bundle, agents)
        return tuple((step,) for step in steps) if single else (steps,)
    named = {agent.role: agent for agent in agents if not is_reply(agent.role)}
    if set(origin.roles) != set(named):
        raise InputError(
            f"the bundle's policy is for {' and '.join(origin.roles)}, and here answer "
            f"{' and '.join(sorted(named)) or 'none'}; use the agents that its traces were made "
            "with"
        )
    chosen = tuple(named[role] for role in origin.roles)
    horizon = range(1, origin.horizon + 1)
    if single:
        return tuple(tuple(PlanStep(t, (a,), independent=True) for t in horizon) for a in chosen)
    together = chosen + _asked_for(bundle, agents)
    return (tuple(PlanStep(number, together, protocol.independent) for number in horizon),)


def _cuts(bundle: Bundle, agents: Sequence[Agent]) -> tuple[tuple[PlanStep, ...], ...]:
    """Return the cuts of a thought: in turn, or each by itself where one is chosen for all."""
    roles, horizon = bundle.origin.roles, bundle.origin.horizon
    number = horizon if roles == THOUGHT else len(roles)
    thinking = [agent for agent in agents if isinstance(agent, CutAgent)]
    if not thinking or len(thinking[0].cuts) != number:
        raise InputError(
            f"the bundle's policy stops a thought at its cuts, of which there are {number}; give "
            "the job that its thoughts were recorded with, whose [agents.thought] has as many. "
            "Where an endpoint cannot be stopped, efforts can be bought (docs/how-to/thinking.md)"
        )
    cuts = range(1, number + 1)
    if roles == THOUGHT:
        return (tuple(PlanStep(t, (thinking[0],), independent=False) for t in cuts),)
    return tuple((PlanStep(1, (thinking[0].at(t),), independent=True),) for t in cuts)


def escalation_agent(bundle: Bundle, agents: Sequence[Agent], other: Agent | None) -> Agent | None:
    """Return the agent that answers where the policy abstains; None: nobody.

    A bundle that promises to pass questions on names one of the agents; where it names nobody, it
    is the other one.
    """
    if other is not None and not selective(bundle.certificate):
        raise InputError(
            "the bundle never abstains, so there is nothing to escalate; leave that out, or "
            "calibrate for a selective promise (--promise selective, in Python Selective)"
        )
    name = passes_to(bundle.certificate)
    if name is None:
        return other
    if other is not None:
        raise InputError(
            f"the bundle passes questions on to {name}, as it promises; name nobody else"
        )
    named = [agent for agent in agents if agent.role == name]
    named += [agent for agent in agents if agent.model.name == name]
    if not named:
        raise InputError(
            f"the bundle passes questions on to {name}, which is not among these agents; use "
            "those that its traces were made with"
        )
    return named[0]


def _asked_for(bundle: Bundle, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    role = replies_of(bundle.policy)
    if role is None:
        return ()
    found = tuple(agent for agent in agents if agent.role == role)
    if not found:
        raise InputError(f"the bundle's policy asks an LLM what to do; add the agent '{role}'")
    return found


def _cascade(bundle: Bundle, agents: Sequence[Agent]) -> tuple[PlanStep, ...]:
    order = bundle.origin.models[0].split(" -> ")
    if len(set(order)) < len(order):
        raise InputError(
            f"the bundle's policy asks {', '.join(order)} in turn, and two of these have one name; "
            "record a pool whose models are named apart"
        )
    by_name = {agent.role: agent for agent in agents} | {a.model.name: a for a in agents}
    missing = [name for name in order if name not in by_name]
    if missing:
        raise InputError(
            f"the bundle's policy asks {', '.join(order)} in turn, and {', '.join(missing)} is not "
            "among these models; use the pool that its traces were made with"
        )
    return tuple(PlanStep(1, (by_name[name],), independent=True) for name in order)
