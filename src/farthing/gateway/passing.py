"""A model answers a request as it came: it is asked, paid for, and its reply passed on unchanged.

Each try is reserved before it is sent. Where a model fails its fallbacks are asked in turn; once a
stream has begun it is too late for that.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from farthing.budgets.accounts.base import Amount
from farthing.errors import BadRequestError, BudgetError, ContentRefusedError, ModelError
from farthing.gateway.requests import ChatRequest
from farthing.gateway.spending import Attempt, Payer
from farthing.gateway.upstream import Reply, StreamedReply, Upstream
from farthing.models.prices import unpriced
from farthing.models.retry import added, persist
from farthing.money import dollars


@dataclass
class Streamed:
    """A reply in pieces, and what it took in the end."""

    name: str
    """Whose reply it is."""
    pieces: StreamedReply
    attempt: Attempt

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces; then the try is settled."""
        async for piece in self.pieces:
            yield piece
        await _settle(self.attempt, self.pieces.reply)

    @property
    def ended(self) -> tuple[str, Reply]:
        """Whose reply it was, and what it took; only after the last piece."""
        return self.name, self.pieces.reply


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
        *before, last = self._line(name)
        for one in before:
            try:
                return one, await self._send(one, request, payer, timeout_s)
            except ModelError as error:
                if not _may_pass(error):
                    raise
        return last, await self._send(last, request, payer, timeout_s)

    @asynccontextmanager
    async def stream(
        self, name: str, request: ChatRequest, payer: Payer, timeout_s: float
    ) -> AsyncIterator[Streamed]:
        """Open a reply in pieces while the block runs; raises like `send`, also amid the pieces."""
        async with AsyncExitStack() as stack:
            yield await self._open(name, request, payer, timeout_s, stack)

    def _line(self, name: str) -> list[str]:
        """Return a model and its fallbacks, each once."""
        return list(dict.fromkeys((name, *self.fallbacks.get(name, ()))))

    async def _send(self, name: str, request: ChatRequest, payer: Payer, timeout_s: float) -> Reply:
        upstream = self.upstreams[name]
        largest = self._largest(upstream, request)

        async def once() -> Reply:
            async with payer.trying(name, largest) as attempt:
                reply = await upstream.send(request, self.default_max_output, timeout_s=timeout_s)
                await _settle(attempt, reply)
                return reply

        done = await persist(once, upstream.patience)
        cost = added(done.failed_nano, done.value.cost_nano)
        return replace(done.value, cost_nano=cost, tries=done.tries)

    async def _open(
        self,
        name: str,
        request: ChatRequest,
        payer: Payer,
        timeout_s: float,
        stack: AsyncExitStack,
    ) -> Streamed:
        *before, last = self._line(name)
        for one in before:
            try:
                return await self._begin(one, request, payer, timeout_s, stack)
            except ModelError as error:
                if not _may_pass(error):
                    raise
        return await self._begin(last, request, payer, timeout_s, stack)

    async def _begin(
        self,
        name: str,
        request: ChatRequest,
        payer: Payer,
        timeout_s: float,
        stack: AsyncExitStack,
    ) -> Streamed:
        upstream = self.upstreams[name]
        largest = self._largest(upstream, request)

        async def once() -> Streamed:
            async with AsyncExitStack() as tried:
                attempt = await tried.enter_async_context(payer.trying(name, largest))
                pieces = await tried.enter_async_context(
                    upstream.stream(request, self.default_max_output, timeout_s=timeout_s)
                )
                stack.push_async_exit(tried.pop_all().__aexit__)
                return Streamed(name, pieces, attempt)

        return (await persist(once, upstream.patience)).value

    def _largest(self, upstream: Upstream, request: ChatRequest) -> Amount:
        """Return the most that a try can cost, which the request's own budget must allow.

        Raises:
            BudgetError: it does not.
            UnpricedModelError: the model has no price.
        """
        bound = upstream.largest(request, self.default_max_output)
        if bound.nano is None:
            raise unpriced(upstream.model)
        most = request.wishes.budget_nano
        if most is not None and bound.nano > most:
            raise BudgetError(
                f"{upstream.name} can cost {dollars(bound.nano)} here, and this request allows "
                f"{dollars(most)}; allow more, or ask for fewer tokens (max_completion_tokens)"
            )
        return Amount(bound.nano, bound.tokens, 1)


async def _settle(attempt: Attempt, reply: Reply) -> None:
    await attempt.settle(reply.cost_nano, reply.usage.input_tokens + reply.usage.output_tokens)


def _may_pass(error: ModelError) -> bool:
    """Return whether another model might answer: not where the request itself is at fault."""
    return not isinstance(error, BadRequestError | ContentRefusedError)
