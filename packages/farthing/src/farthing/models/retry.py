"""Try again what may succeed later: full-jitter exponential back-off that honours Retry-After."""

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Generic, TypeVar

import msgspec

from farthing.errors import ModelError
from farthing.models.base import Completion, Model, Prompt, WrappedModel
from farthing.models.clock import Clock, SystemClock

Seconds = Annotated[float, msgspec.Meta(ge=0)]

T = TypeVar("T")
Try = Callable[[], Awaitable[Completion]]
Around = Callable[[Try], Awaitable[Completion]]
"""Makes one try: who pays for it reserves before and settles after."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how long to try.

    Before retry k = 0, 1, ... a call waits a uniform time in [0, min(longest_s, first_s 2^k)], so
    that calls that failed together do not come back together (full jitter; M. Brooker,
    "Exponential Backoff and Jitter", AWS 2015); after a Retry-After, so much more than that.
    """

    tries: Annotated[int, msgspec.Meta(ge=1)] = 6
    """Calls in all."""
    first_s: Seconds = 0.5
    longest_s: Seconds = 30.0
    total_s: Seconds = 180.0
    """Most seconds to spend on waiting; a longer Retry-After ends the call at once."""
    asked_s: Seconds | None = None
    """Most of these seconds that a provider may ask for (Retry-After); None: all of them."""
    paid: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Most tries again after one that may have to be paid: a reply that cannot be read, one that
    breaks off, or none in time. None: as many as `tries` allows, or one in a gateway."""

    @property
    def paid_tries(self) -> int:
        """Most tries of a call that may have to be paid.

        >>> RetryPolicy().paid_tries, RetryPolicy(paid=1).paid_tries
        (6, 2)
        """
        return self.tries if self.paid is None else min(self.tries, 1 + self.paid)

    def wait_s(self, retry: int, retry_after_s: float | None, uniform: float) -> float:
        """Return the seconds before a retry, counted from 0, given a uniform number in [0, 1).

        >>> RetryPolicy().wait_s(2, None, 0.5), RetryPolicy().wait_s(2, 10.0, 0.5)
        (1.0, 11.0)
        """
        backoff = min(self.longest_s, self.first_s * 2.0**retry)
        return (retry_after_s or 0.0) + uniform * backoff


async def alone(attempt: Try) -> Completion:
    """Make a try, with nothing around it."""
    return await attempt()


async def complete(model: Model, prompt: Prompt, around: Around) -> Completion:
    """Have a model answer, every single try of it made by `around`; raises like both."""
    if isinstance(model, Retrying):
        return await model.complete(prompt, around)
    return await around(partial(model.complete, prompt))


@dataclass(frozen=True)
class RetryResult(Generic[T]):
    """What came of trying again and again."""

    value: T
    """Of the try that succeeded."""
    failed_nano: int | None
    """What the tries before it cost, in nano-dollars; None where that is not known."""
    tries: int
    """All of them."""


async def retry(
    attempt: Callable[[], Awaitable[T]],
    patience: RetryPolicy,
    *,
    clock: Clock | None = None,
    uniform: Callable[[], float] = random.random,
    until: float = math.inf,
) -> RetryResult[T]:
    """Try until it succeeds or patience is at its end; `uniform` draws from [0, 1).

    No other try begins from the moment `until` of the clock on.
    """
    clock = clock or SystemClock()
    failed_nano: int | None = 0
    waited_s = asked_s = 0.0
    tries = paid = 0
    while True:
        tries += 1
        try:
            return RetryResult(await attempt(), failed_nano, tries)
        except ModelError as error:
            failed_nano = add_cost(failed_nano, error.cost_nano)
            paid += error.cost_nano != 0
            wait_s = patience.wait_s(tries - 1, error.retry_after_s, uniform())
            waited_s += wait_s
            asked_s += error.retry_after_s or 0.0
            over = (
                tries >= patience.tries
                or paid >= patience.paid_tries
                or waited_s > patience.total_s
                or asked_s > (patience.total_s if patience.asked_s is None else patience.asked_s)
                or clock.now() + wait_s >= until
            )
            if over or not error.retriable:
                error.cost_nano, error.tries = failed_nano, tries
                raise
        await clock.sleep(wait_s)


def add_cost(spent_nano: int | None, cost_nano: int | None) -> int | None:
    """Return the sum of two costs, None where one of them is not known."""
    return None if spent_nano is None or cost_nano is None else spent_nano + cost_nano


class Retrying(WrappedModel):
    """A model that is asked again after failures that may pass.

    What failed tries cost is part of the completion's cost, or of the last error's.
    """

    def __init__(
        self,
        model: Model,
        patience: RetryPolicy | None = None,
        *,
        clock: Clock | None = None,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._patience = patience or RetryPolicy()
        self._clock = clock or SystemClock()
        self._uniform = uniform

    async def complete(self, prompt: Prompt, around: Around = alone) -> Completion:
        """Answer one prompt, with as many tries as patience allows.

        `around` makes each try, limits and provider within it; what it raises beside a ModelError
        ends the call.
        """
        attempt = partial(around, partial(self._model.complete, prompt))
        done = await retry(attempt, self._patience, clock=self._clock, uniform=self._uniform)
        cost = add_cost(done.failed_nano, done.value.cost_nano)
        return replace(done.value, cost_nano=cost, tries=done.tries)
