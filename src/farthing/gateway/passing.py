"""A model answers a request as it came: it is asked, paid for, and its reply passed on unchanged.

Each try is reserved before it is sent. Where a model fails its fallbacks are asked in turn; once a
stream has begun it is too late for that.
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from farthing.budgets.accounts.base import Amount
from farthing.errors import BadRequestError, BudgetError, ContentRefusedError, ModelError
from farthing.gateway.requests import ChatRequest
from farthing.gateway.spending import Payer
from farthing.gateway.upstream import (
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
from farthing.money import dollars

_AT_FAULT = frozenset({BadRequestError.kind, ContentRefusedError.kind})
"""Failures of the request itself: no other model is asked."""


@dataclass(frozen=True)
class Passing:
    """The upstream models, and who stands in for whom."""

    upstreams: Mapping[str, Upstream]
    default_max_output: int
    fallbacks: Mapping[str, Sequence[str]]

    @property
    def sections(self) -> dict[str, str]:
        """What clients call a model, its section, to what its provider calls it."""
        return {name: upstream.model for name, upstream in self.upstreams.items()}

    def line(self, name: str) -> list[str]:
        """Return a model and those that stand in for it, in turn."""
        return list(dict.fromkeys((name, *self.fallbacks.get(name, ()))))

    def instead(self, failed: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
        """Return who may stand in for models that failed, in turn, to the model it is for.

        Args:
            failed: model to how it failed.
            asked: who was asked already, and is not asked again.
        """
        found: dict[str, str] = {}
        for name, kind in failed.items():
            if kind not in _AT_FAULT:
                for other in self.fallbacks.get(name, ()):
                    found.setdefault(other, name)
        return {other: name for other, name in found.items() if other not in asked}

    async def send(
        self, line: Sequence[str], request: ChatRequest, payer: Payer, timeout_s: float
    ) -> tuple[str, Reply]:
        """Return who of a line answered, and the reply.

        Raises:
            LimitError: a limit does not allow it.
            BudgetError: it can cost more than the request allows.
            ModelError: the model failed, and so did its fallbacks.
        """
        for call, last in self._calls(line, request, timeout_s):
            try:
                return call.upstream.name, await send(call, self._around(call, payer))
            except ModelError as error:
                if last or error.kind in _AT_FAULT:
                    raise
        raise AssertionError("a model was asked")

    @asynccontextmanager
    async def stream(
        self, line: Sequence[str], request: ChatRequest, payer: Payer, timeout_s: float
    ) -> AsyncIterator[tuple[str, StreamedReply]]:
        """Open a reply in pieces while the block runs; raises like `send`, also amid the pieces."""
        async with AsyncExitStack() as stack:
            yield await self._open(stack, self._calls(line, request, timeout_s), payer)

    async def _open(
        self, stack: AsyncExitStack, calls: Iterator[tuple[Call, bool]], payer: Payer
    ) -> tuple[str, StreamedReply]:
        for call, last in calls:
            try:
                opening = stream(call, self._around_stream(call, payer))
                return call.upstream.name, await stack.enter_async_context(opening)
            except ModelError as error:
                if last or error.kind in _AT_FAULT:
                    raise
        raise AssertionError("a model was asked")

    def _calls(
        self, line: Sequence[str], request: ChatRequest, timeout_s: float
    ) -> Iterator[tuple[Call, bool]]:
        """Yield the call to each model of a line, and whether it is the last."""
        for one in line:
            upstream = self.upstreams[one]
            yield Call(upstream, request, self.default_max_output, timeout_s), one == line[-1]

    def _around(self, call: Call, payer: Payer) -> AroundSend:
        async def paid(attempt: Callable[[], Awaitable[Reply]]) -> Reply:
            async with payer.trying(call.upstream.name, _largest(call, payer)) as held:
                reply = await attempt()
                await held.settle(reply.cost_nano, _tokens(reply))
                return reply

        return paid

    def _around_stream(self, call: Call, payer: Payer) -> AroundStream:
        @asynccontextmanager
        async def paid(attempt: StreamTry) -> AsyncIterator[StreamedReply]:
            trying = payer.trying(call.upstream.name, _largest(call, payer))
            async with trying as held, attempt() as streamed:
                yield streamed
                if streamed.ended:
                    await held.settle(streamed.reply.cost_nano, _tokens(streamed.reply))

        return paid


def _largest(call: Call, payer: Payer) -> Amount:
    """Return the most that a try can cost, which what is left of the request's budget must allow.

    Raises:
        BudgetError: it does not.
        UnpricedModelError: the model has no price.
    """
    bound = call.upstream.largest(call.request, call.default_max_output)
    if bound.nano is None:
        raise unpriced(call.upstream.model)
    most, spent = call.request.wishes.budget_nano, payer.spent_nano
    if most is not None and spent + bound.nano > most:
        before = f", of which tries that failed took {dollars(spent)}" if spent else ""
        raise BudgetError(
            f"{call.upstream.name} can cost {dollars(bound.nano)} here, and this request allows "
            f"{dollars(most)}{before}; allow more, or ask for fewer tokens (max_completion_tokens)"
        )
    return Amount(bound.nano, bound.tokens, 1)


def _tokens(reply: Reply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens
