"""One live question under a policy: steps are bought until something ends it.

After each step the policy is shown what a replay of the trace would show it, and decides as it was
calibrated.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from farthing.bundle.base import Bundle
from farthing.errors import AuthenticationError, BudgetError
from farthing.money import dollars
from farthing.process.action_space import ActionSpace, action_space
from farthing.process.base import NOTHING, Budget, Decision, State
from farthing.process.play import (
    TurnAction,
    all_actions,
    continued,
    sample_actions,
    threshold_actions,
)
from farthing.promises.kinds.groups import groups_of
from farthing.runtime import validity
from farthing.runtime.answer import Answer, Ending, Returned, selective
from farthing.runtime.base import Agent, Client
from farthing.runtime.call_plan import CallPlan, PlanStep
from farthing.runtime.meter import Meter, QuestionBudget
from farthing.runtime.observation import Observer
from farthing.runtime.protocol import CostBoundClient, judged, trace_of
from farthing.runtime.validity import Validity
from farthing.tasks.base import Question, Task, is_answer
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call
from farthing.traces.trace_kind import PROTOCOL_ROLES, is_reply, replies_of

AS_IT_IS = 1.0
"""The threshold of a policy that is neither sampled nor calibrated: what it scores 1 is done."""

Bounds = Mapping[int, int]
"""Of each line, the most that its next step can cost, in nano-dollars."""


@dataclass(frozen=True)
class ScoredAnswer:
    """One answer, and what the policy made of it when it came."""

    call: Call
    place: int
    """t * L + l for round t and role l."""
    step: int
    """From 0."""
    score: float
    joins: bool
    """Whether it is in the set."""

    def returned(self) -> Returned:
        """Return it as one answer of a set."""
        number = self.call.round if self.call.role in PROTOCOL_ROLES else self.step + 1
        return Returned(self.call.answer or "", self.score, number, self.call.role)


@dataclass
class QuestionRun:
    """One question under a policy, played once, as `process.play` plays a recorded one."""

    plan: CallPlan
    validity: Validity
    task: Task
    question: Question
    meter: Meter
    rng: np.random.Generator
    """Draws the actions of a policy without a threshold."""
    budget_nano: int | None = None
    """What the question may cost, in nano-dollars; None: no limit."""
    budget: QuestionBudget = field(init=False)
    steps: list[list[Call]] = field(default_factory=list)
    """The calls of each round, or each single call, that was made in full."""
    broken: list[Call] = field(default_factory=list)
    """The calls of the round that could not be finished."""
    scored: list[ScoredAnswer] = field(default_factory=list)
    escalated: Call | None = None
    ended_by: Ending = "policy"
    why: str = ""
    budget_ended: bool = False
    """Whether the budget ended it where the policy would have gone on."""
    budget_changed: bool = False
    """Whether the budget changed what was bought or returned, at any turn."""
    _before: Decision | None = None
    """What was decided before the latest step."""
    _ahead: list[list[Call]] = field(default_factory=list)
    """The calls of steps that were made together with the latest, in the order decided."""
    _wanted: int = NOTHING
    """The line that the policy would have bought from without a budget, at the latest turn."""
    _history: list[int] = field(default_factory=list)
    """The line of each step."""
    _single: int | None = None
    """The place of the single best answer."""

    def __post_init__(self) -> None:
        self.budget = QuestionBudget.of(self.budget_nano)

    async def play(self) -> Answer:
        """Take steps until the policy, the budget or a failure ends it."""
        while True:
            bounds = await self._bounds()
            lines = self._decide(bounds)
            if lines[0] == NOTHING or not await self._buy(lines):
                break
        if lines[0] == NOTHING and self.budget_ended and not self._as_calibrated:
            what, most = self.plan.unit.removesuffix("s"), dollars(bounds[self._wanted])
            self._end("budget", f"the next {what} can cost {most}")
        await self._escalate()
        return self._answer()

    @property
    def _bundle(self) -> Bundle:
        return self.plan.bundle

    @property
    def _as_calibrated(self) -> bool:
        certificate = self._bundle.certificate
        return certificate is not None and certificate.question_budget_nano == self.budget_nano

    def _calls(self) -> list[Call]:
        return [call for calls in self.steps for call in calls]

    def _end(self, by: Ending, why: str) -> None:
        self.ended_by, self.why = by, why

    async def _bounds(self) -> Bounds:
        """Return the most that each open line's next step can cost, where there is a budget."""
        if self.budget.left_nano is None:
            return {}
        lines = enumerate(self.plan.lines)
        open_lines = [line for line, steps in lines if self._history.count(line) < len(steps)]
        return {line: await self._bound(self._next(line)) for line in open_lines}

    async def _bound(self, step: PlanStep) -> int:
        """Return the most that a step can cost: as the bundle declares, else by a dry run."""
        declared = {agent.role: self._declared(agent) for agent in step.agents}
        known = sum(nano for nano in declared.values() if nano is not None)
        if None not in declared.values():
            return known
        bound, free = CostBoundClient(), CostBoundClient()

        def client(_: Question, __: int, agent: Agent) -> Client:
            return bound if declared[agent.role] is None else free

        await step.play(self.question, self._calls(), client, [], self.task)
        return known + bound.largest_nano

    def _declared(self, agent: Agent) -> int | None:
        """Return the most that a call of an agent may cost, where the bundle declares it."""
        declared = self._bundle.origin.largest_nano or {}
        return declared.get(agent.role, declared.get(agent.model.name))

    def _decide(self, bounds: Bounds) -> list[int]:
        """Decide after the steps so far; return the lines to buy from at once, or `NOTHING`."""
        state = self._state(bounds)
        uniform = float(self.rng.random()) if state.turn else 0.0
        decision, action = self._decided(state, uniform)
        if state.turn:
            self._score(state, decision, action)
        lines = self._bought(decision, action)
        if state.budget is not None:
            free, unlimited = self._decided(replace(state, budget=None), uniform)
            self._wanted = int(unlimited.line[0])
            self.budget_ended = bool(action.line[0] == NOTHING != unlimited.line[0])
            same = lines == self._bought(free, unlimited)
            self.budget_changed |= not (same and (action.joins == unlimited.joins).all())
        self._before = decision
        return lines

    def _bought(self, decision: Decision, action: TurnAction) -> list[int]:
        """Return the lines that are bought from at the same time, `action.line` in front."""
        more, worth_it = decision.also, decision.go_on[0] >= min(self._kappa or 0.0, 1.0)
        also = more[0].tolist() if more is not None and worth_it else []
        return [int(action.line[0]), *(line for line in also if line != NOTHING)]

    def _decided(self, state: State, uniform: float) -> tuple[Decision, TurnAction]:
        kappa, decision = self._kappa, self._bundle.policy.decide(state)
        if self._before is not None:
            decision = continued(self._before, decision)
        if kappa is not None:
            decision = all_actions(decision, state, kappa)
        if not state.turn:
            return decision, TurnAction(decision.line, np.zeros((1, 0), dtype=bool))
        if kappa is None:
            return decision, sample_actions(decision, np.array([uniform]))
        return decision, threshold_actions(decision, kappa, self._bundle.empty)

    @property
    def _kappa(self) -> float | None:
        """The threshold for the question: its group's, where the promise is per group.

        None where the policy's actions are to be drawn.
        """
        bundle, group = self._bundle, self.question.group
        if bundle.kappa is None:
            return None if bundle.policy.stochastic else AS_IT_IS
        groups = groups_of(bundle.certificate)
        return groups[group].kappa if group in groups else bundle.kappa

    def _state(self, bounds: Bounds) -> State:
        bundle, question = self._bundle, self.question
        policy, origin = bundle.policy, bundle.origin
        space = action_space(policy.space, origin.horizon, len(origin.roles))
        observer = Observer(
            question.text, origin, self.task.normalise, replies_of(policy), question.group
        )
        counts = [0] * len(self.plan.lines)
        places: list[int] = []
        for line in self._history:
            places += space.cells[line, counts[line]].tolist()
            counts[line] += 1
        seen = observer.observe(self._calls(), places)
        lengths = np.array([len(line) for line in self.plan.lines])
        return State(
            seen,
            space,
            (np.arange(space.items) < lengths[:, None])[None],
            np.array([self._history], dtype=np.int64),
            self._budget_of(space, bounds, seen),
            0.0 if self._kappa is None else self._kappa,
        )

    def _budget_of(self, space: ActionSpace, bounds: Bounds, seen: TraceArrays) -> Budget | None:
        """Return the budget as the policy is shown it, of which exactly so much is left.

        The ledger knows it: it has settled tries of unknown cost, and the replies of an LLM that
        was asked what to do. The state takes off again what the calls that it has seen cost.
        """
        left_nano = self.budget.left_nano
        if left_nano is None:
            return None
        largest = np.zeros((1, space.cells.size), dtype=np.int64)
        for line, nano in bounds.items():
            largest[0, space.cells[line, self._history.count(line) :, 0]] = nano
        return Budget(left_nano + int(seen.cost_nano.sum()), largest)

    def _score(self, state: State, decision: Decision, action: TurnAction) -> None:
        """Note what the policy made of the answers of the latest step."""
        calls = [call for call in self.steps[-1] if not is_reply(call.role)]
        for unit, (call, place) in enumerate(zip(calls, state.latest[0].tolist(), strict=True)):
            if call.answer is not None and is_answer(call.answer):
                score, joins = float(decision.answers[0, unit]), bool(action.joins[0, unit])
                step = len(self._history) - 1
                self.scored.append(ScoredAnswer(call, place, step, score, joins))
        if decision.single is not None:
            self._single = int(decision.single[0])

    def _next(self, line: int, ahead: int = 0) -> PlanStep:
        return self.plan.lines[line][self._history.count(line) + ahead]

    def _client(self, question: Question, number: int, agent: Agent) -> Client:
        bound = None if self.budget.left_nano is None else self._declared(agent)
        return self.meter.client(question, number, agent, self.budget, bound)

    async def _buy(self, lines: list[int]) -> bool:
        """Take the next step of the first line; it was made before, or is now with the others."""
        if not self._ahead and not await self._make(lines):
            return False
        self.steps.append(self._ahead.pop(0))
        if self.plan.unit == "calls":  # a verdict is known when both calls are
            self.steps = [[call] for call in judged(self._calls(), self.task)]
        self._history.append(lines[0])
        return True

    async def _make(self, lines: list[int]) -> bool:
        """Make the next steps of lines at the same time; return whether all could be finished."""
        steps = [self._next(line, lines[:place].count(line)) for place, line in enumerate(lines)]
        before, self._ahead = self._calls(), [[] for _ in steps]
        plays = (
            step.play(self.question, before, self._client, made, self.task)
            for step, made in zip(steps, self._ahead, strict=True)
        )
        results = await asyncio.gather(*plays, return_exceptions=True)
        for error in results:
            if isinstance(error, BudgetError):
                self._end("budget", str(error))
            elif isinstance(error, AuthenticationError):
                self._end("failure", str(error))
            elif error is not None:
                raise error
        if self.ended_by != "policy":
            self.broken = [call for made in self._ahead for call in made]
        return self.ended_by == "policy"

    async def _escalate(self) -> None:
        """Pass the question on where the policy abstains; a budget or a wrong key may forbid it."""
        agent = self.plan.escalation
        if agent is None or self.ended_by != "policy" or self._returned():
            return
        made = [call for call in self._calls() if call.role == agent.role][:1]
        try:
            if not made:
                step = PlanStep(1, (agent,), independent=True)
                await step.play(self.question, [], self._client, made, self.task)
        except BudgetError as error:
            self.why = str(error)
        except AuthenticationError as error:
            self._end("failure", str(error))
        self.escalated = made[0] if made else None

    def _returned(self) -> tuple[Returned, ...]:
        """Return the distinct answers of the set, the best first; where it is cut, at least one.

        Unless answers are promised to be right: then none is better than one that may not be.
        """
        members = self._distinct(answer for answer in self.scored if answer.joins)
        if selective(self._bundle.certificate):
            return members
        if not self.steps:
            given = [c for c in self.broken if is_answer(c.answer) and not is_reply(c.role)]
            return tuple(Returned(c.answer or "", 0.0, 1, c.role) for c in given[-1:])
        if self.ended_by == "policy" or members:
            return members
        return self._distinct(self.scored)[:1]

    def _distinct(self, answers: Iterable[ScoredAnswer]) -> tuple[Returned, ...]:
        """Return answers that differ, the best first, as a replay ranks them.

        The single one comes first, then they go by score; of equals the latest.
        """
        ranked = sorted(
            answers, key=lambda a: (a.place == self._single, a.score, a.step, a.place), reverse=True
        )
        distinct: dict[str, Returned] = {}
        for answer in ranked:
            text = self.task.normalise(answer.call.answer or "")
            distinct.setdefault(text, answer.returned())
        return tuple(distinct.values())

    def _answer(self) -> Answer:
        returned, plan = self._returned(), self.plan
        passed_on = self.escalated.answer if self.escalated else None
        calls = _to_its_end([*self._calls(), *self.broken])
        trace = trace_of(
            self.question,
            self.task,
            calls,
            independent=plan.independent,
            truncated=len(self.steps) < plan.most_steps and not any(call.ended for call in calls),
        )
        return Answer(
            id=self.question.id,
            answers=returned,
            best=returned[0].text if returned else passed_on,
            cost_nano=self.budget.spent_nano,
            rounds=len(self.steps),
            most_rounds=plan.most_steps,
            bought=plan.unit,
            certificate=self._bundle.certificate,
            caveats=self._caveats(),
            ended_by=self.ended_by,
            trace=trace,
            escalated=self.escalated,
            provenance=self.validity.provenance,
        )

    def _caveats(self) -> tuple[str, ...]:
        bundle, group = self._bundle, self.question.group
        clauses = [
            *self.validity.invalid_because,
            validity.other_budget(bundle.certificate, self.budget_nano),
            validity.other_group(bundle.certificate, group),
            validity.unread_group(bundle, group),
            self._by_budget(),
            *validity.unsaid(bundle, self._calls()),
            self._by_failure(),
        ]
        return tuple(clause for clause in clauses if clause)

    def _by_budget(self) -> str | None:
        """Say what the budget changed."""
        if self.ended_by == "budget":
            most, what = self.plan.most_steps, self.plan.unit
            return f"the budget cut it after {len(self.steps)} of {most} {what} ({self.why})"
        if self.budget_changed and not self._as_calibrated:
            return "its budget changed what was bought or returned"
        return None

    def _by_failure(self) -> str | None:
        if self.ended_by == "policy" and self.why:
            return f"the question could not be passed on ({self.why})"
        return f"it could not go on ({self.why})" if self.ended_by == "failure" else None


def _to_its_end(calls: list[Call]) -> list[Call]:
    """Return calls without those that only say what a thought had come to when it ended."""
    end = next((place for place, call in enumerate(calls, start=1) if call.ended), len(calls))
    return calls[:end]
