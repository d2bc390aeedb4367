"""A model behind an OpenAI-compatible endpoint: requests and replies pass through unchanged.

Changed in a request are the model's name, what the limit on output tokens is called, and what the
section says.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import msgspec

from farthing.gateway.apis.base import Api, Content
from farthing.gateway.apis.chat import CHAT
from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.image_tokens import tokens_of_image
from farthing.gateway.repeated_lines import about
from farthing.gateway.request_schema import RequestError
from farthing.gateway.stream_bounds import HiddenTokens, is_silent
from farthing.gateway.streaming import Bounding, HttpStream
from farthing.gateway.upstream_base import (
    ASSUMED_OUTPUT,
    Bound,
    Reply,
    StreamedReply,
    check_translated,
)
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE, merged
from farthing.models.chat_endpoint import ChatEndpoint, Response
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import (
    TOKENS_PER_MESSAGE,
    TOKENS_PER_PROMPT,
    Price,
    PriceTable,
    charge_nano,
    published_window,
)
from farthing.models.retry import RetryPolicy
from farthing.models.thinking import AS_IT_IS, effort_of, thoughts_apart

LOG = logging.getLogger("farthing.gateway")
WINDOW = 2**21
"""Tokens that a model may take in where neither its section nor its published price says it."""
TOKENS_PER_SCHEMAS = 1_024
"""Most tokens that a provider puts around tools and formats."""
_SCHEMAS = ("tools", "functions", "response_format")
_CACHED = b'"cache_control"'
"""What asks a provider to keep input in its cache, which costs more than to read it."""
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
        self._tiers: set[str] = set()
        self._settings = settings
        self._endpoint = ChatEndpoint(
            settings.url, settings.key(), settings.place, settings.timeout_s
        )

    def __repr__(self) -> str:
        return f"HttpUpstream({self._settings.place})"

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> "HttpCall":
        """Return the call that a request makes: in its own form where the endpoint speaks that.

        It is bounded by its bytes: no tokeniser makes more of a text. Schemas count twice, since
        templates write them anew, with spaces. Images count by the provider's formula or by
        `image_tokens`; what else is not text as the context window.

        Raises:
            RequestError: no price of tokens covers it, or a chat completion cannot say it.
        """
        settings, native = self._settings, request.native
        if native is not None and request.api.name in settings.spoken_apis:
            api, content = request.api, request.api.content(native)
            wanted = self._native(request, native, default_max_output)
        else:
            check_translated(request, self.name)
            api, wanted = CHAT, self._chat(request, default_max_output)
            images = tuple((one["url"], one.get("detail")) for one in request.images)
            content = Content(images, request.opaque)
        body = msgspec.json.encode(wanted)
        template = TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE * len(request.messages)
        read = self._input(body, template, content, wanted)
        caching = api is not CHAT and _CACHED in body
        written, cached = self._output(api, wanted), read if caching else 0
        most = Usage(read, written, estimated=True, cache_writes=cached)
        nano = self._largest_nano(most)
        streams = api.name in {"chat", "completions"} and "stream_options" not in settings.omit
        return HttpCall(
            endpoint=self._endpoint,
            api=api,
            model=settings.model,
            price=self.price,
            body=body,
            most=most,
            bound=Bound(nano, read + written),
            rated_tokens=read + self._output(api, wanted, ASSUMED_OUTPUT),
            stream_options=_streaming(request) if streams else None,
            bounding=Bounding(most, self._shown, is_silent(wanted), request.include_usage),
            headers={} if api is CHAT else request.passed,
            tiers=self._tiers,
        )

    def _largest_nano(self, most: Usage) -> int | None:
        """Return the most that a try can cost, at any tier that the model was ever served at."""
        if self.price is None:
            return None
        tiers, seconds = (None, *self._tiers), self._settings.timeout_s
        return max(self.price.largest_nano(replace(most, tier=one), seconds) for one in tiers)

    def _native(
        self, request: ChatRequest, asked: Mapping[str, Any], default_max_output: int | None
    ) -> dict[str, Any]:
        """Return what is sent in a form that the endpoint speaks."""
        settings, api = self._settings, request.api
        api.check_priced(asked)
        if settings.thinking is not AS_IT_IS:
            raise RequestError(
                f"how long '{self.name}' is to think is said in chat completions alone here; ask "
                "the model without it",
                "model",
            )
        limit = request.limit or default_max_output
        limited = {api.limit: limit} if api.limit and limit else {}
        left_out = {"stream", *settings.omit}
        wanted = {name: value for name, value in asked.items() if name not in left_out}
        return wanted | limited | {"model": settings.model}

    def _chat(self, request: ChatRequest, default_max_output: int | None) -> dict[str, Any]:
        """Return what is sent as a chat completion."""
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
        return {name: value for name, value in wanted.items() if name not in left_out}

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    def _check_priced(self, request: ChatRequest) -> None:
        """Refuse what costs more than tokens at the model's price: it could not be reserved."""
        for name, is_priced in _PRICED.items():
            if not is_priced(request.body.get(name)):
                raise RequestError(f"'{name}' has a price of its own here; leave it out", name)

    def _input(
        self, body: bytes, template: int, content: Content, wanted: Mapping[str, Any]
    ) -> int:
        """Return the most tokens of a body; a provider may put `template` around its messages."""
        if content.opaque:
            return self._window
        schemas = [wanted[name] for name in _SCHEMAS if wanted.get(name)]
        again = len(msgspec.json.encode(schemas)) + TOKENS_PER_SCHEMAS if schemas else 0
        pictured = sum(len(msgspec.json.encode(where)) for where, _ in content.images)
        each = [self._image(detail) for _, detail in content.images]
        seen = [tokens for tokens in each if tokens is not None]
        if len(seen) < len(each):
            return self._window
        return len(body) - pictured + template + again + sum(seen)

    def _image(self, detail: str | None) -> int | None:
        """Return the most tokens that an image counts as; None: nothing says that."""
        stated = self._settings.image_tokens
        return tokens_of_image(self.model, detail) if stated is None else stated

    def _output(self, api: Api, wanted: Mapping[str, Any], unlimited: int | None = None) -> int:
        """Return the most tokens of a reply; without a limit, of `unlimited` or the model's own."""
        replies, field = api.replies(wanted), self._settings.limit_name
        if not replies:
            return 0
        limit = wanted.get(field if api is CHAT else str(api.limit))
        if not isinstance(limit, int):
            limit = unlimited or self._settings.max_output or self._window
        if api is not CHAT:  # its limit holds its thoughts
            return limit * replies
        thoughts = thoughts_apart(self._settings.speaks, wanted)
        apart = self._window if thoughts is None else thoughts
        predicted = wanted.get("prediction")
        # Tokens that were predicted and not used are paid for as output.
        refused = len(msgspec.json.encode(predicted)) if predicted else 0
        return (limit + apart + refused) * replies

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
    api: Api
    """In whose form it is asked."""
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
    bounding: Bounding
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside those of the endpoint."""
    tiers: set[str] = field(default_factory=set)
    """Those that replies were served at, which a project may have where no request names one."""

    async def send(self, timeout_s: float | None = None) -> Reply:
        """Try once; cancelling the task closes the connection."""
        started = time.perf_counter()
        response = await self._post(self.body, timeout_s)
        async with response:
            body = await self.endpoint.read(response, self.bound.nano)
        try:
            whole = self.api.read(body)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        else:
            return self._took(started, body, whole.usage, whole.model)
        raise self.endpoint.malformed(problem, body, self.bound.nano)

    @asynccontextmanager
    async def stream(self, timeout_s: float | None = None) -> AsyncIterator[StreamedReply]:
        """Try once, for a reply in pieces; leaving the block closes the connection."""
        started = time.perf_counter()
        asked = [self.body[:-1], b',"stream":true', b"}"]
        if self.stream_options is not None:
            asked.insert(2, b',"stream_options":' + self.stream_options)
        body = b"".join(asked)
        response = await self._post(body, timeout_s)
        async with response:
            streamed = HttpStream(
                self.endpoint,
                response,
                self.bound.nano,
                partial(self._took, started, b""),
                self.bounding,
                self.api,
            )
            await streamed.begin()
            yield streamed
            if streamed.ended:
                await self.endpoint.finish(response)

    async def _post(self, body: bytes, timeout_s: float | None) -> Response:
        path, headers = self.api.path, self.headers
        return await self.endpoint.post(
            body, self.bound.nano, timeout_s=timeout_s, path=path, headers=headers
        )

    def _took(self, started: float, body: bytes, usage: Usage | None, model: str | None) -> Reply:
        seconds = time.perf_counter() - started
        used, cost, listed = self._charged(usage, seconds)
        answered = model or self.model
        return Reply(
            body,
            used,
            used.cached_tokens,
            cost,
            seconds,
            answered,
            api=self.api,
            listed_nano=listed,
        )

    def _charged(self, usage: Usage | None, seconds: float) -> tuple[Usage, int | None, int | None]:
        """Return what a call took, what it costs, and what the list says where that is another."""
        price, most = self.price, self.bound.nano
        if usage is None or (usage.unknown and usage.billed_nano is None):
            return self.most, most, None
        if price is None or usage.estimated:
            return usage, price.largest_nano(usage, seconds) if price else None, None
        self.tiers.update([usage.tier] if usage.tier else [])
        cost, missing = charge_nano(price, usage, seconds), price.unpriced(usage)
        if cost is None:
            LOG.warning(
                "%s: nobody knows the price of %s, which a reply took: its call is charged at the "
                "most that it can cost, and disputed; give it under [prices]",
                self.model,
                ", ".join(missing),
                extra=about(self.model),
            )
            return replace(usage, estimated=True, unknown=missing), most, None
        listed = None if missing else price.cost_nano(usage, seconds)
        return usage, cost, None if listed == cost else listed


def _streaming(request: ChatRequest) -> bytes:
    options = (request.body.get("stream_options") or {}) | {"include_usage": True}
    return msgspec.json.encode(options)
