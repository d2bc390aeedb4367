"""Which calls a policy may play: its bundle fitted to the agents that there are."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.methods.baselines.llm_replies import replies_of
from farthing.process.base import Policy
from farthing.process.budget import CASCADE
from farthing.runtime.answer import passes_to, selective
from farthing.runtime.base import Agent, Turn
from farthing.runtime.rounds import Clients, Plan, act, judged
from farthing.tasks.base import Question, Task
from farthing.traces.base import Call
from farthing.traces.trace_kind import is_reply


@dataclass(frozen=True)
class Step:
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
        """Make the calls of the step.

        Args:
            question: what is asked.
            before: the calls of earlier steps.
            clients: opens the client of each call.
            made: each call is added to it when it is made, so that none is lost if another fails.
            task: says when two answers are the same.

        Raises:
            FarthingError: as `Agent.act`, once every call that was begun has ended.
        """
        if self.independent:
            await self._together(question, clients, made, task)
            return
        for agent in self.agents:
            turn = Turn(question, self.number, (*before, *made))
            made.append(await act(agent, turn, clients))

    async def _together(
        self, question: Question, clients: Clients, made: list[Call], task: Task
    ) -> None:
        results = await asyncio.gather(
            *(act(agent, Turn(question, self.number), clients) for agent in self.agents),
            return_exceptions=True,
        )
        made += judged([result for result in results if isinstance(result, Call)], task)
        for result in results:
            if isinstance(result, BaseException):
                raise result


Lines = tuple[tuple[Step, ...], ...]
"""Of each line the next step may be played, as in `process.action_space`: rounds are one line;
where single calls are bought, each role, or each model of a pool, has its own."""


def by_call(policy: Policy) -> bool:
    """Return whether a policy buys single calls, in an order of its own."""
    return policy.space == "calls"


def course(bundle: Bundle, plan: Plan) -> Lines:
    """Return the steps that a bundle's policy decides about, with the agents of a plan.

    Agents that only comment are left out, unless the policy goes by what they say. In rounds a pool
    is asked one model after another, in the order of the bundle.

    Raises:
        InputError: the policy was trained for other roles or models, or it buys single calls and
            the agents see one another's.
    """
    _check_calls(bundle, plan)
    agents = [agent for number, agent in plan.acts() if number == 1]
    single = by_call(bundle.policy)
    if bundle.origin.roles == CASCADE:
        steps = _cascade(bundle, agents)
        return tuple((step,) for step in steps) if single else (steps,)
    named = {agent.role: agent for agent in agents if not is_reply(agent.role)}
    _check_roles(bundle, set(named))
    chosen = tuple(named[role] for role in bundle.origin.roles)
    horizon = range(1, bundle.origin.horizon + 1)
    if single:
        return tuple(tuple(Step(t, (a,), independent=True) for t in horizon) for a in chosen)
    together = chosen + _asked_for(bundle, agents)
    return (tuple(Step(number, together, plan.independent) for number in horizon),)


def passed_on_to(bundle: Bundle, plan: Plan, other: Agent | None) -> Agent | None:
    """Return the agent that answers where the policy abstains; None: nobody.

    Args:
        bundle: the policy.
        plan: the agents. Where the bundle promises to pass questions on, it names one of them.
        other: who is to answer where the bundle names nobody.

    Raises:
        InputError: the policy never abstains, or the bundle names somebody who is not there, or
            somebody and so does the caller.
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
    agents = [agent for number, agent in plan.acts() if number == 1]
    found = [one for one in agents if one.role == name]
    found += [one for one in agents if one.model.name == name]
    if not found:
        raise InputError(
            f"the bundle passes questions on to {name}, which is not among these agents; use "
            "those that its traces were made with"
        )
    return found[0]


def _check_calls(bundle: Bundle, plan: Plan) -> None:
    if not by_call(bundle.policy):
        return
    if not plan.independent:
        raise InputError(
            "the bundle's policy buys call by call, and here calls see one another; write "
            'mode = "independent" in the job, which is how its traces were recorded'
        )


def _check_roles(bundle: Bundle, ours: set[str]) -> None:
    if set(bundle.origin.roles) != ours:
        raise InputError(
            f"the bundle's policy is for {' and '.join(bundle.origin.roles)}, and here answer "
            f"{' and '.join(sorted(ours)) or 'none'}; use the agents that its traces were made with"
        )


def _asked_for(bundle: Bundle, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return the agent that the policy goes by, if it does."""
    role = replies_of(bundle.policy)
    if role is None:
        return ()
    found = tuple(agent for agent in agents if agent.role == role)
    if not found:
        raise InputError(f"the bundle's policy asks an LLM what to do; add the agent '{role}'")
    return found


def _cascade(bundle: Bundle, agents: Sequence[Agent]) -> tuple[Step, ...]:
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
    return tuple(Step(1, (by_name[name],), independent=True) for name in order)
