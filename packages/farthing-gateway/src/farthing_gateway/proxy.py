"""A model answers a request as it came: it is asked, paid for, and its reply passed on unchanged.

Where a model fails its fallbacks are asked in turn; once a stream has begun it is too late for
that.
"""

import logging
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property

from farthing.errors import BadRequestError, ContentRefusedError, ModelError
from farthing_gateway.charging import RequestCharges
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.circuit_breaker import CircuitBreaker
from farthing_gateway.deadline import Deadline
from farthing_gateway.paid_call import PaidCall
from farthing_gateway.storage.ledger.base import Amount
from farthing_gateway.upstream_base import Reply, StreamedReply, Upstream

LOG = logging.getLogger("farthing_gateway")
_AT_FAULT = frozenset({BadRequestError.kind, ContentRefusedError.kind})
"""Failures of the request itself: no other model is asked."""


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

    @cached_property
    def claimable(self) -> dict[str, Amount]:
        """The most that counts of what a reply of each model claims, where that is known."""
        claimed = {name: one.claimed for name, one in self.upstreams.items()}
        return {name: bound.amount for name, bound in claimed.items() if bound is not None}

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
        for paid, last in self._calls(line, request, charges, deadline):
            try:
                return paid.upstream.name, await paid.send()
            except ModelError as error:
                if not _should_fall_back(error, paid, charges) or last:
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
        calls: Iterator[tuple[PaidCall, bool]],
        charges: RequestCharges,
    ) -> tuple[str, StreamedReply]:
        for paid, last in calls:
            try:
                return paid.upstream.name, await stack.enter_async_context(paid.stream())
            except ModelError as error:
                if not _should_fall_back(error, paid, charges) or last:
                    raise
        raise AssertionError("a model was asked")

    def _calls(
        self, line: Sequence[str], request: ChatRequest, charges: RequestCharges, deadline: Deadline
    ) -> Iterator[tuple[PaidCall, bool]]:
        ready = self.breaker.ready(line)
        for one in line:
            if one in ready:
                self.breaker.begin(one)
                most = self.default_max_output
                call = PaidCall(
                    self.upstreams[one], request, charges, most, deadline.until, self.shortens
                )
                yield call, one == ready[-1]
            else:
                charges.skip(one)


def _note(error: ModelError, charges: RequestCharges) -> None:
    """Say which models failed, in the error, and to the operator also how the last one did."""
    error.failed = charges.failed
    name = next(reversed(charges.failed), "a model")
    LOG.warning("%s failed: %s", name, error.plain or error.kind)


def _should_fall_back(error: ModelError, call: PaidCall, charges: RequestCharges) -> bool:
    _note(error, charges)
    return error.kind not in _AT_FAULT and time.monotonic() < call.until
