"""A model answers a request as it came: it is asked, paid for, and its reply passed on unchanged.

Each try is reserved before it is sent. Where a model fails its fallbacks are asked in turn; once a
stream has begun it is too late for that.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from farthing.budgets.accounts.base import Amount
from farthing.errors import BadRequestError, BudgetError, ContentRefusedError, ModelError
from farthing.gateway.requests import ChatRequest
from farthing.gateway.spending import Payer
from farthing.gateway.upstream import (
    AfterFailures,
    AroundSend,
    AroundStream,
    Call,
    Reply,
    StreamedReply,
    StreamTry,
    Upstream,
    send,
    stream,
)
from farthing.models.prices import unpriced
from farthing.models.retry import added
from farthing.money import dollars


@dataclass(frozen=True)
class Passing:
    """The upstream models, and who stands in for whom."""

    upstreams: Mapping[str, Upstream]
    default_max_output: int
    fallbacks: Mapping[str, Sequence[str]]

    async def send(
        self, name: str, request: ChatRequest, payer: Payer, timeout_s: float
    ) -> tuple[str, Reply]:
        """Return who answered, and the reply.

        Raises:
            LimitError: a limit does not allow it.
            BudgetError: it can cost more than the request allows.
            ModelError: the model failed, and so did its fallbacks.
        """
        failed = _Failed()
        for call, last in self._line(name, request, timeout_s):
            try:
                reply = await send(call, self._around(call, payer))
            except ModelError as error:
                failed.add(error)
                if last or not _may_pass(error):
                    raise
            else:
                cost = added(failed.nano, reply.cost_nano)
                tries = failed.tries + reply.tries
                return call.upstream.name, replace(reply, cost_nano=cost, tries=tries)
        raise AssertionError("a model was asked")

    @asynccontextmanager
    async def stream(
        self, name: str, request: ChatRequest, payer: Payer, timeout_s: float
    ) -> AsyncIterator[tuple[str, StreamedReply]]:
        """Open a reply in pieces while the block runs; raises like `send`, also amid the pieces."""
        async with AsyncExitStack() as stack:
            yield await self._open(stack, self._line(name, request, timeout_s), payer)

    async def _open(
        self, stack: AsyncExitStack, line: Iterator[tuple[Call, bool]], payer: Payer
    ) -> tuple[str, StreamedReply]:
        failed = _Failed()
        for call, last in line:
            try:
                opening = stream(call, self._around_stream(call, payer))
                streamed = await stack.enter_async_context(opening)
            except ModelError as error:
                failed.add(error)
                if last or not _may_pass(error):
                    raise
            else:
                if failed.tries:
                    streamed = AfterFailures(streamed, failed.nano, failed.tries)
                return call.upstream.name, streamed
        raise AssertionError("a model was asked")

    def _line(
        self, name: str, request: ChatRequest, timeout_s: float
    ) -> Iterator[tuple[Call, bool]]:
        """Yield the call of a model and of its fallbacks, and whether it is the last."""
        line = list(dict.fromkeys((name, *self.fallbacks.get(name, ()))))
        for one in line:
            upstream = self.upstreams[one]
            yield Call(upstream, request, self.default_max_output, timeout_s), one == line[-1]

    def _around(self, call: Call, payer: Payer) -> AroundSend:
        largest = _largest(call)

        async def paid(attempt: Callable[[], Awaitable[Reply]]) -> Reply:
            async with payer.trying(call.upstream.name, largest) as held:
                reply = await attempt()
                await held.settle(reply.cost_nano, _tokens(reply))
                return reply

        return paid

    def _around_stream(self, call: Call, payer: Payer) -> AroundStream:
        largest = _largest(call)

        @asynccontextmanager
        async def paid(attempt: StreamTry) -> AsyncIterator[StreamedReply]:
            async with payer.trying(call.upstream.name, largest) as held, attempt() as streamed:
                yield streamed
                if streamed.ended:
                    await held.settle(streamed.reply.cost_nano, _tokens(streamed.reply))

        return paid


@dataclass
class _Failed:
    """What the models cost that failed before another one answered."""

    nano: int | None = 0
    tries: int = 0

    def add(self, error: ModelError) -> None:
        self.nano = added(self.nano, error.cost_nano)
        self.tries += error.tries


def _largest(call: Call) -> Amount:
    """Return the most that a try can cost, which the request's own budget must allow.

    Raises:
        BudgetError: it does not.
        UnpricedModelError: the model has no price.
    """
    bound = call.upstream.largest(call.request, call.default_max_output)
    if bound.nano is None:
        raise unpriced(call.upstream.model)
    most = call.request.wishes.budget_nano
    if most is not None and bound.nano > most:
        raise BudgetError(
            f"{call.upstream.name} can cost {dollars(bound.nano)} here, and this request allows "
            f"{dollars(most)}; allow more, or ask for fewer tokens (max_completion_tokens)"
        )
    return Amount(bound.nano, bound.tokens, 1)


def _tokens(reply: Reply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens


def _may_pass(error: ModelError) -> bool:
    """Return whether another model might answer: not where the request itself is at fault."""
    return not isinstance(error, BadRequestError | ContentRefusedError)
