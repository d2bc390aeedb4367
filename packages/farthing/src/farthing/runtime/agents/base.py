"""The base agent: reasons in the open, then answers; and what every section of an agent has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from farthing.models.base import MAX_TOKENS, Message, Model, Prompt
from farthing.runtime.base import Agent, AgentReply, Closable, CountingClient, SpeakingAgent, Turn
from farthing.tasks.replies import read_answer
from farthing.tasks.templates import BUILT_IN, NOTHING, PromptTemplates, asked
from farthing.traces.system import QUESTION, SentRequest, sent_as
from farthing.traces.token_moments import of_tokens

Positive = Annotated[int, msgspec.Meta(ge=1)]
TopLogprobs = Annotated[int, msgspec.Meta(ge=0, le=20)]
_VERDICTS = {True: "correct", False: "not correct", None: "none that can be read"}


@dataclass(frozen=True)
class AgentParts:
    """What the agents of a job are made of."""

    models: Mapping[str, Model]
    prompts: PromptTemplates
    closing: list[Closable] | None = None
    """Takes what agents open, to be closed after them; None: nothing is opened."""


class AgentSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The fields that every section `[agents.NAME]` of a job may have, whichever its kind.

    What is None is as the agent has it.
    """

    model: str
    """Name of a section `[models.NAME]`."""
    max_tokens: Positive | None = None
    """Most output tokens of a reply."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    """Of every round."""

    def check(self, file: str, field: str) -> None:
        """Refuse fields that do not fit one another.

        Raises:
            ConfigError: they do not; the message names the file and the field of the section.
        """

    def agent(self, name: str, parts: AgentParts) -> Agent:
        """Return the agent of the section `[agents.NAME]`."""
        raise NotImplementedError

    def options(self, *beside: str) -> dict[str, Any]:
        """Return the fields that are given, but for the model and those named."""
        fields = ((field, getattr(self, field)) for field in self.__struct_fields__)
        aside = {"model", *beside}
        return {field: value for field, value in fields if field not in aside and value is not None}


class BaseSection(AgentSection, frozen=True, kw_only=True, tag="base"):
    """The section of an agent that answers without tools."""

    search: None = None
    """With it, the section is a `ReactSection`."""
    top_logprobs: TopLogprobs | None = None
    """Alternatives to each token to ask for; 0 asks for no log-probabilities."""

    def agent(self, name: str, parts: AgentParts) -> Agent:
        """Return the agent."""
        return BaseAgent(parts.models[self.model], parts.prompts, name, **self.options())


@dataclass(frozen=True)
class BaseAgent(SpeakingAgent):
    """Answers by chain of thought.

    In a later round it sees its earlier replies and the guide's verdicts on them, where the turn
    shows them. Unless it is told otherwise, round 1 is at temperature 0 and later ones at 1 (paper,
    section 5).
    """

    uses: ClassVar = ("base", "review")
    """The prompts that it fills."""

    model: Model
    prompts: PromptTemplates = BUILT_IN
    role: str = "base"
    max_tokens: int = MAX_TOKENS
    temperature: float | None = None
    """Of every round; None for the paper's."""
    stream: int | None = None
    """Sets its samples apart from those of others that send the same; see `sampled`."""
    top_logprobs: int | None = None
    """Alternatives to each token to ask for. From 1 on, the trace has the reply's `surprisal` and
    `varentropy` where the model gives log-probabilities."""

    @property
    def sent(self) -> SentRequest:
        """What its call sends where it makes one by itself."""
        template = self.prompts["base"]
        usual = 1.0 if self.stream == 0 else 0.0
        temperature = usual if self.temperature is None else self.temperature
        asked_for = {"max_tokens": self.max_tokens, "temperature": temperature}
        messages = template.messages
        return sent_as(messages, asked_for, "an answer line", quoted=not template.whole)

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        first = self.prompts["base"].fill({"question": asked(turn.question)})
        messages = (*first, *history(turn, self.role, self.prompts))
        prompt = replace(sampled(self, messages, turn), top_logprobs=self.top_logprobs or 0)
        completion = await client.ask(self.model, prompt)
        told = of_tokens([token.logprob for token in completion.logprobs])
        return AgentReply(completion.text, read_answer(completion.text), numbers=told)


@runtime_checkable
class Sampler(Protocol):
    """An agent that samples its replies."""

    @property
    def max_tokens(self) -> int:
        """Most output tokens of a reply."""
        ...

    @property
    def temperature(self) -> float | None:
        """Of every round; None for the paper's."""
        ...

    @property
    def stream(self) -> int | None:
        """Sets its samples apart from those of others that send the same."""
        ...


STREAM = 1_000_000
"""What a stream adds to a seed; more than there are rounds."""


def sampled(
    agent: Sampler, messages: tuple[Message, ...], turn: Turn, stop: tuple[str, ...] = ()
) -> Prompt:
    """Return an agent's prompt, at its temperature or that of the round.

    Later rounds carry their number as the seed, so that equal messages are different attempts. Two
    roles that send the same to one model have streams of their own, or they would draw the same.
    In stream 0 round 1 is a sample as the others are.
    """
    later = turn.round > 1 or agent.stream == 0
    usual = 1.0 if later else 0.0
    return Prompt(
        messages,
        max_tokens=agent.max_tokens,
        temperature=usual if agent.temperature is None else agent.temperature,
        stop=stop,
        seed=turn.round + STREAM * (agent.stream or 0) if later else None,
    )


def history(turn: Turn, role: str, prompts: PromptTemplates) -> Iterator[Message]:
    """Yield the earlier rounds as a conversation: each reply of a role, and the verdict on it."""
    calls = {(call.round, call.role): call for call in turn.so_far}
    for number in range(1, turn.round):
        reply, guide = calls.get((number, role)), calls.get((number, "guide"))
        if reply is not None:
            yield Message("assistant", reply.text or NOTHING)
            yield from prompts["review"].fill(
                {"answer": guide.answer if guide else None},
                {"verdict": _VERDICTS[guide.verdict if guide else None]},
            )


@dataclass(frozen=True)
class PlainAgent(SpeakingAgent):
    """Sends the question alone, or after a system prompt; its answer is the whole reply."""

    model: Model
    role: str
    read: Callable[[str], str | None] = str.strip
    """Reply to the answer in it, such as the task's `normalise`; None where there is none."""
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0
    system: str = ""

    @property
    def sent(self) -> SentRequest:
        """What its call sends where it makes one by itself."""
        asked_for = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        above = (("system", self.system),) if self.system else ()
        return sent_as((*above, ("user", QUESTION)), asked_for, "the whole reply")

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        above = (Message("system", self.system),) if self.system else ()
        messages = (*above, Message("user", asked(turn.question)))
        prompt = Prompt(messages, max_tokens=self.max_tokens, temperature=self.temperature)
        completion = await client.ask(self.model, prompt)
        return AgentReply(completion.text, self.read(completion.text) or None)
