"""A model answers a request as it came: it is asked, paid for, and its reply passed on unchanged.

Each try is reserved before it is sent. Where a model fails its fallbacks are asked in turn; once a
stream has begun it is too late for that.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from farthing.errors import BadRequestError, BudgetError, ContentRefusedError, ModelError
from farthing.gateway.charging import ChargeAttempt, RequestCharges
from farthing.gateway.chat_request import ChatRequest, RequestError
from farthing.gateway.circuit_breaker import CircuitBreaker
from farthing.gateway.deadline import Deadline
from farthing.gateway.repeated_lines import about
from farthing.gateway.upstream import (
    AroundSend,
    AroundStream,
    Reply,
    SendTry,
    StreamedReply,
    StreamTry,
    Upstream,
    UpstreamRequest,
    send,
    stream,
)
from farthing.models.base import Usage
from farthing.models.prices import unpriced
from farthing.money import dollars
from farthing.storage.ledger.base import LARGEST, Amount, Hold, LimitError

LOG = logging.getLogger("farthing.gateway")
_AT_FAULT = frozenset({BadRequestError.kind, ContentRefusedError.kind})
"""Failures of the request itself: no other model is asked."""
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
class Proxy:
    """The upstream models, and who stands in for whom."""

    upstreams: Mapping[str, Upstream]
    default_max_output: int | None
    fallbacks: Mapping[str, Sequence[str]]
    breaker: CircuitBreaker
    """Which models are left alone now."""
    shortens: bool = False
    """Whether a request without a limit is sent with the one that can be paid."""

    @property
    def sections(self) -> dict[str, str]:
        """What clients call a model, its section, to what its provider calls it."""
        return {name: upstream.model for name, upstream in self.upstreams.items()}

    @cached_property
    def noting(self) -> frozenset[str]:
        """The models whose calls note when they are written."""
        return frozenset(name for name, one in self.upstreams.items() if one.notes_sending)

    def fallback_chain(self, name: str) -> list[str]:
        """Return a model and those that stand in for it, in turn."""
        return list(dict.fromkeys((name, *self.fallbacks.get(name, ()))))

    def fallbacks_for(self, failed: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
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
        self, line: Sequence[str], request: ChatRequest, charges: RequestCharges, deadline: Deadline
    ) -> tuple[str, Reply]:
        """Return who of a line answered, and the reply."""
        for call, last in self._calls(line, request, charges, deadline):
            try:
                return call.upstream.name, await send(call, self._around(call, charges))
            except ModelError as error:
                if not _should_fall_back(error, call, charges) or last:
                    raise
        raise AssertionError("a model was asked")

    @asynccontextmanager
    async def stream(
        self, line: Sequence[str], request: ChatRequest, charges: RequestCharges, deadline: Deadline
    ) -> AsyncIterator[tuple[str, StreamedReply]]:
        """Open a reply in pieces while the block runs; raises like `send`, also amid the pieces."""
        try:
            async with AsyncExitStack() as stack:
                yield await self._open(
                    stack, self._calls(line, request, charges, deadline), charges
                )
        except ModelError as error:
            if not error.failed:  # it broke amid its pieces
                _note(error, charges)
            raise

    async def _open(
        self,
        stack: AsyncExitStack,
        calls: Iterator[tuple[UpstreamRequest, bool]],
        charges: RequestCharges,
    ) -> tuple[str, StreamedReply]:
        for call, last in calls:
            try:
                opening = stream(call, self._around_stream(call, charges))
                return call.upstream.name, await stack.enter_async_context(opening)
            except ModelError as error:
                if not _should_fall_back(error, call, charges) or last:
                    raise
        raise AssertionError("a model was asked")

    def _calls(
        self, line: Sequence[str], request: ChatRequest, charges: RequestCharges, deadline: Deadline
    ) -> Iterator[tuple[UpstreamRequest, bool]]:
        """Yield the call to each model of a line that is not left alone, and whether it is last."""
        ready = self.breaker.ready(line)
        for one in line:
            if one in ready:
                self.breaker.begin(one)
                call = UpstreamRequest(
                    self.upstreams[one], request, self.default_max_output, deadline.until
                )
                yield call, one == ready[-1]
            else:
                charges.skip(one)

    async def _reserve(
        self, call: UpstreamRequest, charges: RequestCharges
    ) -> tuple[UpstreamRequest, Hold]:
        """Return a try that is reserved.

        Where so configured it has a limit that can be paid where there was none.
        """
        for _ in range(_SHORTENINGS):
            try:
                return call, await charges.reserve(call.upstream.name, _largest(call, charges))
            except BudgetError as error:
                if not call.unlimited or (most := _payable(call, error)) is None:
                    raise
                if not self.shortens:
                    raise _advised(error, most, call.upstream) from None
                shorter = replace(call.request, limit=most)
                call = replace(call, request=shorter, shortened=True)
        return call, await charges.reserve(call.upstream.name, _largest(call, charges))

    @asynccontextmanager
    async def _trying(
        self, call: UpstreamRequest, charges: RequestCharges
    ) -> AsyncIterator[tuple[ChargeAttempt, ChatRequest]]:
        """Reserve a try while the block makes it, of the request that it is sent with."""
        sent, hold = await self._reserve(call, charges)
        async with charges.trying(call.upstream.name, hold) as held:
            held.max_tokens = sent.request.limit if sent.shortened else None
            yield held, sent.request

    def _around(self, call: UpstreamRequest, charges: RequestCharges) -> AroundSend:
        async def paid(attempt: SendTry) -> Reply:
            async with self._trying(call, charges) as (held, request):
                reply = await attempt(request)
                await held.settle(reply.cost_nano, reply.usage)
                return held.bounded(reply)

        return paid

    def _around_stream(self, call: UpstreamRequest, charges: RequestCharges) -> AroundStream:
        @asynccontextmanager
        async def paid(attempt: StreamTry) -> AsyncIterator[StreamedReply]:
            trying = self._trying(call, charges)
            async with trying as (held, request), attempt(request) as streamed:
                try:
                    yield streamed
                except (GeneratorExit, asyncio.CancelledError):
                    await _left(held, streamed)
                    raise
                except ModelError:
                    held.counted = _counted(streamed)
                    raise
                if streamed.ended:
                    await held.settle(streamed.reply.cost_nano, streamed.reply.usage)

        return paid


def _largest(call: UpstreamRequest, charges: RequestCharges) -> Amount:
    """Return the most that a try can cost, which the rest of the request's budget must allow."""
    bound = call.upstream.largest(call.request, call.default_max_output)
    if bound.nano is None:
        raise unpriced(call.upstream.model)
    if max(bound.nano, bound.tokens) > LARGEST:
        raise RequestError(
            f"{call.upstream.name} could write {bound.tokens:,} tokens here, which no budget can "
            "hold; ask for fewer (max_completion_tokens, n, or a budget of thought)"
        )
    most, spent = call.request.options.budget_nano, charges.spent_nano
    if most is not None and spent + bound.nano > most:
        before = f", of which tries that failed took {dollars(spent)}" if spent else ""
        raise RequestBudgetError(
            f"{call.upstream.name} can cost {dollars(bound.nano)} here, and this request allows "
            f"{dollars(most)}{before}; allow more, or ask for fewer tokens (max_completion_tokens)",
            most - spent,
        )
    return Amount(bound.nano, bound.tokens, 1)


def _payable(call: UpstreamRequest, error: BudgetError) -> int | None:
    """Return how many output tokens what is left can pay; None: none, or they cost nothing more.

    They are fewer than the model's section says that it writes: all of these could not be paid.
    """
    if isinstance(error, LimitError):
        left, unit = error.left, error.limit.unit
    elif isinstance(error, RequestBudgetError):
        left, unit = error.left_nano, "usd"
    else:
        return None

    def needed(tokens: int) -> int:
        bound = call.upstream.largest(replace(call.request, limit=tokens), None)
        return Amount(bound.nano or 0, bound.tokens, 1).of(unit)

    # The cost grows in proportion, but for rounding and for the digits of the limit: seven of each.
    some = needed(_MANY)
    grows = needed(2 * _MANY) - some
    most = _MANY + (left - some) * _MANY // grows - 1 if grows > 0 else 0
    return most if most >= LEAST_OUTPUT else None


def _advised(error: BudgetError, most: int, upstream: Upstream) -> BudgetError:
    """Say which limit can be paid."""
    advice = f"name a max_tokens: at most {most:,} can be paid now"
    if upstream.max_output is None:
        advice += f"; the limit of {upstream.name} itself may be lower"
    if isinstance(error, LimitError):
        return LimitError(error.limit, error.needed, error.left, error.resets_at, advice)
    return BudgetError(f"{error}; {advice}")


def _note(error: ModelError, charges: RequestCharges) -> None:
    """Say which models failed, in the error, and to the operator also how the last one did."""
    error.failed = charges.failed
    name = next(reversed(charges.failed), "a model")
    LOG.warning("%s failed: %s", name, error.plain or error.kind, extra=about(name))


def _should_fall_back(error: ModelError, call: UpstreamRequest, charges: RequestCharges) -> bool:
    """Say what failed, and return whether another model is asked."""
    _note(error, charges)
    return error.kind not in _AT_FAULT and time.monotonic() < call.until


def _counted(streamed: StreamedReply) -> tuple[int, Usage] | None:
    """Return what a stream that broke took, where its provider's count came before."""
    took = streamed.so_far
    if took is None or took.cost_nano is None or took.usage.estimated:
        return None
    return took.cost_nano, took.usage


async def _left(held: ChargeAttempt, streamed: StreamedReply) -> None:
    """Settle a stream that is left before its end, where what came of it bounds its cost."""
    most = streamed.so_far
    if most is not None and most.cost_nano is not None:
        await asyncio.shield(held.settle(most.cost_nano, most.usage))
