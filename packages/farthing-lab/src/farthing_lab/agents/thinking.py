"""A model whose thought is stopped at cuts, answers there, and is gone on with from the same place.

*Budget forcing* (Muennighoff et al. 2025, "s1: Simple test-time scaling", section 3): where a cut
is reached the thought is closed and the answer asked for; the next cut goes on from what was
thought so far, without that answer. So the endpoint must go on from a message that the assistant
has begun. Where its reply begins with that message again, as those of llama.cpp's server do, one
probe settles whether it repeats what it goes on from.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, ClassVar

import msgspec
from msgspec import structs

from farthing.errors import ConfigError
from farthing.models.base import MAX_TOKENS, Completion, Message, Model, Prompt, TokenLogprob
from farthing.money import usd_from_nano
from farthing.runtime.agents.base import AgentParts, AgentSection, TopLogprobs
from farthing.runtime.base import Agent, AgentReply, Client, CountingClient, Turn, recorded
from farthing.tasks.replies import read_answer
from farthing.tasks.templates import BUILT_IN, PromptTemplates, asked
from farthing.traces.base import Call
from farthing.traces.pool import THOUGHT
from farthing.traces.system import Setting, fingerprint
from farthing.traces.trace_kind import ANSWERING, READ_AGAIN, cut_name

MOST_TOKENS = 1_000_000
"""Tokens of a thought, at most: more than any model thinks."""
Tokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
OPENS = "<think>\n"
CLOSES = "\n</think>\n\nAnswer: "
_BEGUN = "Pebble after pebble, the jay"
PROBE = Prompt((Message("user", "Go on."), Message("assistant", _BEGUN)), max_tokens=8)
"""Asks what an endpoint does with a begun message: nobody would begin a reply so."""


class ThinkingSection(AgentSection, frozen=True, kw_only=True, tag="thinking"):
    """The section `[agents.thought]`."""

    cuts: Annotated[tuple[Tokens, ...], msgspec.Meta(min_length=2)]
    """Tokens of thought up to each cut, in ascending order; the last is the full thought."""
    opens: str | None = None
    """What a thought begins with; empty where the model's own template writes it."""
    closes: str | None = None
    """What ends a thought and leads to its answer; the first line of it ends a thought too."""
    top_logprobs: TopLogprobs | None = None
    """Alternatives to each token of an answer to ask for."""

    def check(self, file: str, field: str) -> None:
        if any(after <= before for before, after in pairwise(self.cuts)):
            problem = "must ascend, as [256, 512, 1024]; each is the tokens of thought up to it"
            raise ConfigError(file, f"{field}.cuts", problem)
        if self.closes is not None and not self.closes.strip():
            raise ConfigError(file, f"{field}.closes", "is empty; give what ends a thought")

    def agent(self, name: str, parts: AgentParts) -> Agent:
        model, prompts = parts.models[self.model], parts.prompts
        return ThinkingAgent(model, role=name, prompts=prompts, **self.options())


@dataclass
class Continuation:
    """Whether an endpoint repeats the message that it goes on from."""

    repeats: bool | None = None
    """None: nothing asked for that yet."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def after(self, client: CountingClient, model: Model, prompt: Prompt) -> Completion:
        """Have a model go on from a prompt; return what it adds."""
        done = await client.ask(model, prompt)
        new = _new(prompt.messages[-1], done.text)
        if new is None:
            return done
        async with self._asking:
            if self.repeats is None:
                said = await client.beside().ask(model, PROBE)
                self.repeats = _new(PROBE.messages[-1], said.text) is not None
        return replace(done, text=new) if self.repeats else done


@dataclass(frozen=True)
class ThinkingAgent:
    """Thinks up to the cut of its round and answers there; in the next it thinks on.

    A thought that ends before its cut says the same at every later one, for nothing.
    """

    uses: ClassVar = ("base",)
    """The prompts that it fills."""
    probe: ClassVar = PROBE
    """What its model is asked once, beside all questions."""

    model: Model
    cuts: tuple[int, ...]
    """Tokens of thought up to each cut, ascending."""
    prompts: PromptTemplates = BUILT_IN
    role: str = THOUGHT[0]
    opens: str = OPENS
    closes: str = CLOSES
    max_tokens: int = MAX_TOKENS
    """Most output tokens of an answer, without the thought."""
    temperature: float = 0.0
    top_logprobs: int = 0
    """Alternatives to each token of an answer to ask for. From 1 on, the trace has the answer's
    `mean_logprob` and `entropy` where the model gives log-probabilities."""
    continuation: Continuation = field(default_factory=Continuation, repr=False, compare=False)

    def at(self, number: int) -> "ThinkingAgent":
        """Return an agent that thinks up to one cut, numbered from 1, without answering before."""
        return replace(self, cuts=self.cuts[number - 1 : number], role=cut_name(number))

    def marks(self) -> dict[str, Setting]:
        """Return each cut by name, and a fingerprint of what is put around a thought."""
        cuts = {cut_name(number): most for number, most in enumerate(self.cuts, start=1)}
        return {**cuts, "around": fingerprint([self.opens, self.closes])}

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the answer at the round's cut; where the thought has ended before, that one."""
        earlier = [call for call in turn.so_far if call.role == self.role]
        if earlier and earlier[-1].ended:
            free = {"input_tokens": 0, "output_tokens": 0, "latency_s": 0.0, "cost_usd": 0.0}
            return structs.replace(earlier[-1], round=turn.round, text=None, **free)
        return await recorded(self, turn, client, self._speak)

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        first = self.prompts["base"].fill({"question": asked(turn.question)})
        thought, reached = "", 0  # what was thought at earlier cuts, and the last of these
        for call in turn.so_far:
            if call.role == self.role and call.text is not None:
                thought += call.text.partition(self.closes)[0]
                reached = self.cuts[call.round - 1]
        prompt = Prompt(
            (*first, *_begun(self.opens + thought)),
            max_tokens=self.cuts[turn.round - 1] - reached,
            temperature=self.temperature,
            stop=(self.closes.strip().splitlines()[0],),
            seed=turn.round if self.temperature else None,
        )
        more = await self.continuation.after(client, self.model, prompt)
        closed = self.opens + thought + more.text + self.closes
        done = await self.continuation.after(
            client,
            self.model,
            Prompt(
                (*first, *_begun(closed)),
                max_tokens=self.max_tokens,
                top_logprobs=self.top_logprobs,
            ),
        )
        said, numbers = self.closes + done.text, _sure(done.logprobs)
        # what of a cut's price is for stopping: its answer, and reading the thought again
        if done.cost_nano is not None:
            numbers[ANSWERING] = usd_from_nano(done.cost_nano)
        if turn.round > 1 and more.reading_nano is not None:
            numbers[READ_AGAIN] = usd_from_nano(more.reading_nano)
        return AgentReply(
            more.text + said,
            read_answer(said),
            numbers=numbers,
            ended=None if len(self.cuts) == 1 else more.finish == "stop",
        )


def _begun(text: str) -> tuple[Message, ...]:
    return (Message("assistant", text),) if text else ()


def _new(begun: Message, text: str) -> str | None:
    """Return what a reply has after the message that was begun; None: it does not repeat that.

    >>> _new(Message("assistant", "One, "), "One, two"), _new(Message("assistant", "One,"), " two")
    ('two', None)
    """
    told, said = begun.content, text
    if not text.startswith(told):
        told, said = told.strip(), text.lstrip()  # as templates trim messages
    repeated = begun.role == "assistant" and told.strip() and said.startswith(told)
    return said[len(told) :] if repeated else None


def _sure(tokens: Sequence[TokenLogprob]) -> dict[str, float]:
    """Return the mean log-probability of tokens and their mean entropy, in nats.

    Of each token's distribution the likeliest are known; what is left counts as one token more.

    >>> _sure([TokenLogprob("4", math.log(0.5), (("4", math.log(0.5)), ("5", math.log(0.25))))])
    {'mean_logprob': -0.6931471805599453, 'entropy': 1.0397207708399179}
    """
    if not tokens:
        return {}
    found = {"mean_logprob": sum(token.logprob for token in tokens) / len(tokens)}
    if all(token.top for token in tokens):
        found["entropy"] = sum(map(_entropy, tokens)) / len(tokens)
    return found


def _entropy(token: TokenLogprob) -> float:
    known = [math.exp(logprob) for _, logprob in token.top]
    shares = [*known, max(0.0, 1.0 - sum(known))]
    return -sum(share * math.log(share) for share in shares if share > 0)
