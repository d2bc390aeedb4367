"""The agent that asks as the client asked: the task's system prompt, and the question."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

from farthing.models.base import MAX_TOKENS, Message, Model, Prompt
from farthing.runtime.base import AgentReply, CountingClient, SpeakingAgent, Turn
from farthing.traces.system import QUESTION, SentRequest, sent_as


@dataclass(frozen=True)
class ChatAgent(SpeakingAgent):
    """Sends a conversation of one question, and reads the answer out of the whole reply.

    What it sends is part of the system that a certificate is about: system prompt, temperature and
    the most tokens.
    """

    uses: ClassVar = ("system",)
    """The prompts that it sends."""

    model: Model
    role: str
    read: Callable[[str], str | None]
    """Reply to the answer in it; None where there is none."""
    system: str = ""
    max_tokens: int = MAX_TOKENS
    temperature: float = 1.0

    @property
    def prompts(self) -> dict[str, SimpleNamespace]:
        """The system prompt, as a system of traces takes its fingerprint."""
        return {"system": SimpleNamespace(messages=self.system)}

    @property
    def sent(self) -> SentRequest:
        """What its call sends."""
        asked_for = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        messages = (("system", self.system), ("user", QUESTION))
        return sent_as(messages, asked_for, "the whole reply")

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        said = (Message("system", self.system),) if self.system else ()
        messages = (*said, Message("user", turn.question.text))
        prompt = Prompt(messages, max_tokens=self.max_tokens, temperature=self.temperature)
        completion = await client.ask(self.model, prompt)
        return AgentReply(completion.text, self.read(completion.text) or None)
