"""Any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp, gateways.

Built on aiohttp, which carries several times the requests per second that OpenAI's own client
does; msgspec checks what comes back.
"""

import time
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
from farthing.models.chat_completions import UNREADABLE
from farthing.models.http_failures import failure
from farthing.models.keys import Key
from farthing.models.prices import Price, PriceTable
from farthing.models.remote import RemoteModel, RemoteSettings


class OpenAISettings(RemoteSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a model at an endpoint, as a configuration file gives them."""

    url: str
    """Address of the endpoint up to its version, such as `https://api.openai.com/v1`."""
    limit_name: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """What the endpoint calls the limit on output tokens; OpenAI's newer models want the former."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("`url` must look like https://api.openai.com/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("`url` must be an address alone; a key belongs in key_env or key_file")
        super().__post_init__()

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model, provider=self.price_provider, url=self.url)

    def open(self, prices: PriceTable) -> "OpenAICompatibleModel":
        """Return the model, with its key read and its price looked up.

        Raises:
            InputError: the key cannot be read.
            MissingExtraError: a package of the extra `live` is absent.
        """
        return OpenAICompatibleModel(self, self.key(), self.price(prices))


class OpenAICompatibleModel(RemoteModel):
    """A model behind `POST {url}/chat/completions`; one call is one request, never repeated here.

    Connections are kept and shared by all calls; how many there may be is the business of
    `limits.py`. Redirects are not followed, so that a key goes nowhere but to its endpoint.
    """

    def __init__(self, settings: OpenAISettings, key: Key | None, price: Price | None) -> None:
        super().__init__(settings, key, price, f"model '{settings.model}' at {settings.url}")
        self._aiohttp = _import_aiohttp()
        self._settings = settings
        self._address = settings.url.rstrip("/") + "/chat/completions"
        self._session: Any = None

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task closes the connection.

        Raises:
            ModelError: the call failed; one of unknown outcome counts as its largest cost.
        """
        started = time.perf_counter()
        wanted = self._settings.parameters(prompt, self._settings.limit_name)
        body = await self._post(msgspec.json.encode(wanted), prompt)
        return self._completion(body, prompt, time.perf_counter() - started)

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
            return self._read(body, prompt, seconds)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        raise self._malformed(problem, body, prompt)

    def _malformed(self, problem: str, body: bytes, prompt: Prompt) -> MalformedReplyError:
        excerpt = self._without_key(body[:100].decode(errors="replace"))
        return MalformedReplyError(
            f"{self._place}: the reply {self._without_key(problem)}: {excerpt!r}",
            cost_nano=self._largest_nano(prompt),
        )


def _import_aiohttp() -> ModuleType:
    try:
        import aiohttp  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("calling an endpoint", "live") from None
    return aiohttp
