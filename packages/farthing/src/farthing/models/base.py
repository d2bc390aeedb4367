"""Who answers: messages in; text, probabilities, usage, price, time and finish reason out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

Speaker = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "refused", "other"]
"""Why a completion ended: by itself or at a stop text, at the token limit, filtered by the
provider, or for another reason."""

MAX_TOKENS = 1_024
"""Most output tokens of a call where nothing else is asked: no call is without a limit."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Speaker
    content: str


@dataclass(frozen=True)
class Prompt:
    """Everything that is sent; equal prompts are the same question to a model.

    >>> Prompt((Message("user", "2 + 2?"),)).max_tokens
    1024
    """

    messages: tuple[Message, ...]
    max_tokens: int = MAX_TOKENS
    """Most tokens that may come back."""
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    """Texts that end the completion; none of them is part of it."""
    top_logprobs: int = 0
    """Alternatives to return the log-probability of, for each token; 0 asks for none at all."""
    seed: int | None = None
    """Makes a model that can repeat itself do so."""


@dataclass(frozen=True)
class Usage:
    """Tokens of a call, as the provider counts them."""

    input_tokens: int
    output_tokens: int
    estimated: bool = False
    """The provider gave no count; these are upper bounds."""
    cached_tokens: int = 0
    """Input tokens that the provider read from its cache; never more than `input_tokens`."""
    reasoning_tokens: int | None = field(default=None, repr=False)
    """Output tokens that are thoughts; None: the provider does not say."""
    cache_writes: int = field(default=0, repr=False)
    """Input tokens that went into the provider's cache for minutes, where it says so; none of
    `cached_tokens` or `cache_writes_hour` among them."""
    cache_writes_hour: int = field(default=0, repr=False)
    """Input tokens that went into it for an hour."""
    audio_input: int = field(default=0, repr=False)
    """Input tokens that are sound; the cached among them are in `audio_cached` as well."""
    audio_cached: int = field(default=0, repr=False)
    audio_output: int = field(default=0, repr=False)
    tier: str | None = field(default=None, repr=False)
    """The tier that it was served at, as its price list calls it; None: the standard one, or nobody
    says."""
    units: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """Other counts that may have a price, by name: `web_searches`, `output_citation_tokens`."""
    billed_nano: int | None = field(default=None, repr=False)
    """What the reply says that the call cost, in nano-dollars; None: it does not say."""
    unknown: tuple[str, ...] = field(default=(), repr=False)
    """Counts of tokens that nobody told, which are 0 above: `input_tokens`, `output_tokens`."""

    @property
    def uses(self) -> tuple[tuple[str, int], ...]:
        """How often the provider ran tools of its own, out of `units`."""
        return tuple(one for one in self.units if not one[0].endswith(("_tokens", "_seconds")))

    def read(self) -> "Usage":
        """Return the input tokens alone.

        >>> Usage(12, 100).read()
        Usage(input_tokens=12, output_tokens=0, estimated=False, cached_tokens=0)
        """
        rest = tuple(one for one in self.units if not one[0].startswith("output_"))
        return replace(
            self,
            output_tokens=0,
            reasoning_tokens=None,
            audio_output=0,
            units=rest,
            billed_nano=None,
        )

    def within(self, most: int) -> "Usage":
        """Return these tokens, or where they are more than a call can take, as many as it can.

        >>> Usage(12, 10**9).within(100)
        Usage(input_tokens=12, output_tokens=88, estimated=True, cached_tokens=0)
        """
        if self.input_tokens + self.output_tokens <= most:
            return self
        read = min(self.input_tokens, most)
        cached = min(self.cached_tokens, read)
        hour = min(self.cache_writes_hour, read - cached)
        return replace(
            self,
            input_tokens=read,
            output_tokens=most - read,
            estimated=True,
            cached_tokens=cached,
            reasoning_tokens=None,
            cache_writes=min(self.cache_writes, read - cached - hour),
            cache_writes_hour=hour,
            audio_input=min(self.audio_input, read),
            audio_cached=min(self.audio_cached, cached),
            audio_output=min(self.audio_output, most - read),
        )


@dataclass(frozen=True)
class TokenLogprob:
    """One token of a completion and its likeliest alternatives."""

    token: str
    logprob: float
    """Natural logarithm of its probability."""
    top: tuple[tuple[str, float], ...] = ()
    """(token, log-probability) of the likeliest tokens in this place, likeliest first."""


@dataclass(frozen=True)
class Completion:
    """What a model answered, and what it took."""

    text: str
    model: str
    """Name of the model that answered, as the provider gives it."""
    finish: Finish
    usage: Usage
    cost_nano: int | None
    """Price of all tries, in nano-dollars; None where the model has no price."""
    latency_s: float
    """Wall time from sending to the last byte, in seconds, without waiting for admission."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """One for each token, where they were asked for and the provider has them."""
    tries: int = 1
    """Calls that it took; all but the last one failed."""
    reading_nano: int | None = field(default=None, repr=False)
    """Of the price, what reading the input took; None where nobody says."""


class Model(Protocol):
    """Answers prompts; safe to call many times at once from one event loop."""

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task closes the call upstream.

        Raises:
            ModelError: the call failed, after the retries that its kind allows.
        """
        ...

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one try of this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        ...

    async def aclose(self) -> None:
        """Close connections and let go of memory."""
        ...


def longest(model: Model, prompt: Prompt) -> Prompt:
    """Return a prompt with the most output tokens that a call of it can have.

    A model that thinks beyond the limit of its answer says so itself, as a method of this name.
    """
    own = getattr(model, "longest", None)
    found: Prompt = prompt if own is None else own(prompt)
    return found


class WrappedModel:
    """A model around another one, which says whatever this one does not say itself."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._model.name

    @property
    def price(self) -> Any:
        """What its calls cost; None: it does not say."""
        return getattr(self._model, "price", None)

    def longest(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the most output tokens that a call can have."""
        return longest(self._model, prompt)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one try of this prompt can cost, in nano-dollars."""
        return self._model.largest_cost_nano(prompt)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


def characters(messages: Sequence[Message]) -> int:
    """Return the length of a conversation in UTF-8 bytes."""
    return sum(len(message.content.encode()) for message in messages)
