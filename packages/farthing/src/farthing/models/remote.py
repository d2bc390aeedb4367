"""What models that are asked over a network have in common: their settings, price and key."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from farthing.errors import InputError
from farthing.models.base import Completion, Prompt
from farthing.models.chat_completions import merged, read_completion, request_body
from farthing.models.prices import Price, largest_cost_nano
from farthing.models.thinking import (
    COMPATIBLE,
    RESERVED,
    Dialect,
    Thinking,
    thinking,
    thoughts_apart,
)


class Key:
    """A secret; what prints it, logs it or formats it gets dots.

    >>> Key("sk-123")
    Key(...)
    >>> Key("sk-123").hide_in("401: no such key: sk-123")
    '401: no such key: ...'
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Key(...)"

    def reveal(self) -> str:
        """Return the secret, to be sent to the endpoint and nowhere else."""
        return self._secret

    def hide_in(self, text: str) -> str:
        """Return the text without the secret: an endpoint may repeat what it was sent."""
        return text.replace(self._secret, "...")


def key_from_environment(variable: str) -> Key:
    """Read a key from an environment variable."""
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise InputError(f"the environment variable {variable} holds no key: export it first")
    return _checked(secret, f"the environment variable {variable}")


def key_from_file(path: Path) -> Key:
    """Read a key from a file that holds nothing else."""
    try:
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key file {path} cannot be read: {type(error).__name__}") from None
    if not secret:
        raise InputError(f"the key file {path} is empty: put the key in it, and nothing else")
    return _checked(secret, f"the key file {path}")


def read_key(variable: str | None, path: Path | None) -> Key | None:
    """Read a key from where it is said to be, if anywhere."""
    if variable is not None:
        return key_from_environment(variable)
    return key_from_file(path.expanduser()) if path is not None else None


def _checked(secret: str, place: str) -> Key:
    if not (secret.isascii() and secret.isprintable()):
        raise InputError(f"{place} holds what cannot be a key: give one line of plain characters")
    return Key(secret)


class RemoteSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True
):
    """Settings of a model at an endpoint, as a configuration file gives them."""

    paths: ClassVar = ("key_file",)

    model: str
    """Name of the model, as the endpoint calls it."""
    key_env: str | None = None
    """Environment variable that holds the key."""
    key_file: str | None = None
    """File that holds the key; a `~` is the home folder."""
    price_provider: str | None = None
    """Who sells the model, in the words of `genai-prices`, where nothing else tells."""
    timeout_s: float = 120.0
    """Most seconds from sending to the last byte."""
    omit: list[str] = []
    """Parameters that the model does not take, such as `temperature`."""
    extra: dict[str, Any] = {}
    """Parameters to send with every call, such as `service_tier`; objects are merged with what the
    call has of the same name."""
    reasoning_effort: str | None = None
    """How long the model thinks, in its provider's words: `low`; `none` switches thoughts off."""
    thinking_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Most tokens of thought, on top of the answer's limit; 0 switches thoughts off. Where nothing
    is said beside an effort, `thinking.RESERVED`."""

    def __post_init__(self) -> None:
        if self.key_env and self.key_file:
            raise ValueError("`key_env` and `key_file` exclude each other; give one of them")
        if not self.timeout_s > 0:
            raise ValueError("`timeout_s` must be more than 0")
        _ = self.thinking

    def key(self) -> Key | None:
        """Read the key; None where none is named."""
        return read_key(self.key_env, Path(self.key_file) if self.key_file else None)

    @cached_property
    def speaks(self) -> Dialect:
        """How the provider writes how long to think."""
        return COMPATIBLE

    @property
    def continued(self) -> Mapping[str, Any] | None:
        """Fields by which a reply goes on from what the assistant has begun; None: none does."""
        return None

    @cached_property
    def thinking(self) -> Thinking:
        """How long the model is made to think."""
        return thinking(self.speaks, self.reasoning_effort, self.thinking_budget)

    @cached_property
    def added(self) -> dict[str, Any]:
        """The fields that go into every request."""
        return merged(self.thinking.fields, self.extra)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The parameters that go into none."""
        return self.thinking.refused.union(self.omit)

    def parameters(self, prompt: Prompt, limit_name: str) -> dict[str, Any]:
        """Return what a request sends, with more and fewer parameters as the settings say."""
        longer = replace(prompt, max_tokens=prompt.max_tokens + self.thinking.tokens)
        wanted = merged(request_body(longer, self.model, limit_name), self.added)
        if any(message.role == "assistant" for message in prompt.messages[-1:]):
            wanted = merged(self.continued or {}, wanted)
        return {name: value for name, value in wanted.items() if name not in self.left_out}

    @cached_property
    def thoughts(self) -> int:
        """The most tokens of thought, on top of the answer's limit."""
        apart = thoughts_apart(self.speaks, self.added)
        return self.thinking.tokens + (RESERVED if apart is None else apart)

    def longest(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the most output tokens that a call can have, thoughts included."""
        return replace(prompt, max_tokens=prompt.max_tokens + self.thoughts)


class RemoteModel:
    """A model that one call asks once; it says what that can cost, and never shows its key."""

    def __init__(
        self, settings: RemoteSettings, key: Key | None, price: Price | None, place: str
    ) -> None:
        self._key = key
        self._price = price
        self._place = place
        self._name, self._timeout_s = settings.model, settings.timeout_s
        self._longest = settings.longest

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place})"

    @property
    def price(self) -> Price | None:
        """What its calls cost; None: nobody says."""
        return self._price

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._name

    def longest(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the most output tokens that a call can have, thoughts included."""
        return self._longest(prompt)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars."""
        return largest_cost_nano(self._price, self._name, self.longest(prompt), self._timeout_s)

    def _largest_nano(self, prompt: Prompt) -> int | None:
        """Return what a call of unknown outcome counts as; None without a price."""
        return self.largest_cost_nano(prompt) if self._price else None

    def _read(self, body: bytes, prompt: Prompt, seconds: float) -> Completion:
        longest, hide = self.longest(prompt), self._without_key
        return read_completion(body, longest, self._name, self._price, seconds, hide)

    def _without_key(self, text: str) -> str:
        return self._key.hide_in(text) if self._key else text
