"""An agent that sends a question as it is: for models that need no instruction."""

from collections.abc import Callable
from dataclasses import dataclass

from farthing.models.base import MAX_TOKENS, Message, Model, Prompt
from farthing.runtime.base import Client, CountingClient, Said, Turn, recorded
from farthing.tasks.templates import asked
from farthing.traces.base import Call
from farthing.traces.system import QUESTION, Sent, sent_as


@dataclass(frozen=True)
class PlainAgent:
    """Sends the question alone, and takes its answer from the whole reply."""

    model: Model
    role: str
    read: Callable[[str], str | None] = str.strip
    """Reply to the answer in it, such as the task's `normalise`; None where there is none."""
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0

    @property
    def sent(self) -> Sent:
        """What its call sends where it makes one by itself."""
        asked_for = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        return sent_as((("user", QUESTION),), asked_for, "the whole reply")

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the call; a blank reply is recorded with `answer=None`."""
        return await recorded(self, turn, client, self._speak)

    async def _speak(self, turn: Turn, client: CountingClient) -> Said:
        messages = (Message("user", asked(turn.question)),)
        prompt = Prompt(messages, max_tokens=self.max_tokens, temperature=self.temperature)
        completion = await client.ask(self.model, prompt)
        return Said(completion.text, self.read(completion.text) or None)
