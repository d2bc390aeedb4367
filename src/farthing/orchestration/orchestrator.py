"""Answer questions under a trained policy: run rounds until it says stop, and say what is promised.

After each round the policy scores the trace so far as a replay would, and by the same code, so
that it decides live as it was calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from zlib import crc32

import numpy as np
from msgspec import structs

from farthing.budgets.memory_ledger import MemoryLedger
from farthing.errors import AuthenticationError, BudgetError
from farthing.models.base import Model
from farthing.models.money import usd_from_nano
from farthing.orchestration.answer import Answer, Ending, Returned
from farthing.orchestration.base import Agent, Desk, DirectDesk
from farthing.orchestration.base_agent import BaseAgent
from farthing.orchestration.course import Round, course, other_models
from farthing.orchestration.decision import Decision, at_least_one, decide, draw, threshold
from farthing.orchestration.guide_agent import GuideAgent
from farthing.orchestration.longest import Rehearsal
from farthing.orchestration.observation import observed
from farthing.orchestration.purse import Purse
from farthing.orchestration.rounds import Desks, Dialogue, Independent, Plan
from farthing.policies.bundle import Bundle
from farthing.tasks.base import Question, Task
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call, Trace
from farthing.traces.shapes import PROTOCOL_ROLES


def directly(question: Question, number: int, agent: Agent) -> Desk:  # noqa: ARG001 - a `Desks`
    """Open a desk that makes every call there and then."""
    return DirectDesk()


@dataclass(frozen=True)
class Orchestrator:
    """A bundle, the agents it decides about, and the task; safe to ask many things at once."""

    bundle: Bundle
    plan: Plan
    """The agents, as their traces were collected; its number of rounds is the bundle's."""
    task: Task
    desks: Desks = directly
    """Opens the desk of each call: a log's, so that nothing is paid twice, or none."""

    _course: tuple[Round, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse agents that the policy was not trained for, before anything is paid.

        Raises:
            InputError: they have other roles, or a pool lacks a model.
        """
        object.__setattr__(self, "_course", course(self.bundle, self.plan))

    @classmethod
    def with_models(cls, bundle: Bundle, models: Mapping[str, Model], task: Task) -> Self:
        """Return an orchestrator whose agents are as plain as can be.

        Args:
            bundle: the policy.
            models: who fills each role: `base` and `guide` of the paper's dialogue; else the models
                of a pool, by the names that they have in its traces.
            task: says when two answers are the same.

        Raises:
            InputError: the policy was trained for other roles or models.
        """
        if models.keys() != set(PROTOCOL_ROLES):
            pool = tuple(BaseAgent(model, role=name) for name, model in models.items())
            return cls(bundle, Independent(pool, 1, task), task)
        agents = (BaseAgent(models["base"]), GuideAgent(models["guide"]))
        return cls(bundle, Dialogue(agents, bundle.origin.horizon), task)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the bundle's certificate holds for no answer of these agents, a clause each."""
        other = other_models(self.bundle, self._course)
        certificate = self.bundle.certificate
        frozen = certificate is not None and certificate.guarantee == "online"
        found = [other, "the online threshold is no longer updated" if frozen else None]
        return tuple(clause for clause in found if clause)

    async def answer(
        self,
        question: Question,
        *,
        budget_nano: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> Answer:
        """Answer one question.

        A call that failed is part of the trace, as no answer, and the policy decides about it. A
        wrong key and a spent budget end the question with what there is. A round after the first
        is begun only if the most that it can cost fits the budget; where it does not, and the
        policy would have gone on, the set is what the rounds so far give: at least their best
        answer.

        Args:
            question: what is asked; `gold` may be empty.
            budget_nano: the most that may be paid for it, in nano-dollars; none: no limit. It is
                hard for models with `Pursed` inside their retries.
            rng: draws the actions of a policy without a threshold; by default the question's id
                is its seed.

        Raises:
            UnpricedModelError: a budget applies to a model without a price.
        """
        rng = rng or np.random.default_rng(crc32(question.id.encode(errors="surrogatepass")))
        return await _Episode(self, question, _purse(budget_nano), rng).play(self._course)


def _purse(budget_nano: int | None) -> Purse:
    return Purse() if budget_nano is None else Purse(MemoryLedger(budget_nano))


@dataclass
class _Episode:
    """One question under way."""

    orchestrator: Orchestrator
    question: Question
    purse: Purse
    rng: np.random.Generator
    rounds: list[list[Call]] = field(default_factory=list)
    """The calls of each round that was run in full."""
    broken: list[Call] = field(default_factory=list)
    """The calls of the round that could not be finished."""
    decision: Decision | None = None
    """After the last full round."""
    ended_by: Ending = "policy"
    why: str = ""

    async def play(self, planned: tuple[Round, ...]) -> Answer:
        """Run rounds until the policy, the budget or a failure ends it."""
        for step in planned:
            if not await self._affordable(step) or not await self._run(step):
                break
            self.decision = self._decide(self._seen())
            if not self.decision.go_on:
                break
        return self._answer()

    async def _affordable(self, step: Round) -> bool:
        """Return whether a round fits the budget at its dearest; the first is tried anyhow."""
        left = self.purse.left_nano
        if left is None:
            return True
        rehearsal = Rehearsal()
        task = self.orchestrator.task
        await step.play(self.question, self._before(), lambda *_: rehearsal, [], task)
        if not self.rounds or rehearsal.largest_nano <= left:
            return True
        self._end("budget", f"the next round can cost ${usd_from_nano(rehearsal.largest_nano):.3g}")
        return False

    async def _run(self, step: Round) -> bool:
        """Run a round; return whether it could be finished."""
        made: list[Call] = []
        try:
            await step.play(self.question, self._before(), self._desk, made, self.orchestrator.task)
        except BudgetError as error:
            self._end("budget", str(error))
        except AuthenticationError as error:
            self._end("failure", str(error))
        if self.ended_by == "policy":
            self.rounds.append(made)
            return True
        self.broken = made
        return False

    def _desk(self, question: Question, number: int, agent: Agent) -> Desk:
        return self.purse.desk(self.orchestrator.desks(question, number, agent))

    def _before(self) -> list[Call]:
        return [call for calls in self.rounds for call in calls]

    def _end(self, by: Ending, why: str) -> None:
        self.ended_by, self.why = by, why

    def _seen(self) -> TraceArrays:
        """Return what the policy sees: the full rounds; before the first, what there is."""
        calls = self._before() or self.broken
        return observed(
            structs.replace(self._trace(), calls=calls), self.orchestrator.bundle.origin
        )

    def _decide(self, seen: TraceArrays) -> Decision:
        bundle = self.orchestrator.bundle
        kappa = threshold(bundle, self.question.group)
        if kappa is None:
            return draw(bundle, seen, float(self.rng.random()))
        return decide(bundle, seen, kappa)

    def _answer(self) -> Answer:
        returned = self._returned()
        bundle, question = self.orchestrator.bundle, self.question
        return Answer(
            id=question.id,
            answers=returned,
            best=returned[0].text if returned else None,
            cost_nano=self.purse.spent_nano,
            rounds=len(self.rounds),
            certificate=bundle.certificate,
            caveats=self._caveats(),
            ended_by=self.ended_by,
            trace=self._trace(),
        )

    def _trace(self) -> Trace:
        question = self.question
        return Trace(
            id=question.id,
            question=question.text,
            gold=list(question.gold),
            calls=[*self._before(), *self.broken],
            task=self.orchestrator.task.name,
            group=question.group,
            split=question.split,  # type: ignore[arg-type]  # the loaders check it
            independent=self.orchestrator.plan.independent,
            truncated=len(self.rounds) < self.orchestrator.bundle.origin.horizon,
        )

    def _returned(self) -> tuple[Returned, ...]:
        """Return the distinct answers of the set, the best first."""
        rounds = self.rounds or [self.broken]
        if not rounds[0]:
            return ()
        seen = self._seen()
        nothing = np.zeros(seen.answer.shape[1:])
        decision = self.decision or Decision(go_on=False, member=nothing > 0, score=nothing)
        if self.ended_by != "policy":
            decision = at_least_one(decision, seen)
        found: dict[int, Returned] = {}
        for t, place in decision.leaves:
            role = seen.roles[place]
            call = next(c for c in rounds[t] if len(rounds[t]) == 1 or c.role == role)
            code = int(seen.answer[0, t, place])
            score = float(decision.score[t, place])
            found.setdefault(code, Returned(call.answer or "", score, t + 1, call.role))
        return tuple(found.values())

    def _caveats(self) -> tuple[str, ...]:
        caveats = list(self.orchestrator.doubts)
        certificate, group = self.orchestrator.bundle.certificate, self.question.group
        if certificate is not None and certificate.groups and group not in certificate.groups:
            caveats.append(f"the question's group, {group or 'none'}, was not calibrated")
        if self.ended_by == "budget":
            rounds = f"after {len(self.rounds)} of {self.orchestrator.bundle.origin.horizon} rounds"
            caveats.append(f"the budget cut it {rounds} ({self.why})")
        if self.ended_by == "failure":
            caveats.append(f"it could not go on ({self.why})")
        return tuple(caveats)
