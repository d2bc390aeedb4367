"""The guide agent: reads the base's reasoning, and says yes, or no and its own answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import msgspec

from farthing.errors import AuthenticationError, ModelError
from farthing.models.base import Model, Prompt, TokenLogprob
from farthing.runtime.agents.base import AgentParts, AgentSection, TopLogprobs
from farthing.runtime.base import Agent, AgentReply, CountingClient, SpeakingAgent, Turn
from farthing.tasks.templates import BUILT_IN, PromptTemplates, asked
from farthing_lab.agents.replies import read_verdict

_VERDICT_TOKENS = 8
"""A sample is asked for its verdict alone."""


class GuideSection(AgentSection, frozen=True, kw_only=True, tag="guide"):
    """The section of a guide in a dialogue."""

    samples: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """How often a guide without log-probabilities is asked again."""
    top_logprobs: TopLogprobs | None = None
    """Alternatives to each token to ask for; 0 asks for no log-probabilities."""

    def agent(self, name: str, parts: AgentParts) -> Agent:
        return GuideAgent(parts.models[self.model], parts.prompts, name, **self.options())


@dataclass(frozen=True)
class GuideAgent(SpeakingAgent):
    """Judges the base's answer of the same round, without reasoning: it mostly reads.

    Its answer is the base's where it agrees. Its uncertainty is the entropy of its verdict, in nats
    from 0 to log 2: of the yes/no token, where the model gives probabilities, else of the verdicts
    of several samples, whose costs count.
    """

    uses: ClassVar = ("guide",)
    """The prompts that it fills."""

    model: Model
    prompts: PromptTemplates = BUILT_IN
    role: str = "guide"
    max_tokens: int = 64
    top_logprobs: int = 5
    """Alternatives to ask for; 0 where the endpoint does not understand the request."""
    samples: int = 5
    """How many to draw where there are no probabilities; 0 for no uncertainty then."""
    temperature: float | None = None
    """Of its verdict; None: 0. The samples are drawn at 1."""

    def doubt(self, acts: Mapping[str, int]) -> str | None:
        """Say that without log-probabilities it is asked more often than its verdicts need.

        Args:
            acts: role to the times that it still has to act.
        """
        again = self.samples * acts.get(self.role, 0)
        if not again:
            return None
        why = "where its endpoint returns no log-probabilities"
        if not self.top_logprobs:
            why = "since top_logprobs = 0 asks for no log-probabilities"
        return (
            f"{self.role}'s model {self.model.name} is asked {self.samples} more "
            f"time{'s' if self.samples > 1 else ''} for each verdict {why}: at most "
            f"{again:,} of these calls; samples = 0 under [agents.{self.role}] goes "
            "without them, and without its uncertainty"
        )

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        base = next((c for c in turn.so_far if c.role == "base" and c.round == turn.round), None)
        answer = base.answer if base else None
        messages = self.prompts["guide"].fill(
            {
                "question": asked(turn.question),
                "reasoning": base.text if base else None,
                "answer": answer,
            }
        )
        prompt = Prompt(
            messages,
            max_tokens=self.max_tokens,
            temperature=self.temperature or 0.0,
            top_logprobs=self.top_logprobs,
        )
        completion = await client.ask(self.model, prompt)
        verdict = read_verdict(completion.text)
        uncertainty = token_entropy(completion.logprobs)
        if uncertainty is None:
            uncertainty = await self._disagreement(prompt, client)
        return AgentReply(
            completion.text,
            answer if verdict.agrees else verdict.correction,
            verdict.agrees,
            uncertainty,
        )

    async def _disagreement(self, prompt: Prompt, client: CountingClient) -> float | None:
        """Return the entropy of the verdicts of several samples; one that fails is left out."""
        again = replace(prompt, max_tokens=_VERDICT_TOKENS, temperature=1.0, top_logprobs=0)
        verdicts = []
        for seed in range(1, self.samples + 1):
            try:
                sample = await client.ask(self.model, replace(again, seed=seed))
            except AuthenticationError:
                raise
            except ModelError:
                continue
            verdicts.append(read_verdict(sample.text).agrees)
        readable = [verdict for verdict in verdicts if verdict is not None]
        return binary_entropy(sum(readable) / len(readable)) if readable else None


def token_entropy(logprobs: Sequence[TokenLogprob]) -> float | None:
    """Return the entropy, in nats, of the first word's token, renormalised over yes and no.

    All spellings count: " Yes", "yes", "YES". None where the first word is neither.

    >>> half = TokenLogprob("Yes", math.log(0.4), (("Yes", math.log(0.4)), (" no", math.log(0.4))))
    >>> round(token_entropy([half]), 4)
    0.6931
    """
    first = next((t for t in logprobs if any(c.isalnum() for c in t.token)), None)
    if first is None or _word(first.token) not in {"yes", "no"}:
        return None
    likely = {first.token: first.logprob, **dict(first.top)}
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in likely.items():
        if _word(token) in mass:
            mass[_word(token)] += math.exp(min(logprob, 0.0))
    total = mass["yes"] + mass["no"]
    return binary_entropy(mass["yes"] / total) if total > 0 else None


def _word(token: str) -> str:
    return "".join(c for c in token if c.isalnum()).casefold()


def binary_entropy(p: float) -> float:
    """Return the entropy of a yes with probability p, in nats.

    >>> binary_entropy(0.0), round(binary_entropy(0.5), 4)
    (0.0, 0.6931)
    """
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0) or 0.0
