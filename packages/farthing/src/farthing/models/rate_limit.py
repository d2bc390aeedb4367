"""Admission to an endpoint: so many requests and tokens a minute, so many calls at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec

from farthing.errors import InputError, RateLimitError
from farthing.models.base import Completion, Model, Prompt, WrappedModel
from farthing.models.clock import Clock, SystemClock
from farthing.models.prices import largest_usage

MINUTE_S = 60.0

Positive = Annotated[int, msgspec.Meta(gt=0)]


class RateLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an endpoint allows; None is no limit."""

    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    """Input and output together."""
    concurrent: Positive | None = None
    """Calls under way at any moment."""

    def share(self, workers: int) -> "RateLimits":
        """Return what each of several processes may take, so that together they keep the limits.

        >>> RateLimits(requests_per_minute=100, concurrent=3).share(2)
        RateLimits(requests_per_minute=50, tokens_per_minute=None, concurrent=1)
        """
        allowed = {name: getattr(self, name) for name in self.__struct_fields__}
        shares = {name: n if n is None else n // workers for name, n in allowed.items()}
        for name, part in shares.items():
            if part == 0:
                raise InputError(f"{workers} workers cannot share {name} = {allowed[name]}")
        return RateLimits(**shares)


@dataclass
class Ticket:
    """An admitted call."""

    tokens: int
    """Tokens that it counts for: the most it can have, until `RateLimiter.correct` knows better."""
    admitted_s: float
    counted: bool = True
    """Whether it was admitted within the last minute."""


class RateLimiter:
    """Admits calls in the order they came, so that no minute holds more than the limits.

    Calls wait for one moment at which all limits admit them, and only the first in line looks at
    the clock: nothing is taken early and held, nothing is overtaken, and a cancelled wait gives
    everything back. A call larger than a whole minute's tokens is admitted once the minute
    before it is empty.
    """

    def __init__(self, limits: RateLimits, clock: Clock | None = None) -> None:
        self._limits = limits
        self._clock = clock or SystemClock()
        self._line = asyncio.Lock()
        self._places = asyncio.Semaphore(limits.concurrent) if limits.concurrent else None
        self._minute: deque[Ticket] = deque()
        self._tokens = 0
        self._corrected = asyncio.Event()
        self._closed_until = float("-inf")

    @asynccontextmanager
    async def admit(self, tokens: int) -> AsyncIterator[Ticket]:
        """Wait for admission; the call is under way until the block ends."""
        async with self._line:
            if self._places:
                await self._places.acquire()
            try:
                ticket = await self._enter(tokens)
            except BaseException:
                self._leave()
                raise
        try:
            yield ticket
        finally:
            self._leave()

    def correct(self, ticket: Ticket, tokens: int) -> None:
        """Count a call's real tokens, once they are known, in place of the most it could have."""
        if ticket.counted:
            self._tokens += tokens - ticket.tokens
            ticket.tokens = tokens
            self._corrected.set()

    def pause_for(self, seconds: float) -> None:
        """Admit nothing for a while: the endpoint asked for it."""
        self._closed_until = max(self._closed_until, self._clock.now() + seconds)

    @property
    def closed_s(self) -> float:
        """Seconds for which nothing is admitted, since the endpoint asked for that."""
        return max(0.0, self._closed_until - self._clock.now())

    def refuse_long_pause(self, name: str, most_s: float | None) -> None:
        """Refuse a call that would be held for longer than it is to wait."""
        closed_s = self.closed_s
        if most_s is not None and closed_s > most_s:
            raise RateLimitError(f"{name}: its provider asked for a pause", retry_after_s=closed_s)

    def _leave(self) -> None:
        if self._places:
            self._places.release()

    async def _enter(self, tokens: int) -> Ticket:
        while (wait_s := self._wait_s(tokens)) > 0:
            await self._sleep_or_correction(wait_s)
        ticket = Ticket(tokens, self._clock.now())
        self._minute.append(ticket)
        self._tokens += tokens
        return ticket

    async def _sleep_or_correction(self, seconds: float) -> None:
        self._corrected.clear()
        waits = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._corrected.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _wait_s(self, tokens: int) -> float:
        """Return the seconds until a call of so many tokens fits, 0 if it does now."""
        now = self._clock.now()
        self._forget_before(now - MINUTE_S)
        moments = [self._closed_until, self._requests_fit(), self._tokens_fit(tokens)]
        return max(moments) - now

    def _forget_before(self, moment: float) -> None:
        while self._minute and self._minute[0].admitted_s <= moment:
            old = self._minute.popleft()
            old.counted = False
            self._tokens -= old.tokens

    def _requests_fit(self) -> float:
        limit = self._limits.requests_per_minute
        if limit is None or len(self._minute) < limit:
            return float("-inf")
        return self._minute[0].admitted_s + MINUTE_S

    def _tokens_fit(self, tokens: int) -> float:
        limit = self._limits.tokens_per_minute
        if limit is None:
            return float("-inf")
        excess = self._tokens + min(tokens, limit) - limit
        fits = float("-inf")
        for ticket in self._minute:
            if excess <= 0:
                break
            excess -= ticket.tokens
            fits = ticket.admitted_s + MINUTE_S
        return fits


class Limited(WrappedModel):
    """A model behind an admission, which models at the same endpoint share."""

    def __init__(self, model: Model, admission: RateLimiter, asked_s: float | None = None) -> None:
        """Limit a model; a provider may ask to wait `asked_s` seconds at most, None: any."""
        super().__init__(model)
        self._admission = admission
        self._asked_s = asked_s

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt once it is admitted.

        An endpoint that says when to come back is left alone until then, by every call.
        """
        self._admission.refuse_long_pause(self.name, self._asked_s)
        usage = largest_usage(self.longest(prompt))
        async with self._admission.admit(usage.input_tokens + usage.output_tokens) as ticket:
            try:
                completion = await self._model.complete(prompt)
            except RateLimitError as error:
                self._admission.pause_for(error.retry_after_s or 0.0)
                raise
            used = completion.usage
            self._admission.correct(ticket, used.input_tokens + used.output_tokens)
            return completion
