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
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.agents.guide import GuideAgent
from farthing.runtime.agents.plain import PlainAgent
from farthing.runtime.answer import Answer
from farthing.runtime.base import Agent
from farthing.runtime.call_plan import CallPlan, by_call, call_plan
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Dialogue, Independent, Protocol, apart
from farthing.runtime.run import QuestionRun
from farthing.runtime.system import system_of
from farthing.runtime.validity import Validity, validity_of
from farthing.tasks.base import Question, Task
from farthing.traces.parameters import LIMIT
from farthing.traces.system import ALONE, LOGGED, System, prompt_mark
from farthing.traces.trace_kind import PROTOCOL_ROLES


@dataclass(frozen=True)
class PolicyRunner:
    """A bundle, the agents it decides about, and the task; safe to ask many things at once."""

    bundle: Bundle
    protocol: Protocol
    """The agents, as their traces were collected; its number of rounds is the bundle's."""
    task: Task
    meter: Meter = field(default_factory=Meter)
    """Pays for every try; with a journal, nothing is paid twice."""
    escalation: Agent | None = None
    """Answers by itself where the policy abstains; nothing is promised of what it says. Left out
    where the bundle promises to pass questions on: it names whom, among the agents."""
    system: System | None = None
    """What the agents are, prices and parameters included; none: what they say of themselves."""

    validity: Validity = field(init=False, repr=False)
    """Whether the bundle's certificate can hold for an answer of these agents."""
    _plan: CallPlan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse agents that the policy was not trained for, before anything is paid.

        Raises:
            InputError: they have other roles, a pool lacks a model, or the policy buys single
                calls and these agents see one another's, or there is somebody to escalate to and
                the bundle never abstains.
        """
        plan = call_plan(self.bundle, self.protocol, self.escalation)
        ours = system_of(self.protocol) if self.system is None else self.system
        object.__setattr__(self, "_plan", plan)
        object.__setattr__(self, "validity", validity_of(plan, ours))

    @classmethod
    def with_models(cls, bundle: Bundle, models: Mapping[str, Model], task: Task) -> Self:
        """Return a runner whose agents are as plain as can be.

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
            meter: pays for this question; none: the runner's.

        Raises:
            UnpricedModelError: a budget applies to a model without a price.
        """
        rng = rng or np.random.default_rng(crc32(question.id.encode(errors="surrogatepass")))
        plan, task = self._plan, self.task
        run = QuestionRun(
            plan, self.validity, task, question, meter or self.meter, rng, budget_nano
        )
        return await run.play()


def _as_recorded(bundle: Bundle, role: str, model: Model) -> Agent:
    """Return an agent of a pool: one that sends questions alone where the log shows just that."""
    part = (bundle.origin.system or {}).get(role)
    sent = None if part is None or part.kind != LOGGED else part.sent
    if sent is None or sent.around != ALONE or sent.system != (prompt_mark(""),):
        return BaseAgent(model, role=role)
    parameters = sent.parameters or {}
    most, temperature = parameters.get(LIMIT), parameters.get("temperature")
    return PlainAgent(
        model,
        role,
        max_tokens=most if isinstance(most, int) else MAX_TOKENS,
        temperature=1.0 if not isinstance(temperature, int | float) else float(temperature),
    )
