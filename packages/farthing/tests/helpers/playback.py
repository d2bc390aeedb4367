"""Agents that give back recorded calls, so that live answers can be laid beside a replay."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.money import nano_from_usd
from farthing.process.base import Policy
from farthing.process.batch_replay import replay
from farthing.process.replay import ReplayOutcome
from farthing.promises.kinds import none
from farthing.runtime.answer import Answer
from farthing.runtime.base import Agent, Client, Turn
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.store import Store
from farthing.traces.system import Origin, as_asked


@dataclass(frozen=True)
class Recorded:
    """A model whose every call costs what the next recorded one did."""

    name: str
    cost_nano: int | None = 0
    largest_nano: int = 0
    """Where the cost is not known."""

    async def complete(self, prompt: Prompt) -> Completion:
        return Completion("", self.name, "stop", Usage(1, 1), self.cost_nano, 0.0)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return self.largest_nano if self.cost_nano is None else self.cost_nano

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Playback:
    """Gives back a role's recorded calls, and pays for them."""

    role: str
    model: Model
    calls: Mapping[tuple[str, int], Call]
    """By question and round."""

    async def act(self, turn: Turn, client: Client) -> Call:
        call = self.calls[turn.question.id, turn.round]
        cost, largest = call.cost_usd, nano_from_usd(call.largest_cost_usd or 0.0)
        unknown = cost is None and largest
        nano = None if unknown else nano_from_usd(cost or 0.0)
        await client.ask(Recorded(self.model.name, nano, largest), Prompt(()))
        return call


def playback(traces: Sequence[Trace], roles: Sequence[str]) -> tuple[Agent, ...]:
    def agent(role: str) -> Playback:
        calls = {(t.id, c.round): c for t in traces for c in t.calls if c.role == role}
        return Playback(role, Recorded(role), calls)

    return tuple(agent(role) for role in roles)


def bundle_of(policy: Policy, origin: Origin, kappa: float | None, empty: str = "argmax") -> Bundle:
    certificate = None if kappa is None else none.certify(kappa, fingerprint="f")
    return Bundle(
        policy=policy,
        kind="any",
        origin=origin,
        kappa=kappa,
        empty=empty,
        certificate=certificate,
        features=None,
        farthing_version="0",
    )


def replayed_from_store(found: Sequence[Mapping[str, Any]]) -> tuple[list[Trace], ReplayOutcome]:
    """Return the stored questions of answers, in their order, and what a replay makes of them."""
    bundle = bundles.load("bundle")
    with Store.open("traces.db", create=False) as store:
        stored = {trace.id: trace for trace in store.traces()}
    traces = [stored[answer["id"]] for answer in found]
    assert bundle.kappa is not None
    asked = as_asked(assemble(traces), bundle.origin)
    outcome = replay(bundle.policy, asked, bundle.empty).act(bundle.kappa)
    return traces, outcome


def ask(runner: PolicyRunner, question: Question, **options: object) -> Answer:
    return asyncio.run(runner.answer(question, **options))  # type: ignore[arg-type]


def question_of(trace: Trace) -> Question:
    return Question(trace.id, trace.question, tuple(trace.gold))
