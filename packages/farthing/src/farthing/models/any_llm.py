"""Every other vendor, through Mozilla's `any-llm-sdk`, which speaks each one's own language."""

import asyncio
import inspect
import time
from dataclasses import replace
from types import ModuleType
from typing import Any

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
from farthing.models.chat_completions import UNREADABLE
from farthing.models.http_failures import failure
from farthing.models.prices import Price, PriceTable
from farthing.models.remote import Key, RemoteModel, RemoteSettings
from farthing.models.thinking import COMPATIBLE, DIALECTS, Dialect

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


_NO_BUDGET = (
    "give `reasoning_effort`, of which any-llm makes a budget of its vendor's, or ask the vendor's "
    'own endpoint with provider "openai-compatible", whose `dialect` has budgets'
)


class AnyLLMSettings(RemoteSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a vendor's model, as a configuration file gives them."""

    vendor: str
    """Name of the vendor, as `any-llm-sdk` calls it: `anthropic`, `gemini`, `mistral`, ..."""
    url: str | None = None
    """Address of the endpoint; none: the vendor's own."""

    @property
    def speaks(self) -> Dialect:
        """How the library writes an effort; budgets it makes of efforts itself."""
        vendors = {str(name): one.refused for name, one in DIALECTS.items()}
        refused = vendors.get(self.vendor, COMPATIBLE.refused)
        return replace(COMPATIBLE, refused=refused, instead=_NO_BUDGET)

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model, provider=self.price_provider or self.vendor)

    def open(self, prices: PriceTable) -> "AnyLLMModel":
        """Return the model, with its key read and its price looked up."""
        return AnyLLMModel(self, self.key(), self.price(prices))


class AnyLLMModel(RemoteModel):
    """A vendor's model; one call is one request, with the library's own retries switched off."""

    def __init__(self, settings: AnyLLMSettings, key: Key | None, price: Price | None) -> None:
        super().__init__(settings, key, price, f"model '{settings.model}' of {settings.vendor}")
        self._library = _import_any_llm()
        self._settings = settings
        self._client = self._connect()

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task cancels the library's call."""
        started = time.perf_counter()
        wanted = self._settings.parameters(prompt, "max_tokens")
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                reply = await self._client.acompletion(**wanted)
            seconds = time.perf_counter() - started
            return self._read(reply.model_dump_json().encode(), prompt, seconds)
        except (TimeoutError, self._library.AnyLLMError, *UNREADABLE) as error:
            broken = self._broken(error, prompt)
        # Raised out here, with no cause: the library's errors can hold the request and so the key.
        raise broken

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
        largest = self._largest_nano(prompt)
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


def _import_any_llm() -> ModuleType:
    try:
        import any_llm  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("calling a vendor through any-llm", "anyllm") from None
    module: ModuleType = any_llm
    return module
