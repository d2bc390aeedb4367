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

from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.image_tokens import bytes_of, tokens_of_image
from farthing.gateway.options import RequestError
from farthing.gateway.stream_bounds import HiddenTokens, is_silent
from farthing.gateway.streaming import CHUNK, Bounding, HttpStream
from farthing.gateway.upstream_base import ASSUMED_OUTPUT, Bound, Reply, StreamedReply
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE, merged
from farthing.models.chat_endpoint import ChatEndpoint
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import (
    TOKENS_PER_MESSAGE,
    TOKENS_PER_PROMPT,
    Price,
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
_PRICED: Mapping[str, Callable[[Any], bool]] = {
    "service_tier": lambda tier: tier in (None, "auto", "default", "flex"),
    "web_search_options": lambda options: not options,
    "modalities": lambda kinds: kinds in (None, [], ["text"]),
}
"""Parameters with values that no price of tokens covers, and which values it does cover."""


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

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> "HttpCall":
        """Return the call that a request makes; RequestError where no price of tokens covers it.

        It is bounded by its bytes: no tokeniser makes more of a text. Schemas count twice, since
        templates write them anew, with spaces. Images count by the provider's formula or by
        `image_tokens`; what else is not text as the context window.
        """
        self._check_priced(request)
        settings = self._settings
        # A request that says how long to think is sent so; its limit holds its thoughts.
        thinking = settings.thinking if effort_of(request.body) is None else AS_IT_IS
        limit = request.limit or default_max_output
        limited: dict[str, Any] = {settings.limit_name: limit + thinking.tokens} if limit else {}
        passed = {name: value for name, value in request.body.items() if name not in _DROPPED}
        added = merged(thinking.fields, settings.extra)
        wanted = merged(passed | limited, added | {"model": settings.model})
        left_out = thinking.refused.union(settings.omit)
        wanted = {name: value for name, value in wanted.items() if name not in left_out}
        body = msgspec.json.encode(wanted)
        read = self._input(request, wanted, body)
        most = Usage(read, self._output(wanted), estimated=True)
        nano = self.price.largest_nano(most, settings.timeout_s) if self.price else None
        return HttpCall(
            endpoint=self._endpoint,
            model=settings.model,
            price=self.price,
            body=body,
            most=most,
            bound=Bound(nano, most.input_tokens + most.output_tokens),
            rated_tokens=read + self._output(wanted, ASSUMED_OUTPUT),
            stream_options=None if "stream_options" in settings.omit else _streaming(request),
            include_usage=request.include_usage,
            bounding=Bounding(most, self._shown, is_silent(wanted)),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    def _check_priced(self, request: ChatRequest) -> None:
        """Refuse what costs more than tokens at the model's price: it could not be reserved."""
        for name, is_priced in _PRICED.items():
            if not is_priced(request.body.get(name)):
                raise RequestError(f"'{name}' has a price of its own here; leave it out", name)

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

    def _output(self, wanted: Mapping[str, Any], unlimited: int | None = None) -> int:
        """Return the most tokens of a reply; without a limit, of `unlimited` or the model's own."""
        thoughts = thoughts_apart(self._settings.speaks, wanted)
        apart = self._window if thoughts is None else thoughts
        limit, n = wanted.get(self._settings.limit_name), wanted.get("n") or 1
        predicted = wanted.get("prediction")
        # Tokens that were predicted and not used are paid for as output.
        refused = len(msgspec.json.encode(predicted)) if predicted else 0
        if not isinstance(limit, int):
            limit = unlimited or self._settings.max_output or self._window
        return (limit + apart + refused) * n

    @cached_property
    def _window(self) -> int:
        settings = self._settings
        if settings.context_window is not None:
            return settings.context_window
        provider, url = settings.price_provider, settings.url
        return published_window(settings.model, provider=provider, url=url) or WINDOW


@dataclass(frozen=True)
class HttpCall:
    """A request as an endpoint is sent it."""

    endpoint: ChatEndpoint
    model: str
    price: Price | None
    body: bytes
    most: Usage
    """The most that one try can take."""
    bound: Bound
    rated_tokens: int
    """Tokens that it counts for against a rate limit until its reply is there."""
    stream_options: bytes | None
    """What a stream asks for beside it; None: the endpoint does not take that."""
    include_usage: bool
    """Whether the client wants the chunk that says what was used."""
    bounding: Bounding

    async def send(self, timeout_s: float | None = None) -> Reply:
        """Try once; cancelling the task closes the connection."""
        started = time.perf_counter()
        response = await self.endpoint.post(self.body, self.bound.nano, timeout_s=timeout_s)
        async with response:
            body = await self.endpoint.read(response, self.bound.nano)
        try:
            whole = CHUNK.decode(body)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        else:
            if whole.choices:
                return self._took(started, body, whole.counted, whole.model)
            problem = "has no choices"
        raise self.endpoint.malformed(problem, body, self.bound.nano)

    @asynccontextmanager
    async def stream(self, timeout_s: float | None = None) -> AsyncIterator[StreamedReply]:
        """Try once, for a reply in pieces; leaving the block closes the connection."""
        started = time.perf_counter()
        asked = [self.body[:-1], b',"stream":true', b"}"]
        if self.stream_options is not None:
            asked.insert(2, b',"stream_options":' + self.stream_options)
        body = b"".join(asked)
        response = await self.endpoint.post(body, self.bound.nano, timeout_s=timeout_s)
        async with response:
            streamed = HttpStream(
                self.endpoint,
                response,
                self.bound.nano,
                partial(self._took, started, b""),
                self.bounding,
                include_usage=self.include_usage,
            )
            await streamed.begin()
            yield streamed
            if streamed.ended:
                await self.endpoint.finish(response)

    def _took(self, started: float, body: bytes, usage: Usage | None, model: str | None) -> Reply:
        seconds = time.perf_counter() - started
        cost = self.bound.nano
        if usage and self.price:
            price = self.price.largest_nano if usage.estimated else self.price.cost_nano
            cost = price(usage, seconds)
        used = usage or self.most
        return Reply(body, used, used.cached_tokens, cost, seconds, model or self.model)


def _streaming(request: ChatRequest) -> bytes:
    options = (request.body.get("stream_options") or {}) | {"include_usage": True}
    return msgspec.json.encode(options)
