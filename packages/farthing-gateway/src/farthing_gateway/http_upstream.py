"""A model behind an OpenAI-compatible endpoint: requests and replies pass through unchanged.

Changed in a request are the model's name, what the limit on output tokens is called, and what the
section says.
"""

import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from farthing.errors import ModelError
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE, merged
from farthing.models.chat_endpoint import ChatEndpoint, Response
from farthing.models.failures import ReplyFailure, failure_in
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import (
    TOKENS_PER_MESSAGE,
    TOKENS_PER_PROMPT,
    Price,
    PriceTable,
    charge_nano,
)
from farthing.models.retry import RetryPolicy
from farthing.models.thinking import AS_IT_IS, NONE, effort_of
from farthing.models.usage import counting
from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.request_bounds import RequestBounds, SentRequest
from farthing_gateway.request_schema import RequestError
from farthing_gateway.stream_bounds import HiddenTokens, is_silent
from farthing_gateway.streaming import Bounding, HttpStream
from farthing_gateway.upstream_base import (
    ASSUMED_OUTPUT,
    Bound,
    Reply,
    StreamedReply,
    check_translated,
)

LOG = logging.getLogger("farthing_gateway")
_DROPPED = ("max_tokens", "max_completion_tokens", "stream", "stream_options")


class HttpUpstream:
    """One request is one try; connections are kept, and shared by all of them."""

    notes_sending = True

    def __init__(
        self, name: str, settings: OpenAISettings, prices: PriceTable, patience: RetryPolicy
    ) -> None:
        self.name = name
        self.model = settings.model
        self.price = settings.price(prices)
        self.max_output = settings.max_output
        self.patience = patience
        self._shown = defaultdict[bool, HiddenTokens](HiddenTokens)  # by whether thoughts are off
        self._settings = settings
        self._bounds = RequestBounds(name, settings, self.price, set())
        self._endpoint = ChatEndpoint(
            settings.url, settings.key(), settings.place, settings.timeout_s
        )

    @property
    def claimed(self) -> Bound | None:
        """The most that a reply to a chat can claim; None: nobody says what the model takes in."""
        return SentRequest(self._bounds, CHAT, {}, (), b"", ()).claimed()

    def __repr__(self) -> str:
        return f"HttpUpstream({self._settings.place})"

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> "HttpCall":
        """Return the call that a request makes: in its own form where the endpoint speaks that.

        Raises:
            RequestError: no price of tokens covers it, or a chat completion cannot say it.
        """
        settings, native = self._settings, request.native
        if native is not None and request.api.name in settings.spoken_apis:
            api, asked = request.api, self._native(request, native, default_max_output)
        else:
            check_translated(request, self.name)
            api, asked = CHAT, self._chat(request, default_max_output)
        sent = self._bounds.sent(api, asked)
        template = TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE * len(request.messages)
        most = sent.most(template)
        streams = api.name in {"chat", "completions"} and "stream_options" not in settings.omit
        return HttpCall(
            endpoint=self._endpoint,
            api=api,
            model=settings.model,
            price=self.price,
            body=sent.body,
            most=most,
            bound=sent.bound(most),
            rated_tokens=most.input_tokens + sent.output(ASSUMED_OUTPUT),
            stream_options=_streaming(request) if streams else None,
            bounding=Bounding(
                most,
                self._shown[effort_of(sent.wanted) == NONE],
                is_silent(sent.wanted),
                request.include_usage,
                sent.wanted.get("n") or 1,
            ),
            headers={} if api is CHAT else request.passed,
            tiers=self._bounds.tiers,
        )

    def _native(
        self, request: ChatRequest, asked: Mapping[str, Any], default_max_output: int | None
    ) -> dict[str, Any]:
        settings, api = self._settings, request.api
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
        await self._endpoint.aclose()


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
        started = time.perf_counter()
        response = await self._post(self.body, timeout_s)
        async with response:
            body = await self.endpoint.read(response, self.bound.nano)
        try:
            failed = failure_in(body)
            if failed is not None and not failed.passes:
                raise self._failed(failed, started)
            whole = self.api.read(body)
        except UNREADABLE as error:
            problem = f"cannot be read: {error}"
        else:
            if whole.usage is not None and not self.bounding.silent:
                self.bounding.shown.learn(whole.usage)
            used = counting(whole.usage, self.api.text(body))
            return replace(self._took(started, body, used, whole.model), cut=failed)
        raise self.endpoint.malformed(problem, body, self.bound.nano)

    @asynccontextmanager
    async def stream(self, timeout_s: float | None = None) -> AsyncIterator[StreamedReply]:
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

    def _failed(self, failed: ReplyFailure, started: float) -> ModelError:
        endpoint, cost = self.endpoint, self._took(started, b"", failed.used, None).cost_nano
        return failed.error(endpoint.place, cost, endpoint.without_key)

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
        told = usage.uses or self.api.says_uses or usage.billed_nano is not None
        if self.most.units and price and not told:  # nobody says how often the provider ran it
            usage = replace(usage, units=usage.units + self.most.units)
            return replace(usage, estimated=True), price.cost_nano(usage, seconds), None
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
            )
            return replace(usage, estimated=True, unknown=missing), most, None
        listed = None if missing else price.cost_nano(usage, seconds)
        return usage, cost, None if listed == cost else listed


def _streaming(request: ChatRequest) -> bytes:
    options = (request.body.get("stream_options") or {}) | {"include_usage": True}
    return msgspec.json.encode(options)
