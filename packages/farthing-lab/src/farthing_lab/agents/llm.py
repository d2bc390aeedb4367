"""An LLM that decides: as the policy (paper, section 8.3), or whether to exit (section 8.2).

Their calls are replies, recorded under roles that `traces` knows, so that a replay can decide as
they did.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from farthing.models.base import Message, Model, Prompt
from farthing.runtime.agents.base import AgentParts, AgentSection
from farthing.runtime.base import Agent, AgentReply, CountingClient, SpeakingAgent, Turn
from farthing.tasks.templates import BUILT_IN, NOTHING, PromptTemplates, asked
from farthing_lab.agents.replies import read_exit, read_number

_MOST_TOKENS = 16
_AGREES = {True: "yes", False: "no", None: "unknown"}


class PolicyAgentSection(AgentSection, frozen=True, kw_only=True, tag="policy"):
    """The section `[agents.policy-NAME]`."""

    coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """What it is told to aim at."""

    def agent(self, name: str, parts: AgentParts) -> Agent:
        model, named = parts.models[self.model], name.removeprefix("policy-")
        return LlmPolicyAgent(model, named, prompts=parts.prompts, **self.options())


class ExitSection(AgentSection, frozen=True, kw_only=True, tag="exit"):
    """The section `[agents.exit-ROLE]`."""

    def agent(self, name: str, parts: AgentParts) -> Agent:
        model, answering = parts.models[self.model], name.removeprefix("exit-")
        return LlmExitAgent(model, answering, parts.prompts, **self.options())


@dataclass(frozen=True)
class LlmPolicyAgent(SpeakingAgent):
    """Chooses an action: 1 the base's answer, 2 the guide's, 3 another round."""

    uses: ClassVar = ("policy",)
    """The prompts that it fills."""

    model: Model
    name: str
    """What follows `policy-` in the role, such as the model's name."""
    coverage: float = 0.9
    """Share of right answers that it is told to aim at."""
    prompts: PromptTemplates = BUILT_IN
    max_tokens: int | None = None
    """Most output tokens of a reply; None: 16."""
    temperature: float | None = None
    """Of every round; None: 0."""

    @property
    def role(self) -> str:
        return f"policy-{self.name}"

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        calls = {call.role: call for call in turn.so_far if call.round == turn.round}
        base, guide = calls.get("base"), calls.get("guide")
        uncertainty = guide.uncertainty if guide else None
        messages = self.prompts["policy"].fill(
            {
                "question": asked(turn.question),
                "answer": base.answer if base else None,
                "guide_answer": guide.answer if guide else None,
            },
            {
                "verdict": _AGREES[guide.verdict if guide else None],
                "uncertainty": "unknown" if uncertainty is None else f"{uncertainty:.3f}",
                "coverage": f"{self.coverage:g}",
            },
        )
        completion = await client.ask(self.model, _decision(self, messages))
        return AgentReply(completion.text, read_number(completion.text, 3))


@dataclass(frozen=True)
class LlmExitAgent(SpeakingAgent):
    """Says, after each answer of one role, whether to exit or to continue (Lu et al. 2025)."""

    uses: ClassVar = ("exit",)
    """The prompts that it fills."""

    model: Model
    answering: str
    """Role whose answers it looks at: `base` or `guide`."""
    prompts: PromptTemplates = BUILT_IN
    max_tokens: int | None = None
    """Most output tokens of a reply; None: 16."""
    temperature: float | None = None
    """Of every round; None: 0."""

    @property
    def role(self) -> str:
        return f"exit-{self.answering}"

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        calls = sorted(
            (c for c in turn.so_far if c.role == self.answering), key=lambda call: call.round
        )
        # Each on one line, so that none can pass for several.
        lines = (f"{call.round}. {' '.join((call.answer or NOTHING).split())}" for call in calls)
        answers = "\n".join(lines)
        messages = self.prompts["exit"].fill({"question": asked(turn.question), "answers": answers})
        completion = await client.ask(self.model, _decision(self, messages))
        return AgentReply(completion.text, read_exit(completion.text))


def _decision(agent: LlmPolicyAgent | LlmExitAgent, messages: tuple[Message, ...]) -> Prompt:
    max_tokens, temperature = agent.max_tokens or _MOST_TOKENS, agent.temperature or 0.0
    return Prompt(messages, max_tokens=max_tokens, temperature=temperature)
