"""A guide that works the question out by itself, and agrees where its answer is the base's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from farthing.models.base import MAX_TOKENS, Model, Prompt, TokenLogprob
from farthing.runtime.base import Client, Turn
from farthing.runtime.guide_agent import binary_entropy
from farthing.runtime.usage import CountingClient, Said, recorded
from farthing.tasks.base import Task
from farthing.tasks.replies import read_answer
from farthing.tasks.templates import BUILT_IN, Prompts, asked
from farthing.traces.base import Call


@dataclass(frozen=True)
class SolvingGuide:
    """Judges the base's answer of the same round by an answer of its own.

    It is for models that solve better than they judge, and it pays for a whole solution each time.
    Its verdict is that both answers are the same, as the task has it. Its uncertainty is the
    entropy of a yes with the probability of its own answer's tokens, in nats from 0 to log 2; None
    where the model gives no probabilities.
    """

    uses: ClassVar = ("base",)
    """The prompts that it fills."""

    model: Model
    task: Task
    prompts: Prompts = BUILT_IN
    role: str = "guide"
    max_tokens: int = MAX_TOKENS
    temperature: float | None = None
    """None: 0."""

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the call; where either has no answer, `verdict` is None."""
        return await recorded(self, turn, client, self._speak)

    async def _speak(self, turn: Turn, client: CountingClient) -> Said:
        prompt = Prompt(
            self.prompts["base"].fill({"question": asked(turn.question)}),
            max_tokens=self.max_tokens,
            temperature=self.temperature or 0.0,
            top_logprobs=1,
            seed=turn.round,
        )
        completion = await client.ask(self.model, prompt)
        answer = read_answer(completion.text)
        base = next((c for c in turn.so_far if c.role == "base" and c.round == turn.round), None)
        theirs = base.answer if base else None
        known = None in {answer, theirs}
        same = (
            None
            if known
            else self.task.normalise(answer or "") == self.task.normalise(theirs or "")
        )
        likely = probability(completion.logprobs, completion.text, answer or "")
        uncertainty = None if likely is None else binary_entropy(likely)
        return Said(completion.text, answer, same, uncertainty)

    def _same(self, answer: str, other: str) -> bool:
        return self.task.normalise(answer) == self.task.normalise(other)


def probability(tokens: Sequence[TokenLogprob], text: str, part: str) -> float | None:
    """Return how likely the tokens were that wrote a part of a text where it stands last.

    None where there are no tokens, or they do not make up the text.

    >>> half = TokenLogprob("4", math.log(0.5))
    >>> probability([TokenLogprob("so ", -1.0), half, TokenLogprob(".", 0.0)], "so 4.", "4")
    0.5
    """
    start, at, total = text.rfind(part), 0, 0.0
    if start < 0 or not part or not "".join(one.token for one in tokens).startswith(text):
        return None
    for one in tokens:
        end = at + len(one.token)
        if at < start + len(part) and end > start:
            total += min(one.logprob, 0.0)
        at = end
    return math.exp(total)
