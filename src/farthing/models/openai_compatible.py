"""Any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp, gateways.

Built on aiohttp, which carries several times the requests per second that OpenAI's own client
does; msgspec checks what comes back.
"""

import time
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from farthing.errors import (
    MalformedReplyError,
    MissingExtraError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
)
from farthing.models.base import Completion, Prompt
from farthing.models.chat_completions import UNREADABLE, read_completion, request_body
from farthing.models.http_failures import failure
from farthing.models.keys import Key, read_key
from farthing.models.prices import Price, PriceTable, largest_cost_nano


class OpenAISettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a model at an endpoint, as a configuration file gives them."""

    model: str
    """Name of the model, as the endpoint calls it."""
    url: str
    """Address of the endpoint up to its version, such as `https://api.openai.com/v1`."""
    key_env: str | None = None
    """Environment variable that holds the key."""
    key_file: str | None = None
    """File that holds the key; a `~` is the home folder."""
    price_provider: str | None = None
    """Who sells the model, in the words of `genai-prices`, where the url does not tell."""
    timeout_s: float = 120.0
    """Most seconds from sending to the last byte."""
    limit_name: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """What the endpoint calls the limit on output tokens; OpenAI's newer models want the former."""
    omit: list[str] = []
    """Parameters that the model does not take, such as `temperature`."""
    extra: dict[str, Any] = {}
    """Parameters to send with every call, such as `reasoning_effort`."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("`url` must look like https://api.openai.com/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("`url` must be an address alone; a key belongs in key_env or key_file")
        if self.key_env and self.key_file:
            raise ValueError("`key_env` and `key_file` exclude each other; give one of them")
        if not self.timeout_s > 0:
            raise ValueError("`timeout_s` must be more than 0")

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model, provider=self.price_provider, url=self.url)

    def open(self, prices: PriceTable) -> "OpenAICompatibleModel":
        """Return the model, with its key read and its price looked up.

        Raises:
            InputError: the key cannot be read.
            MissingExtraError: a package of the extra `live` is absent.
        """
        key = read_key(self.key_env, Path(self.key_file) if self.key_file else None)
        return OpenAICompatibleModel(self, key, self.price(prices))


class OpenAICompatibleModel:
    """A model behind `POST {url}/chat/completions`; one call is one request, never repeated here.

    Connections are kept and shared by all calls; how many there may be is the business of
    `limits.py`. Redirects are not followed, so that a key goes nowhere but to its endpoint.
    """

    def __init__(self, settings: OpenAISettings, key: Key | None, price: Price | None) -> None:
        self._aiohttp = _import_aiohttp()
        self._settings = settings
        self._key = key
        self._price = price
        self._address = settings.url.rstrip("/") + "/chat/completions"
        self._place = f"model '{settings.model}' at {settings.url}"
        self._session: Any = None

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._place})"

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._settings.model

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task closes the connection.

        Raises:
            ModelError: the call failed; one of unknown outcome counts as its largest cost.
        """
        started = time.perf_counter()
        settings = self._settings
        wanted = request_body(prompt, settings.model, settings.limit_name) | settings.extra
        wanted = {name: value for name, value in wanted.items() if name not in settings.omit}
        body = await self._post(msgspec.json.encode(wanted), prompt)
        return self._completion(body, prompt, time.perf_counter() - started)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return largest_cost_nano(self._price, self.name, prompt, self._settings.timeout_s)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, request: bytes, prompt: Prompt) -> bytes:
        errors = (TimeoutError, self._aiohttp.ClientError)
        try:
            async with self._connected().post(
                self._address, data=request, allow_redirects=False
            ) as reply:
                body: bytes = await reply.read()
        except errors as error:
            broken = self._broken(error, prompt)
        else:
            self._check(reply, body, prompt)
            return body
        # Raised out here, with no cause: aiohttp's errors can hold the request and so the key.
        raise broken

    def _broken(self, error: Exception, prompt: Prompt) -> ModelError:
        if isinstance(error, self._aiohttp.ClientConnectorError):
            problem = f"no connection ({type(error).__name__}): is it running, is the url right?"
            return ModelConnectionError(f"{self._place}: {problem}")
        cost = self._largest_nano(prompt)
        if isinstance(error, TimeoutError):
            problem = f"no full reply within {self._settings.timeout_s} s"
            return ModelTimeoutError(f"{self._place}: {problem}", cost_nano=cost)
        problem = f"the connection broke ({type(error).__name__})"
        return ModelConnectionError(f"{self._place}: {problem}", cost_nano=cost)

    def _check(self, reply: Any, body: bytes, prompt: Prompt) -> None:
        if not 200 <= reply.status < 300:
            text = self._without_key(body.decode(errors="replace"))
            largest = self._largest_nano(prompt)
            raise failure(self._place, reply.status, reply.headers, text, largest)
        if "json" not in reply.content_type:
            raise self._malformed(f"is {reply.content_type}, not JSON", body, prompt)

    def _connected(self) -> Any:
        if self._session is None:
            aiohttp = self._aiohttp
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key.reveal()}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _completion(self, body: bytes, prompt: Prompt, seconds: float) -> Completion:
        try:
            return read_completion(body, prompt, self.name, self._price, seconds)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        raise self._malformed(problem, body, prompt)

    def _malformed(self, problem: str, body: bytes, prompt: Prompt) -> MalformedReplyError:
        excerpt = self._without_key(body[:100].decode(errors="replace"))
        return MalformedReplyError(
            f"{self._place}: the reply {self._without_key(problem)}: {excerpt!r}",
            cost_nano=self._largest_nano(prompt),
        )

    def _largest_nano(self, prompt: Prompt) -> int | None:
        return self.largest_cost_nano(prompt) if self._price else None

    def _without_key(self, text: str) -> str:
        return self._key.hide_in(text) if self._key else text


def _import_aiohttp() -> ModuleType:
    try:
        import aiohttp  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("calling an endpoint", "live") from None
    return aiohttp
