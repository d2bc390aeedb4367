"""Answer questions under a trained policy: buy calls until it says stop, and say what is promised.

After each step, a round or a single call, the policy scores what is known as a replay would, so
that it decides live as it was calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from zlib import crc32

import numpy as np

from farthing.bundle.base import Bundle
from farthing.models.base import MAX_TOKENS, Model
from farthing.runtime import validity
from farthing.runtime.answer import Answer, Bought
from farthing.runtime.base import Agent
from farthing.runtime.base_agent import BaseAgent
from farthing.runtime.episode import Episode
from farthing.runtime.guide_agent import GuideAgent
from farthing.runtime.meter import Meter, QuestionBudget
from farthing.runtime.plain_agent import PlainAgent
from farthing.runtime.rounds import Dialogue, Independent, Plan, apart
from farthing.runtime.steps import Lines, by_call, course, passed_on_to
from farthing.runtime.system import system_of
from farthing.runtime.under_way import QuestionUnderWay, blank
from farthing.tasks.base import Question, Task
from farthing.traces.parameters import LIMIT
from farthing.traces.system import ALONE, LOGGED, Provenance, System, prompt_mark
from farthing.traces.trace_kind import PROTOCOL_ROLES


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
    provenance: Provenance = field(init=False, repr=False)
    """Whether these agents are asked as those in the bundle's traces were."""
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
        doubts = validity.of_all(self.bundle, self.plan, self._lines, ours)
        object.__setattr__(self, "doubts", doubts)
        provenance = validity.provenance_of(self.bundle, self._lines, ours)
        object.__setattr__(self, "provenance", provenance)

    @classmethod
    def with_models(cls, bundle: Bundle, models: Mapping[str, Model], task: Task) -> Self:
        """Return an orchestrator whose agents are as plain as can be.

        Models of a pool whose log shows that questions were sent alone are sent them alone.

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
            pool = tuple(_as_recorded(bundle, name, model) for name, model in models.items())
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
        asked = QuestionUnderWay(
            self, question, QuestionBudget.of(budget_nano), episode, meter or self.meter
        )
        return await asked.play()


def _as_recorded(bundle: Bundle, role: str, model: Model) -> Agent:
    """Return an agent of a pool: one that sends questions alone where the log shows just that."""
    part = (bundle.origin.system or {}).get(role)
    sent = None if part is None or part.kind != LOGGED else part.sent
    if sent is None or sent.around != ALONE or sent.system != (prompt_mark(""),):
        return BaseAgent(model, role=role)
    asked = sent.parameters or {}
    most, temperature = asked.get(LIMIT), asked.get("temperature")
    return PlainAgent(
        model,
        role,
        max_tokens=most if isinstance(most, int) else MAX_TOKENS,
        temperature=1.0 if not isinstance(temperature, int | float) else float(temperature),
    )
