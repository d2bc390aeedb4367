"""Any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp, gateways."""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from farthing.models.base import Completion, Prompt
from farthing.models.chat_completions import UNREADABLE
from farthing.models.chat_endpoint import ChatEndpoint
from farthing.models.prices import Price, PriceTable
from farthing.models.remote import Key, RemoteModel, RemoteSettings
from farthing.models.thinking import DIALECTS, Dialect, DialectName, dialect_of

ApiName = Literal["completions", "embeddings", "responses", "messages"]
_OPENAI: tuple[ApiName, ...] = ("completions", "embeddings", "responses")
_OTHERS: tuple[ApiName, ...] = ("completions", "embeddings")


class OpenAISettings(RemoteSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a model at an endpoint, as a configuration file gives them."""

    url: str
    """Address of the endpoint up to its version, such as `https://api.openai.com/v1`."""
    limit_name: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """What the endpoint calls the limit on output tokens; OpenAI's newer models want the former."""
    context_window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Most tokens that the model takes in: what bounds the price of audio and files. None: as
    published with its price, where it is."""
    max_output: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Most output tokens that the model writes where no request limits it: what is reserved of
    such a request. None: as many as its context window."""
    image_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Most input tokens that one image counts as; None: as OpenAI's formula for the model has it,
    or where none is known the context window."""
    apis: list[ApiName] | None = None
    """What a gateway may pass on to the endpoint in its own form, beside chat completions; None: as
    its address tells. What it does not speak is asked as a chat, where it is text."""
    provider_tools: Literal["refuse", "drop", "price"] = "refuse"
    """What a gateway does with what the provider runs at a price beside tokens, such as a search:
    it refuses the request, leaves that out, or reserves and charges its price."""
    tool_uses: Annotated[int, msgspec.Meta(ge=1)] = 10
    """Most uses of it in one reply, of each kind."""
    dialect: DialectName | None = None
    """Whose names for efforts and budgets the endpoint takes; None: as its address tells."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("`url` must look like https://api.openai.com/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("`url` must be an address alone; a key belongs in key_env or key_file")
        super().__post_init__()

    @cached_property
    def speaks(self) -> Dialect:
        """How the endpoint writes how long to think."""
        return dialect_of(self.url) if self.dialect is None else DIALECTS[self.dialect]

    @property
    def continued(self) -> Mapping[str, Any] | None:
        """Fields by which a reply goes on from what the assistant has begun; None: none does."""
        return self.speaks.continued

    @cached_property
    def spoken_apis(self) -> frozenset[ApiName]:
        """What the endpoint speaks beside chat completions."""
        if self.apis is not None:
            return frozenset(self.apis)
        host = urlsplit(self.url).hostname or ""
        if host.endswith("anthropic.com"):
            return frozenset({"messages"})
        return frozenset(_OPENAI if host.endswith("openai.com") else _OTHERS)

    @property
    def place(self) -> str:
        """The model and its endpoint, for messages."""
        return f"model '{self.model}' at {self.url}"

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model, provider=self.price_provider, url=self.url)

    def open(self, prices: PriceTable) -> "OpenAICompatibleModel":
        """Return the model, with its key read and its price looked up."""
        return OpenAICompatibleModel(self, self.key(), self.price(prices))


class OpenAICompatibleModel(RemoteModel):
    """A model behind `POST {url}/chat/completions`; one call is one request, never repeated here.

    How many there may be at once is the business of `rate_limit.py`.
    """

    def __init__(self, settings: OpenAISettings, key: Key | None, price: Price | None) -> None:
        super().__init__(settings, key, price, settings.place)
        self._settings = settings
        self._endpoint = ChatEndpoint(settings.url, key, settings.place, settings.timeout_s)

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task closes the connection."""
        started = time.perf_counter()
        wanted = self._settings.parameters(prompt, self._settings.limit_name)
        largest = self._largest_nano(prompt)
        reply = await self._endpoint.post(msgspec.json.encode(wanted), largest)
        async with reply:
            body = await self._endpoint.read(reply, largest)
        seconds = time.perf_counter() - started
        try:
            return self._read(body, prompt, seconds)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        raise self._endpoint.malformed(problem, body, largest)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()
