"""Every other vendor, through Mozilla's `any-llm-sdk`, which speaks each one's own language."""

import asyncio
import inspect
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from farthing.errors import (
    AuthenticationError,
    BadRequestError,
    ContentRefusedError,
    ContextTooLongError,
    InputError,
    MalformedReplyError,
    MissingExtraError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
)
from farthing.models.base import Completion, Prompt
from farthing.models.chat_completions import UNREADABLE, read_completion, request_body
from farthing.models.http_failures import failure
from farthing.models.keys import Key, read_key
from farthing.models.prices import Price, PriceTable, largest_cost_nano

_BY_NAME: dict[str, type[ModelError]] = {
    "AuthenticationError": AuthenticationError,
    "MissingApiKeyError": AuthenticationError,
    "InsufficientFundsError": AuthenticationError,
    "RateLimitError": RateLimitError,
    "ContextLengthExceededError": ContextTooLongError,
    "ContentFilterError": ContentRefusedError,
    "InvalidRequestError": BadRequestError,
    "ModelNotFoundError": BadRequestError,
    "UnsupportedParameterError": BadRequestError,
    "GatewayTimeoutError": ModelTimeoutError,
}
"""The library's errors; any other one is a failure of the provider."""


class AnyLLMSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a vendor's model, as a configuration file gives them."""

    vendor: str
    """Name of the vendor, as `any-llm-sdk` calls it: `anthropic`, `gemini`, `mistral`, ..."""
    model: str
    """Name of the model, as the vendor calls it."""
    url: str | None = None
    """Address of the endpoint; none: the vendor's own."""
    key_env: str | None = None
    """Environment variable that holds the key; none: the vendor's usual one."""
    key_file: str | None = None
    """File that holds the key; a `~` is the home folder."""
    price_provider: str | None = None
    """Who sells the model, in the words of `genai-prices`; none: the vendor."""
    timeout_s: float = 120.0
    """Most seconds of a call."""
    omit: list[str] = []
    """Parameters that the model does not take, such as `temperature`."""
    extra: dict[str, Any] = {}
    """Parameters to send with every call."""

    def __post_init__(self) -> None:
        if self.key_env and self.key_file:
            raise ValueError("`key_env` and `key_file` exclude each other; give one of them")
        if not self.timeout_s > 0:
            raise ValueError("`timeout_s` must be more than 0")

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model, provider=self.price_provider or self.vendor)

    def open(self, prices: PriceTable) -> "AnyLLMModel":
        """Return the model, with its key read and its price looked up.

        Raises:
            InputError: the key cannot be read, or the library knows no such vendor.
            MissingExtraError: `any-llm-sdk` is absent.
        """
        key = read_key(self.key_env, Path(self.key_file) if self.key_file else None)
        return AnyLLMModel(self, key, self.price(prices))


class AnyLLMModel:
    """A vendor's model; one call is one request, with the library's own retries switched off."""

    def __init__(self, settings: AnyLLMSettings, key: Key | None, price: Price | None) -> None:
        self._library = _import_any_llm()
        self._settings = settings
        self._key = key
        self._price = price
        self._place = f"model '{settings.model}' of {settings.vendor}"
        self._client = self._connect()

    def __repr__(self) -> str:
        return f"AnyLLMModel({self._place})"

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._settings.model

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task cancels the library's call.

        Raises:
            ModelError: the call failed; one of unknown outcome counts as its largest cost.
        """
        started = time.perf_counter()
        wanted = request_body(prompt, self.name, "max_tokens") | self._settings.extra
        wanted = {name: value for name, value in wanted.items() if name not in self._settings.omit}
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                reply = await self._client.acompletion(**wanted)
            seconds = time.perf_counter() - started
            body = reply.model_dump_json().encode()
            return read_completion(body, prompt, self.name, self._price, seconds)
        except (TimeoutError, self._library.AnyLLMError, *UNREADABLE) as error:
            broken = self._broken(error, prompt)
        # Raised out here, with no cause: the library's errors can hold the request and so the key.
        raise broken

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return largest_cost_nano(self._price, self.name, prompt, self._settings.timeout_s)

    async def aclose(self) -> None:
        """Close the vendor's own client, where it can be: the library has no call for that."""
        close = getattr(getattr(self._client, "client", None), "close", None)
        closing = close() if close else None
        if inspect.isawaitable(closing):
            await closing

    def _connect(self) -> Any:
        settings, library = self._settings, self._library
        access = {
            "api_key": self._key.reveal() if self._key else None,
            "api_base": settings.url,
            "unified_exceptions": True,
        }
        try:
            try:
                return library.AnyLLM.create(settings.vendor, max_retries=0, **access)
            except library.UnsupportedParameterError:  # nothing that it could retry with
                return library.AnyLLM.create(settings.vendor, **access)
        except (library.AnyLLMError, ImportError) as error:
            problem = self._without_key(str(error))
        raise InputError(f"{self._place} cannot be used: {problem}")

    def _broken(self, error: Exception, prompt: Prompt) -> ModelError:
        largest = self.largest_cost_nano(prompt) if self._price else None
        if isinstance(error, TimeoutError):
            problem = f"no full reply within {self._settings.timeout_s} s"
            return ModelTimeoutError(f"{self._place}: {problem}", cost_nano=largest)
        text = self._without_key(str(error))
        if isinstance(error, UNREADABLE):
            problem = f"the reply cannot be read: {text}"
            return MalformedReplyError(f"{self._place}: {problem}", cost_nano=largest)
        status = getattr(error, "status_code", None)
        if status is not None and status >= 300:
            headers = {"Retry-After": str(getattr(error, "retry_after", None) or "")}
            return failure(self._place, status, headers, text, largest)
        kind = _BY_NAME.get(type(error).__name__, ModelConnectionError)
        return kind(f"{self._place}: {text}", cost_nano=largest)

    def _without_key(self, text: str) -> str:
        return self._key.hide_in(text) if self._key else text


def _import_any_llm() -> ModuleType:
    try:
        import any_llm  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("calling a vendor through any-llm", "anyllm") from None
    module: ModuleType = any_llm
    return module
