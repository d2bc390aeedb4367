"""A model behind an OpenAI-compatible endpoint: requests and replies pass through unchanged.

Changed in a request are the model's name, what the limit on output tokens is called, and what the
section says.
"""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import msgspec

from farthing.gateway.apis.base import Api
from farthing.gateway.apis.chat import CHAT
from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.image_tokens import tokens_of_image
from farthing.gateway.priced_places import Place, places_in, without
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
    published_window,
)
from farthing.models.retry import RetryPolicy
from farthing.models.thinking import AS_IT_IS, NONE, effort_of, thoughts_apart
from farthing.money import nano_from_usd

WINDOW = 2**21
"""Tokens that a model may take in where neither its section nor its published price says it."""
TOKENS_PER_SCHEMAS = 1_024
"""Most tokens that a provider puts around tools and formats."""
_SCHEMAS = ("tools", "functions", "response_format")
_DROPPED = ("max_tokens", "max_completion_tokens", "stream", "stream_options")


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
        self._shown = defaultdict[bool, HiddenTokens](HiddenTokens)  # by whether thoughts are off
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
            api, asked = request.api, self._native(request, native, default_max_output)
        else:
            check_translated(request, self.name)
            api, asked = CHAT, self._chat(request, default_max_output)
        wanted, places, dropped = self._allowed(asked)
        body = msgspec.json.encode(wanted)
        template = TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE * len(request.messages)
        most = self._most(
            self._input(body, template, places, wanted), self._output(api, wanted), places
        )
        bound = self._bound(most, places)
        streams = api.name in {"chat", "completions"} and "stream_options" not in settings.omit
        return HttpCall(
            endpoint=self._endpoint,
            api=api,
            model=settings.model,
            price=self.price,
            body=body,
            most=most,
            bound=replace(bound, claimed=self._claimed(api, wanted, places), dropped=dropped),
            rated_tokens=most.input_tokens + self._output(api, wanted, ASSUMED_OUTPUT),
            stream_options=_streaming(request) if streams else None,
            bounding=Bounding(
                most,
                self._shown[effort_of(wanted) == NONE],
                is_silent(wanted),
                request.include_usage,
            ),
            headers={} if api is CHAT else request.passed,
        )

    def _native(
        self, request: ChatRequest, asked: Mapping[str, Any], default_max_output: int | None
    ) -> dict[str, Any]:
        """Return what is sent in a form that the endpoint speaks."""
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
        """Return what is sent as a chat completion."""
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

    def _allowed(
        self, asked: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], list[Place], tuple[str, ...]]:
        """Return what is sent of a request, its places with a price, and what is left out of it.

        Raises:
            RequestError: it has a price that could not be reserved.
        """
        rule, dropped = self._settings.provider_tools, list[Place]()
        places = [one for one in places_in(asked) if not self._is_own(one)]
        for one in places:
            if one.kind == "tool" and (rule == "drop" or (one.offline and rule == "refuse")):
                dropped.append(one)
            elif one.kind == "rate" or (one.kind == "tool" and rule == "refuse"):
                runs = "is run by the provider, and" if one.kind == "tool" else ""
                said = f"'{one}' {runs} has a price of its own here; leave it out"
                raise RequestError(said.replace("  ", " "), str(one.path[0]))
        if not dropped:
            return asked, places, ()
        gone = [one.path for one in dropped]
        kept = [one for one in places if not any(one.path[: len(at)] == at for at in gone)]
        return without(asked, gone), kept, tuple(map(str, dropped))

    def _is_own(self, place: Place) -> bool:
        """Return whether a price is the section's own wish, which is not charged unless it says."""
        said = self._settings.provider_tools == "price" and place.kind == "tool"
        return place.kind in {"tool", "rate"} and place.path[0] in self._settings.extra and not said

    def _most(self, read: int, written: int, places: Sequence[Place]) -> Usage:
        """Return the most that a try can take, as far as it may go into the provider's cache."""
        kinds = {one.kind for one in places}
        hour = read if "hour" in kinds else 0
        cached = read if "cache" in kinds and not hour else 0
        sound = read if kinds & {"audio", "unknown"} else 0
        return Usage(
            read,
            written,
            estimated=True,
            cache_writes=cached,
            cache_writes_hour=hour,
            audio_input=sound,
        )

    def _bound(self, most: Usage, places: Sequence[Place]) -> Bound:
        """Return what a try costs that takes so much, what the provider runs for it included."""
        tokens = most.input_tokens + most.output_tokens
        if self.price is None:
            return Bound(None, tokens)
        run = nano_from_usd(self._settings.tool_usd or 0) * (self._times(places) - 1)
        return Bound(self.price.largest_nano(most, self._settings.timeout_s) + run, tokens)

    def _claimed(
        self, api: Api, wanted: Mapping[str, Any], places: Sequence[Place]
    ) -> Bound | None:
        """Return the most that a reply can claim; None where nobody says what the model reads."""
        if self._known_window is None:
            return None
        written = self._output(api, wanted, limited=False)
        return self._bound(self._most(self._times(places) * self._window, written, places), places)

    def _times(self, places: Sequence[Place]) -> int:
        """Return how often the input is read: again after each use of what the provider runs."""
        return 1 + self._settings.tool_uses * any(one.kind == "tool" for one in places)

    def _input(
        self, body: bytes, template: int, places: Sequence[Place], wanted: Mapping[str, Any]
    ) -> int:
        """Return the most tokens of a body; a provider may put `template` around its messages."""
        images = [one for one in places if one.kind == "image"]
        each = [self._image(one.what) for one in images]
        unseen = [one for one, tokens in zip(images, each, strict=True) if tokens is None]
        opaque = [one for one in places if one.kind in {"unknown", "audio", "tool"}] + unseen
        if opaque:
            self._check_window(opaque[0])
            return self._times(places) * self._window
        schemas = [wanted[name] for name in _SCHEMAS if wanted.get(name)]
        again = len(msgspec.json.encode(schemas)) + TOKENS_PER_SCHEMAS if schemas else 0
        pictured = sum(len(msgspec.json.encode(one.shown)) for one in images)
        return len(body) - pictured + template + again + sum(filter(None, each))

    def _check_window(self, place: Place) -> None:
        """Refuse input of any length where nothing bounds what it costs."""
        price, seconds = self.price, self._settings.timeout_s
        if self._known_window is None and price is not None:
            none, most = (price.largest_nano(Usage(n, 0), seconds) for n in (0, WINDOW))
            if most > none:
                raise RequestError(
                    f"'{place}' may be any number of tokens, and nothing says how many "
                    f"'{self.name}' takes in; give context_window in its section",
                    str(place.path[0]),
                )

    def _image(self, detail: str | None) -> int | None:
        """Return the most tokens that an image counts as; None: nothing says that."""
        stated = self._settings.image_tokens
        return tokens_of_image(self.model, detail) if stated is None else stated

    def _output(
        self,
        api: Api,
        wanted: Mapping[str, Any],
        unlimited: int | None = None,
        *,
        limited: bool = True,
    ) -> int:
        """Return the most tokens of a reply; without a limit, of `unlimited` or the model's own."""
        replies, field = api.replies(wanted), self._settings.limit_name
        if not replies:
            return 0
        limit = wanted.get(field if api is CHAT else str(api.limit))
        if not (limited and isinstance(limit, int)):
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
    def _known_window(self) -> int | None:
        settings = self._settings
        if settings.context_window is not None:
            return settings.context_window
        return published_window(settings.model, provider=settings.price_provider, url=settings.url)

    @property
    def _window(self) -> int:
        return self._known_window or WINDOW


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
            if whole.usage is not None and not self.bounding.silent:
                self.bounding.shown.note(whole.usage)
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
        cost = self.bound.nano
        if usage and self.price:
            price = self.price.largest_nano if usage.estimated else self.price.cost_nano
            cost = price(usage, seconds)
        used = usage or self.most
        answered = model or self.model
        return Reply(body, used, used.cached_tokens, cost, seconds, answered, api=self.api)


def _streaming(request: ChatRequest) -> bytes:
    options = (request.body.get("stream_options") or {}) | {"include_usage": True}
    return msgspec.json.encode(options)
