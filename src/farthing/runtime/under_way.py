"""One question under way: steps are bought until the policy, the budget or a failure ends it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from farthing.errors import AuthenticationError, BudgetError
from farthing.money import dollars
from farthing.process.base import NOTHING
from farthing.runtime import validity
from farthing.runtime.answer import Answer, Ending, Returned, selective
from farthing.runtime.base import Agent, Client
from farthing.runtime.cost_bound import CostBoundClient
from farthing.runtime.episode import Bounds, Episode
from farthing.runtime.meter import Meter, QuestionBudget
from farthing.runtime.rounds import judged
from farthing.runtime.steps import Step
from farthing.tasks.base import Question, is_answer
from farthing.traces.base import Call, Trace
from farthing.traces.trace_kind import is_reply

if TYPE_CHECKING:
    from farthing.runtime.orchestrator import Orchestrator


def blank(question: Question, orchestrator: "Orchestrator") -> Trace:
    """Return the trace of a question before anything was asked."""
    return Trace(
        id=question.id,
        question=question.text,
        gold=list(question.gold),
        calls=[],
        task=orchestrator.task.name,
        group=question.group,
        split=question.split,  # type: ignore[arg-type]  # the loaders check it
        **question.beside,
        independent=orchestrator.plan.independent,
        truncated=True,
    )


@dataclass
class QuestionUnderWay:
    """One question that an orchestrator answers; it is played once."""

    orchestrator: "Orchestrator"
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
            provenance=self.orchestrator.provenance,
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
            validity.other_budget(bundle.certificate, self.episode.budget_nano),
            validity.other_group(bundle.certificate, self.question.group),
            validity.unread_group(bundle, self.question.group),
            self._by_budget(),
            *validity.unsaid(bundle, self._before()),
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
