"""Upstream models, opened from a configuration: each try within its limits, tries as allowed.

A try is made by `around`, so that whoever pays can reserve before it and settle after it.
"""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from farthing.errors import ModelError, RateLimitError
from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.http_upstream import HttpUpstream
from farthing.gateway.prompt_upstream import SpokenUpstream
from farthing.gateway.upstream_base import (
    ASSUMED_OUTPUT,
    Bound,
    Reply,
    StreamedReply,
    Upstream,
)
from farthing.models.config import ModelsConfig
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import Price
from farthing.models.rate_limit import RateLimiter
from farthing.models.retry import RetryPolicy, add_cost, retry

__all__ = [
    "AfterFailures",
    "AroundSend",
    "AroundStream",
    "Bound",
    "LimitedUpstream",
    "Reply",
    "SendTry",
    "StreamTry",
    "StreamedReply",
    "Upstream",
    "UpstreamRequest",
    "open_upstreams",
    "send",
    "stream",
]

SendTry = Callable[[ChatRequest], Awaitable[Reply]]
AroundSend = Callable[[SendTry], Awaitable[Reply]]
"""Makes one try, of the request that it says."""
StreamTry = Callable[[ChatRequest], AbstractAsyncContextManager[StreamedReply]]
AroundStream = Callable[[StreamTry], AbstractAsyncContextManager[StreamedReply]]
"""Makes one try of a stream; its block lasts until the stream has ended or is left."""


@dataclass(frozen=True)
class UpstreamRequest:
    """A request to one model."""

    upstream: Upstream
    request: ChatRequest
    default_max_output: int | None
    """Output tokens of a choice where the request names no limit; None: the model's own."""
    until: float = math.inf
    """When all tries must have ended, in `time.monotonic`."""
    shortened: bool = False
    """Whether its limit is what can be paid, since it named none."""

    @property
    def unlimited(self) -> bool:
        """Whether neither the client nor the configuration limits what the model writes."""
        return self.shortened or (self.request.limit is None and self.default_max_output is None)

    @property
    def left_s(self) -> float | None:
        """Seconds for the next try; None: what the section says."""
        return None if self.until == math.inf else max(0.001, self.until - time.monotonic())


async def send(call: UpstreamRequest, around: AroundSend | None = None) -> Reply:
    """Ask until an answer comes or patience is at its end.

    Args:
        call: who is asked what.
        around: makes each try; what it raises beside a ModelError ends the call.
    """

    def attempt(request: ChatRequest) -> Awaitable[Reply]:
        return call.upstream.send(request, call.default_max_output, timeout_s=call.left_s)

    done = await retry(
        lambda: around(attempt) if around else attempt(call.request),
        call.upstream.patience,
        until=call.until,
    )
    cost = add_cost(done.failed_nano, done.value.cost_nano)
    return replace(done.value, cost_nano=cost, tries=done.tries)


@asynccontextmanager
async def stream(
    call: UpstreamRequest, around: AroundStream | None = None
) -> AsyncIterator[StreamedReply]:
    """Ask until a first piece comes or patience ends; the arguments are those of `send`."""

    def attempt(request: ChatRequest) -> AbstractAsyncContextManager[StreamedReply]:
        return call.upstream.stream(request, call.default_max_output, timeout_s=call.left_s)

    async with AsyncExitStack() as stack:
        done = await retry(
            lambda: stack.enter_async_context(around(attempt) if around else attempt(call.request)),
            call.upstream.patience,
            until=call.until,
        )
        if done.tries == 1:
            yield done.value
        else:
            yield AfterFailures(done.value, done.failed_nano, done.tries - 1)


def open_upstreams(
    models: ModelsConfig, admissions: Mapping[str, RateLimiter]
) -> dict[str, Upstream]:
    """Open every model of a configuration by the name of its section.

    Args:
        models: the configuration.
        admissions: its limits, which others may keep as well (`ModelsConfig.admissions`).
    """
    upstreams: dict[str, Upstream] = {}
    for name, section in models.sections.items():
        settings, patience = section.settings, section.patience
        upstream: Upstream
        with models.said_of(name):
            if isinstance(settings, OpenAISettings):
                upstream = HttpUpstream(name, settings, models.prices, patience)
            else:
                model = settings.open(models.prices)
                upstream = SpokenUpstream(name, model, settings.price(models.prices), patience)
        if section.limits is not None:
            upstream = LimitedUpstream(upstream, admissions[section.limits])
        upstreams[name] = upstream
    return upstreams


class LimitedUpstream:
    """A model behind an admission, which models at the same endpoint share."""

    def __init__(self, upstream: Upstream, admission: RateLimiter) -> None:
        self._upstream = upstream
        self._admission = admission

    @property
    def name(self) -> str:
        """What clients call it."""
        return self._upstream.name

    @property
    def model(self) -> str:
        """What its provider calls it."""
        return self._upstream.model

    @property
    def price(self) -> Price | None:
        """What it costs; None where nothing says so."""
        return self._upstream.price

    @property
    def max_output(self) -> int | None:
        """Most output tokens that it writes; None: nobody says."""
        return self._upstream.max_output

    @property
    def patience(self) -> RetryPolicy:
        """How often and how long to try."""
        return self._upstream.patience

    @property
    def notes_sending(self) -> bool:
        """Whether its calls note when they are written."""
        return self._upstream.notes_sending

    def largest(self, request: ChatRequest, default_max_output: int | None) -> Bound:
        """Return the most that one try can take; raises as the model does."""
        return self._upstream.largest(request, default_max_output)

    async def send(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> Reply:
        """Try once it is admitted; an endpoint that asks for a pause has it."""
        tokens = self._admissible(request, default_max_output)
        async with self._admission.admit(tokens) as ticket:
            try:
                reply = await self._upstream.send(request, default_max_output, timeout_s=timeout_s)
            except RateLimitError as error:
                self._admission.pause_for(error.retry_after_s or 0.0)
                raise
            self._admission.correct(ticket, _tokens(reply))
            return reply

    @asynccontextmanager
    async def stream(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> AsyncIterator[StreamedReply]:
        """Try once it is admitted, for a reply in pieces; it is under way until the block ends."""
        tokens = self._admissible(request, default_max_output)
        trying = self._upstream.stream(request, default_max_output, timeout_s=timeout_s)
        async with self._admission.admit(tokens) as ticket:
            try:
                async with trying as streamed:
                    yield streamed
                    if streamed.ended:
                        self._admission.correct(ticket, _tokens(streamed.reply))
            except RateLimitError as error:
                self._admission.pause_for(error.retry_after_s or 0.0)
                raise

    async def aclose(self) -> None:
        """Close the model."""
        await self._upstream.aclose()

    def _admissible(self, request: ChatRequest, default_max_output: int | None) -> int:
        """Return the tokens that a call counts for."""
        self._admission.refuse_long_pause(self.name, self.patience.asked_s)
        return self.largest(request, default_max_output or ASSUMED_OUTPUT).tokens


class AfterFailures:
    """A stream whose cost is that of the tries before it as well."""

    def __init__(self, streamed: StreamedReply, failed_nano: int | None, failed: int) -> None:
        """Add what failed tries cost, in nano-dollars, and their number."""
        self._streamed = streamed
        self._failed_nano = failed_nano
        self._failed = failed

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the pieces."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece; an error costs what all tries did."""
        try:
            return await anext(self._streamed)
        except ModelError as error:
            error.cost_nano = add_cost(self._failed_nano, error.cost_nano)
            error.tries += self._failed
            raise

    @property
    def ended(self) -> bool:
        """Whether all pieces are there."""
        return self._streamed.ended

    @property
    def so_far(self) -> Reply | None:
        """The most that all tries took if it is left now; None: nothing bounds that."""
        last = self._streamed.so_far
        return last and self._with_failures(last)

    @property
    def reply(self) -> Reply:
        """What all tries took."""
        return self._with_failures(self._streamed.reply)

    def _with_failures(self, last: Reply) -> Reply:
        cost = add_cost(self._failed_nano, last.cost_nano)
        return replace(last, cost_nano=cost, tries=self._failed + last.tries)


def _tokens(reply: Reply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens
