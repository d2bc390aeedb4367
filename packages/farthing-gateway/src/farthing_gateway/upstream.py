"""Upstream models, opened from a configuration: each try within the limits of its endpoint."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from farthing.errors import ModelError, RateLimitError
from farthing.models.config import ModelsConfig
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.rate_limit import RateLimiter, Ticket
from farthing.models.retry import add_cost
from farthing_gateway.apis.base import Api
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.http_upstream import HttpUpstream
from farthing_gateway.prompt_upstream import SpokenUpstream
from farthing_gateway.upstream_base import Bound, Reply, StreamedReply, Upstream, UpstreamCall


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
        self.name, self.model = upstream.name, upstream.model
        self.price, self.max_output = upstream.price, upstream.max_output
        self.patience, self.notes_sending = upstream.patience, upstream.notes_sending

    @property
    def claimed(self) -> Bound | None:
        return self._upstream.claimed

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> UpstreamCall:
        call = self._upstream.prepare(request, default_max_output)
        return _LimitedCall(call, self._admission, self.name, self.patience.asked_s)

    async def aclose(self) -> None:
        await self._upstream.aclose()


@dataclass(frozen=True)
class _LimitedCall:
    """A call that waits for its admission."""

    call: UpstreamCall
    admission: RateLimiter
    name: str
    asked_s: float | None
    """Most seconds that its provider may ask to wait for; None: any."""

    @property
    def bound(self) -> Bound:
        return self.call.bound

    @property
    def rated_tokens(self) -> int:
        return self.call.rated_tokens

    async def send(self, timeout_s: float | None = None) -> Reply:
        async with self._admitted() as ticket:
            reply = await self.call.send(timeout_s)
            self.admission.correct(ticket, _tokens(reply))
            return reply

    @asynccontextmanager
    async def stream(self, timeout_s: float | None = None) -> AsyncIterator[StreamedReply]:
        async with self._admitted() as ticket, self.call.stream(timeout_s) as streamed:
            yield streamed
            if streamed.ended:
                self.admission.correct(ticket, _tokens(streamed.reply))

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[Ticket]:
        self.admission.refuse_long_pause(self.name, self.asked_s)
        async with self.admission.admit(self.rated_tokens) as ticket:
            try:
                yield ticket
            except RateLimitError as error:
                self.admission.pause_for(error.retry_after_s or 0.0)
                raise


class AfterFailures:
    """A stream whose cost is that of the tries before it as well."""

    def __init__(self, streamed: StreamedReply, failed_nano: int | None, failed: int) -> None:
        """Add what failed tries cost, in nano-dollars, and their number."""
        self._streamed = streamed
        self._failed_nano = failed_nano
        self._failed = failed

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self

    async def __anext__(self) -> list[bytes]:
        """Return the next pieces; an error costs what all tries did."""
        try:
            return await anext(self._streamed)
        except ModelError as error:
            error.cost_nano = add_cost(self._failed_nano, error.cost_nano)
            error.tries += self._failed
            raise

    @property
    def api(self) -> Api:
        return self._streamed.api

    @property
    def ended(self) -> bool:
        return self._streamed.ended

    @property
    def so_far(self) -> Reply | None:
        last = self._streamed.so_far
        return last and self._with_failures(last)

    @property
    def reply(self) -> Reply:
        return self._with_failures(self._streamed.reply)

    def _with_failures(self, last: Reply) -> Reply:
        cost = add_cost(self._failed_nano, last.cost_nano)
        return replace(last, cost_nano=cost, tries=self._failed + last.tries)


def _tokens(reply: Reply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens
