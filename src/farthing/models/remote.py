"""What models that are asked over a network have in common: their settings, price and key."""

from pathlib import Path
from typing import Any, ClassVar

import msgspec

from farthing.models.base import Completion, Prompt
from farthing.models.chat_completions import read_completion, request_body
from farthing.models.keys import Key, read_key
from farthing.models.prices import Price, largest_cost_nano


class RemoteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    """Parameters to send with every call, such as `reasoning_effort`."""

    def __post_init__(self) -> None:
        if self.key_env and self.key_file:
            raise ValueError("`key_env` and `key_file` exclude each other; give one of them")
        if not self.timeout_s > 0:
            raise ValueError("`timeout_s` must be more than 0")

    def key(self) -> Key | None:
        """Read the key; None where none is named.

        Raises:
            InputError: it cannot be read.
        """
        return read_key(self.key_env, Path(self.key_file) if self.key_file else None)

    def parameters(self, prompt: Prompt, limit_name: str) -> dict[str, Any]:
        """Return what a request sends, with more and fewer parameters as the settings say."""
        wanted = request_body(prompt, self.model, limit_name) | self.extra
        return {name: value for name, value in wanted.items() if name not in self.omit}


class RemoteModel:
    """A model that one call asks once; it says what that can cost, and never shows its key."""

    def __init__(
        self, settings: RemoteSettings, key: Key | None, price: Price | None, place: str
    ) -> None:
        self._key = key
        self._price = price
        self._place = place
        self._name, self._timeout_s = settings.model, settings.timeout_s

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place})"

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._name

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return largest_cost_nano(self._price, self._name, prompt, self._timeout_s)

    def _largest_nano(self, prompt: Prompt) -> int | None:
        """Return what a call of unknown outcome counts as; None without a price."""
        return self.largest_cost_nano(prompt) if self._price else None

    def _read(self, body: bytes, prompt: Prompt, seconds: float) -> Completion:
        return read_completion(body, prompt, self._name, self._price, seconds)

    def _without_key(self, text: str) -> str:
        return self._key.hide_in(text) if self._key else text
