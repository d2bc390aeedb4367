"""A call to one model: each try is reserved before it is sent, and settled by what it took."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from farthing.errors import BudgetError, ModelError
from farthing.models.base import Usage
from farthing.models.prices import unpriced
from farthing.models.retry import add_cost, retry
from farthing.money import dollars
from farthing_gateway.charging import ChargeAttempt, RequestCharges
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.request_schema import RequestError
from farthing_gateway.storage.ledger.base import LARGEST, Amount, Hold, LimitError
from farthing_gateway.upstream import AfterFailures
from farthing_gateway.upstream_base import Reply, StreamedReply, Upstream, UpstreamCall

LEAST_OUTPUT = 16
"""Fewest output tokens that a request is shortened to."""
_MANY = 2**20
_SHORTENINGS = 3
"""How often a request is shortened, as others spend at the same time."""


class RequestBudgetError(BudgetError):
    """A request allows less than it can cost."""

    def __init__(self, said: str, left_nano: int) -> None:
        super().__init__(said)
        self.left_nano = left_nano
        """What it allows, less what its tries took, in nano-dollars."""


@dataclass(frozen=True)
class PaidCall:
    """A request to one model, and who pays for its tries."""

    upstream: Upstream
    request: ChatRequest
    charges: RequestCharges
    default_max_output: int | None
    """Output tokens of a choice where the request names no limit; None: the model's own."""
    until: float = math.inf
    """When all tries must have ended, in `time.monotonic`."""
    shortens: bool = False
    """Whether a request without a limit is sent with the one that can be paid."""

    async def send(self) -> Reply:
        """Ask until an answer comes or patience is at its end.

        Raises:
            ModelError: the last try failed, or the request cannot be sent.
            BudgetError: a limit does not allow the next try.
        """
        done = await retry(self._attempt, self.upstream.patience, until=self.until)
        if done.tries == 1:
            return done.value
        cost = add_cost(done.failed_nano, done.value.cost_nano)
        return replace(done.value, cost_nano=cost, tries=done.tries)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[StreamedReply]:
        async with AsyncExitStack() as stack:
            done = await retry(
                lambda: stack.enter_async_context(self._streaming()),
                self.upstream.patience,
                until=self.until,
            )
            if done.tries == 1:
                yield done.value
            else:
                yield AfterFailures(done.value, done.failed_nano, done.tries - 1)

    async def _attempt(self) -> Reply:
        async with self._reserved() as (call, held):
            reply = await call.send(self._left_s)
            held.listed_nano = reply.listed_nano
            held.settle(reply.cost_nano, reply.usage)
            return held.bounded(reply)

    @asynccontextmanager
    async def _streaming(self) -> AsyncIterator[StreamedReply]:
        reserved = self._reserved()
        async with reserved as (call, held), call.stream(self._left_s) as streamed:
            try:
                yield streamed
            except (GeneratorExit, asyncio.CancelledError):
                _left(held, streamed)
                raise
            except ModelError:
                held.counted = _counted(streamed)
                raise
            if streamed.ended:
                held.listed_nano = streamed.reply.listed_nano
                held.settle(streamed.reply.cost_nano, streamed.reply.usage)

    @asynccontextmanager
    async def _reserved(self) -> AsyncIterator[tuple[UpstreamCall, ChargeAttempt]]:
        request, call, hold = await self._reserve(self.request, _SHORTENINGS)
        async with self.charges.trying(self.upstream.name, hold) as held:
            held.max_tokens = None if request is self.request else request.limit
            held.dropped = call.bound.dropped
            if call.bound.claimed is not None:
                held.claimable = call.bound.claimed.amount
            yield call, held

    async def _reserve(
        self, request: ChatRequest, shortenings: int
    ) -> tuple[ChatRequest, UpstreamCall, Hold]:
        call = self._prepared(request)
        try:
            hold = await self.charges.reserve(self.upstream.name, self._largest(call))
        except BudgetError as error:
            unlimited = self.request.limit is None and self.default_max_output is None
            if not shortenings or not unlimited or (most := self._payable(error)) is None:
                raise
            if not self.shortens:
                raise _advised(error, most, self.upstream) from None
        else:
            return request, call, hold
        return await self._reserve(replace(self.request, limit=most), shortenings - 1)

    def _prepared(self, request: ChatRequest) -> UpstreamCall:
        return self.upstream.prepare(request, self.default_max_output)

    def _largest(self, call: UpstreamCall) -> Amount:
        """Return the most that a try can cost, which the rest of the request's budget allows."""
        bound, name = call.bound, self.upstream.name
        if bound.nano is None:
            raise unpriced(self.upstream.model)
        if max(bound.nano, bound.tokens) > LARGEST:
            raise RequestError(
                f"{name} could write {bound.tokens:,} tokens here, which no budget can hold; ask "
                "for fewer (max_completion_tokens, n, or a budget of thought)"
            )
        most, spent = self.request.options.budget_nano, self.charges.spent_nano
        if most is not None and spent + bound.nano > most:
            before = f", of which tries that failed took {dollars(spent)}" if spent else ""
            raise RequestBudgetError(
                f"{name} can cost {dollars(bound.nano)} here, and this request allows "
                f"{dollars(most)}{before}; allow more, or ask for fewer tokens "
                "(max_completion_tokens)",
                most - spent,
            )
        return bound.amount

    def _payable(self, error: BudgetError) -> int | None:
        """Return how many output tokens what is left can pay; None: none, or no limit costs less.

        They are fewer than the model's section says that it writes: all of these could not be paid.
        """
        if isinstance(error, LimitError):
            left, unit = error.left, error.limit.unit
        elif isinstance(error, RequestBudgetError):
            left, unit = error.left_nano, "usd"
        else:
            return None

        def needed(tokens: int) -> int:
            bound = self._prepared(replace(self.request, limit=tokens)).bound
            return Amount(bound.nano or 0, bound.tokens, 1).of(unit)

        # The cost grows in proportion, but for rounding and the digits of the limit: seven of each.
        some = needed(_MANY)
        grows = needed(2 * _MANY) - some
        most = _MANY + (left - some) * _MANY // grows - 1 if grows > 0 else 0
        return most if most >= LEAST_OUTPUT else None

    @property
    def _left_s(self) -> float | None:
        return None if self.until == math.inf else max(0.001, self.until - time.monotonic())


def _advised(error: BudgetError, most: int, upstream: Upstream) -> BudgetError:
    advice = f"name a max_tokens: at most {most:,} can be paid now"
    if upstream.max_output is None:
        advice += f"; the limit of {upstream.name} itself may be lower"
    if isinstance(error, LimitError):
        return LimitError(
            error.limit, error.needed, error.left, error.resets_at, advice, error.held
        )
    return BudgetError(f"{error}; {advice}")


def _counted(streamed: StreamedReply) -> tuple[int, Usage] | None:
    """Return what a stream that broke took, where its provider's count came before."""
    took = streamed.so_far
    if took is None or took.cost_nano is None or took.usage.estimated:
        return None
    return took.cost_nano, took.usage


def _left(held: ChargeAttempt, streamed: StreamedReply) -> None:
    """Settle a stream that is left before its end, where what came of it bounds its cost."""
    most = streamed.so_far
    if most is not None and most.cost_nano is not None:
        held.settle(most.cost_nano, most.usage)
