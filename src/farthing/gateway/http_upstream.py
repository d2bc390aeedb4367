"""A model behind an OpenAI-compatible endpoint: requests and replies pass through unchanged.

Changed in a request are the model's name, what the limit on output tokens is called, and what the
section says.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import msgspec

from farthing.gateway.chat_request import ChatRequest, RequestError
from farthing.gateway.image_tokens import bytes_of, tokens_of_image
from farthing.gateway.stream_bounds import HiddenTokens, is_silent
from farthing.gateway.streaming import CHUNK, Bounding, HttpStream
from farthing.gateway.upstream_base import Bound, Reply, StreamedReply
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE, merged
from farthing.models.chat_endpoint import ChatEndpoint
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import (
    TOKENS_PER_MESSAGE,
    TOKENS_PER_PROMPT,
    PriceTable,
    published_window,
)
from farthing.models.retry import RetryPolicy
from farthing.models.thinking import AS_IT_IS, effort_of, thoughts_apart

WINDOW = 2**21
"""Tokens that a model may take in where neither its section nor its published price says it."""
TOKENS_PER_SCHEMAS = 1_024
"""Most tokens that a provider puts around tools and formats."""
_SCHEMAS = ("tools", "functions", "response_format")
_DROPPED = ("max_tokens", "max_completion_tokens", "stream", "stream_options")
_STREAMED = b',"stream":true'
_PRICED: Mapping[str, Callable[[Any], bool]] = {
    "service_tier": lambda tier: tier in (None, "auto", "default", "flex"),
    "web_search_options": lambda options: not options,
    "modalities": lambda kinds: kinds in (None, [], ["text"]),
}
"""Parameters with values that no price of tokens covers, and which values it does cover."""


@dataclass(frozen=True)
class _Sent:
    body: bytes
    usage: Usage
    """The most that it can take."""
    nano: int | None
    """The most that it can cost, in nano-dollars."""
    silent: bool
    """Whether it asks for tokens that nobody is shown."""


class HttpUpstream:
    """One request is one try; connections are kept, and shared by all of them."""

    notes_sending = True

    def __init__(
        self, name: str, settings: OpenAISettings, prices: PriceTable, patience: RetryPolicy
    ) -> None:
        """Read the key and look the price up."""
        self.name = name
        self.model = settings.model
        self.price = settings.price(prices)
        self.max_output = settings.max_output
        self.patience = patience
        self._shown = HiddenTokens()
        self._settings = settings
        self._endpoint = ChatEndpoint(
            settings.url, settings.key(), settings.place, settings.timeout_s
        )

    def __repr__(self) -> str:
        return f"HttpUpstream({self._settings.place})"

    def largest(self, request: ChatRequest, default_max_output: int | None) -> Bound:
        """Return the most that one try can take: no tokeniser makes more of a text than its bytes.

        Schemas count twice, since templates write them anew, with spaces. Images count by the
        provider's formula or by `image_tokens`; what else is not text as the context window.
        """
        sent = self._sent(request, default_max_output)
        return Bound(sent.nano, sent.usage.input_tokens + sent.usage.output_tokens)

    async def send(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> Reply:
        """Try once; cancelling the task closes the connection."""
        started = time.perf_counter()
        sent = self._sent(request, default_max_output)
        response = await self._endpoint.post(sent.body, sent.nano, timeout_s=timeout_s)
        async with response:
            body = await self._endpoint.read(response, sent.nano)
        try:
            whole = CHUNK.decode(body)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        else:
            if whole.choices:
                return self._took(sent, started, body, whole.counted, whole.model)
            problem = "has no choices"
        raise self._endpoint.malformed(problem, body, sent.nano)

    @asynccontextmanager
    async def stream(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> AsyncIterator[StreamedReply]:
        """Try once, for a reply in pieces; leaving the block closes the connection."""
        started = time.perf_counter()
        sent = self._sent(request, default_max_output)
        body = self._streamed(sent.body, request)
        response = await self._endpoint.post(body, sent.nano, timeout_s=timeout_s)
        async with response:
            streamed = HttpStream(
                self._endpoint,
                response,
                sent.nano,
                partial(self._took, sent, started, b""),
                Bounding(sent.usage, self._shown, sent.silent),
                include_usage=request.include_usage,
            )
            await streamed.begin()
            yield streamed
            if streamed.ended:
                await self._endpoint.finish(response)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    def _check_priced(self, request: ChatRequest) -> None:
        """Refuse what costs more than tokens at the model's price: it could not be reserved."""
        for name, is_priced in _PRICED.items():
            if not is_priced(request.body.get(name)):
                raise RequestError(f"'{name}' has a price of its own here; leave it out", name)

    def _sent(self, request: ChatRequest, default_max_output: int | None) -> _Sent:
        self._check_priced(request)
        settings = self._settings
        # A request that says how long to think is sent so; its limit holds its thoughts.
        own = effort_of(request.body) is not None
        thinking = AS_IT_IS if own else settings.thinking
        limit = request.limit or default_max_output
        limited: dict[str, Any] = {settings.limit_name: limit + thinking.tokens} if limit else {}
        passed = {name: value for name, value in request.body.items() if name not in _DROPPED}
        added = merged(thinking.fields, settings.extra)
        wanted = merged(passed | limited, added | {"model": settings.model})
        left_out = thinking.refused.union(settings.omit)
        wanted = {name: value for name, value in wanted.items() if name not in left_out}
        body = msgspec.json.encode(wanted)
        most = self._output(wanted)
        usage = Usage(self._input(request, wanted, body), most, estimated=True)
        price = self.price
        nano = price.largest_nano(usage, settings.timeout_s) if price else None
        return _Sent(body, usage, nano, is_silent(wanted))

    def _streamed(self, body: bytes, request: ChatRequest) -> bytes:
        options = (request.body.get("stream_options") or {}) | {"include_usage": True}
        said = b',"stream_options":' + msgspec.json.encode(options)
        return (
            body[:-1]
            + _STREAMED
            + (b"" if "stream_options" in self._settings.omit else said)
            + b"}"
        )

    def _input(self, request: ChatRequest, wanted: Mapping[str, Any], body: bytes) -> int:
        if request.opaque:
            return self._window
        schemas = [wanted[name] for name in _SCHEMAS if wanted.get(name)]
        again = len(msgspec.json.encode(schemas)) + TOKENS_PER_SCHEMAS if schemas else 0
        template = TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE * len(request.messages)
        images = request.images
        text = len(body) - sum(map(bytes_of, images)) + template + again
        each = [self._image(one.get("detail")) for one in images]
        seen = [tokens for tokens in each if tokens is not None]
        return text + sum(seen) if len(seen) == len(images) else self._window

    def _image(self, detail: str | None) -> int | None:
        """Return the most tokens that an image counts as; None: nothing says that."""
        stated = self._settings.image_tokens
        return tokens_of_image(self.model, detail) if stated is None else stated

    def _output(self, wanted: Mapping[str, Any]) -> int:
        thoughts = thoughts_apart(self._settings.speaks, wanted)
        apart = self._window if thoughts is None else thoughts
        limit, n = wanted.get(self._settings.limit_name), wanted.get("n") or 1
        predicted = wanted.get("prediction")
        # Tokens that were predicted and not used are paid for as output.
        refused = len(msgspec.json.encode(predicted)) if predicted else 0
        own = self._settings.max_output or self._window
        return ((limit if isinstance(limit, int) else own) + apart + refused) * n

    @cached_property
    def _window(self) -> int:
        settings = self._settings
        if settings.context_window is not None:
            return settings.context_window
        provider, url = settings.price_provider, settings.url
        return published_window(settings.model, provider=provider, url=url) or WINDOW

    def _took(
        self, sent: _Sent, started: float, body: bytes, usage: Usage | None, model: str | None
    ) -> Reply:
        seconds = time.perf_counter() - started
        cost = sent.nano
        if usage and self.price:
            price = self.price.largest_nano if usage.estimated else self.price.cost_nano
            cost = price(usage, seconds)
        used = usage or sent.usage
        return Reply(body, used, used.cached_tokens, cost, seconds, model or self.model)
