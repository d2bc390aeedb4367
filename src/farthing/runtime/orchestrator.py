"""Answer questions under a trained policy: buy calls until it says stop, and say what is promised.

After each step, a round or a single call, the policy scores what is known as a replay would, so
that it decides live as it was calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from zlib import crc32

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import AuthenticationError, BudgetError
from farthing.models.base import Model
from farthing.money import dollars
from farthing.process.base import NOTHING
from farthing.runtime import caveats
from farthing.runtime.answer import Answer, Bought, Ending, Returned, selective
from farthing.runtime.base import Agent, Client
from farthing.runtime.base_agent import BaseAgent
from farthing.runtime.cost_bound import CostBoundClient
from farthing.runtime.episode import Bounds, Episode
from farthing.runtime.guide_agent import GuideAgent
from farthing.runtime.meter import Meter, QuestionBudget
from farthing.runtime.rounds import Dialogue, Independent, Plan, apart, judged
from farthing.runtime.steps import Lines, Step, by_call, course, passed_on_to
from farthing.runtime.system import system_of
from farthing.tasks.base import Question, Task, is_answer
from farthing.traces.base import Call, Trace
from farthing.traces.shapes import PROTOCOL_ROLES, is_reply
from farthing.traces.system import System


@dataclass(frozen=True)
class Orchestrator:
    """A bundle, the agents it decides about, and the task; safe to ask many things at once."""

    bundle: Bundle
    plan: Plan
    """The agents, as their traces were collected; its number of rounds is the bundle's."""
    task: Task
    meter: Meter = field(default_factory=Meter)
    """Pays for every try; with a journal, nothing is paid twice."""
    escalation: Agent | None = None
    """Answers by itself where the policy abstains; nothing is promised of what it says. Where the
    bundle promises to pass questions on it is whom it names, among the agents."""
    system: System | None = None
    """What the agents are, prices and parameters included; none: what they say of themselves."""

    doubts: tuple[str, ...] = field(init=False, repr=False)
    """Why the bundle's certificate holds for no answer of these agents, a clause each."""
    _lines: Lines = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse agents that the policy was not trained for, before anything is paid.

        Raises:
            InputError: they have other roles, a pool lacks a model, or the policy buys single
                calls and these agents see one another's, or there is somebody to escalate to and
                the bundle never abstains.
        """
        escalation = passed_on_to(self.bundle, self.plan, self.escalation)
        object.__setattr__(self, "escalation", escalation)
        object.__setattr__(self, "_lines", course(self.bundle, self.plan))
        ours = system_of(self.plan) if self.system is None else self.system
        doubts = caveats.of_all(self.bundle, self.plan, self._lines, ours)
        object.__setattr__(self, "doubts", doubts)

    @classmethod
    def with_models(cls, bundle: Bundle, models: Mapping[str, Model], task: Task) -> Self:
        """Return an orchestrator whose agents are as plain as can be.

        Args:
            bundle: the policy.
            models: who fills each role: `base` and `guide`, of the paper's dialogue or, where the
                policy buys single calls, each by itself; else the models of a pool, by the names
                that they have in its traces.
            task: says when two answers are the same.

        Raises:
            InputError: the policy was trained for other roles or models.
        """
        if models.keys() != set(PROTOCOL_ROLES):
            pool = tuple(BaseAgent(model, role=name) for name, model in models.items())
            return cls(bundle, Independent(pool, 1, task), task)
        rounds, base = bundle.origin.horizon, BaseAgent(models["base"])
        if by_call(bundle.policy):
            alone = apart((base, BaseAgent(models["guide"], role="guide")))
            return cls(bundle, Independent(alone, rounds, task), task)
        return cls(bundle, Dialogue((base, GuideAgent(models["guide"])), rounds), task)

    @property
    def steps(self) -> int:
        """The most rounds, or single calls, that a question can take."""
        return sum(map(len, self._lines))

    @property
    def bought(self) -> Bought:
        """What one step is."""
        return "calls" if by_call(self.bundle.policy) else "rounds"

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
            meter: pays for this question; none: the orchestrator's.

        Raises:
            UnpricedModelError: a budget applies to a model without a price.
        """
        rng = rng or np.random.default_rng(crc32(question.id.encode(errors="surrogatepass")))
        episode = Episode(
            self.bundle, self._lines, blank(question, self), self.task, rng, budget_nano
        )
        asked = _Answering(
            self, question, QuestionBudget.of(budget_nano), episode, meter or self.meter
        )
        return await asked.play()


def blank(question: Question, orchestrator: Orchestrator) -> Trace:
    """Return the trace of a question before anything was asked."""
    return Trace(
        id=question.id,
        question=question.text,
        gold=list(question.gold),
        calls=[],
        task=orchestrator.task.name,
        group=question.group,
        split=question.split,  # type: ignore[arg-type]  # the loaders check it
        independent=orchestrator.plan.independent,
        truncated=True,
    )


@dataclass
class _Answering:
    """One question under way."""

    orchestrator: Orchestrator
    question: Question
    budget: QuestionBudget
    episode: Episode
    meter: Meter
    steps: list[list[Call]] = field(default_factory=list)
    """The calls of each round, or each single call, that was made in full."""
    broken: list[Call] = field(default_factory=list)
    """The calls of the round that could not be finished."""
    ended_by: Ending = "policy"
    why: str = ""
    escalated: Call | None = None

    async def play(self) -> Answer:
        """Take steps until the policy, the budget or a failure ends it."""
        while True:
            bounds = await self._bounds()
            line = self.episode.decide(self.steps, bounds, self.budget.left_nano)
            if line == NOTHING:
                break
            if not await self._run(self.episode.next(line)):
                break
            self.episode.bought(line)
        if line == NOTHING and self.episode.cut and not self._as_calibrated:
            what = self.orchestrator.bought.removesuffix("s")
            least = dollars(min(bounds.values()))
            self._end("budget", f"the next {what} can cost {least}")
        await self._escalate()
        return self._answer()

    @property
    def _as_calibrated(self) -> bool:
        """Whether the promise was calibrated under the budget that the question has."""
        certificate = self.orchestrator.bundle.certificate
        nano = self.episode.budget_nano
        return certificate is not None and certificate.question_budget_nano == nano

    async def _bounds(self) -> Bounds:
        """Return the most that the next step of each line can cost; where there is a budget."""
        if self.budget.left_nano is None:
            return {}
        lines = self.episode.open_lines()
        return {line: await self._bound(self.episode.next(line)) for line in lines}

    async def _bound(self, step: Step) -> int:
        """Return the most that a step can cost: as the bundle declares, else by a dry run."""
        declared = {agent.role: self._declared(agent) for agent in step.agents}
        known = sum(nano for nano in declared.values() if nano is not None)
        if None not in declared.values():
            return known
        bound, free = CostBoundClient(), CostBoundClient()

        def client(_: Question, __: int, agent: Agent) -> Client:
            return bound if declared[agent.role] is None else free

        await step.play(self.question, self._before(), client, [], self.orchestrator.task)
        return known + bound.largest_nano

    async def _escalate(self) -> None:
        """Pass the question on where the policy abstains; a budget or a wrong key may forbid it."""
        agent = self.orchestrator.escalation
        if agent is None or self.ended_by != "policy" or self._returned():
            return
        made = [call for call in self._before() if call.role == agent.role][:1]
        step, task = Step(1, (agent,), independent=True), self.orchestrator.task
        try:
            if not made:
                await step.play(self.question, [], self._client, made, task)
        except BudgetError as error:
            self.why = str(error)
        except AuthenticationError as error:
            self._end("failure", str(error))
        self.escalated = made[0] if made else None

    async def _run(self, step: Step) -> bool:
        """Play a step; return whether it could be finished."""
        made: list[Call] = []
        try:
            await step.play(
                self.question, self._before(), self._client, made, self.orchestrator.task
            )
        except BudgetError as error:
            self._end("budget", str(error))
        except AuthenticationError as error:
            self._end("failure", str(error))
        if self.ended_by != "policy":
            self.broken = made
            return False
        self.steps.append(made)
        if self.orchestrator.bought == "calls":  # a verdict is known when both calls are
            known = judged(self._before(), self.orchestrator.task)
            self.steps = [[call] for call in known]
        return True

    def _client(self, question: Question, number: int, agent: Agent) -> Client:
        bound = None if self.budget.left_nano is None else self._declared(agent)
        return self.meter.client(question, number, agent, self.budget, bound)

    def _declared(self, agent: Agent) -> int | None:
        """Return the most that a call of an agent may cost, where the bundle declares it."""
        declared = self.orchestrator.bundle.origin.largest_nano or {}
        return declared.get(agent.role, declared.get(agent.model.name))

    def _before(self) -> list[Call]:
        return [call for calls in self.steps for call in calls]

    def _end(self, by: Ending, why: str) -> None:
        self.ended_by, self.why = by, why

    def _answer(self) -> Answer:
        returned = self._returned()
        passed_on = self.escalated.answer if self.escalated else None
        bundle, question = self.orchestrator.bundle, self.question
        return Answer(
            id=question.id,
            answers=returned,
            best=returned[0].text if returned else passed_on,
            cost_nano=self.budget.spent_nano,
            rounds=len(self.steps),
            most_rounds=self.orchestrator.steps,
            bought=self.orchestrator.bought,
            certificate=bundle.certificate,
            caveats=self._caveats(),
            ended_by=self.ended_by,
            trace=self._trace(),
            escalated=self.escalated,
        )

    def _trace(self) -> Trace:
        return structs.replace(
            blank(self.question, self.orchestrator),
            calls=[*self._before(), *self.broken],
            truncated=len(self.steps) < self.orchestrator.steps,
        )

    def _returned(self) -> tuple[Returned, ...]:
        """Return the distinct answers of the set, the best first; where it is cut, at least one.

        Unless answers are promised to be right: then none is better than one that may not be.
        """
        answers = self.episode.answers()
        if selective(self.orchestrator.bundle.certificate):
            return answers
        if not self.steps:
            given = [c for c in self.broken if is_answer(c.answer) and not is_reply(c.role)]
            return tuple(Returned(c.answer or "", 0.0, 1, c.role) for c in given[-1:])
        if self.ended_by == "policy" or answers:
            return answers
        return self.episode.otherwise()

    def _caveats(self) -> tuple[str, ...]:
        bundle = self.orchestrator.bundle
        found = [
            *self.orchestrator.doubts,
            caveats.other_budget(bundle.certificate, self.episode.budget_nano),
            caveats.other_group(bundle.certificate, self.question.group),
            self._by_budget(),
            *caveats.unsaid(bundle, self._before()),
            self._by_failure(),
        ]
        return tuple(clause for clause in found if clause)

    def _by_budget(self) -> str | None:
        """Say what the budget changed."""
        if self.ended_by == "budget":
            most, what = self.orchestrator.steps, self.orchestrator.bought
            return f"the budget cut it after {len(self.steps)} of {most} {what} ({self.why})"
        if self.episode.departed and not self._as_calibrated:
            return "its budget changed what was bought or returned"
        return None

    def _by_failure(self) -> str | None:
        """Say what could not be asked."""
        if self.ended_by == "policy" and self.why:
            return f"the question could not be passed on ({self.why})"
        return f"it could not go on ({self.why})" if self.ended_by == "failure" else None
