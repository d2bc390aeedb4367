"""Time as an argument: the system's clock, and one that tests move by hand."""

import asyncio
import heapq
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits; only differences between times mean anything."""

    def now(self) -> float:
        """Return seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once so many seconds have passed."""
        ...


class SystemClock:
    """The clock that runs by itself; setting the computer's date does not move it."""

    def now(self) -> float:
        """Return seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return once so many seconds have passed."""
        await asyncio.sleep(seconds)


@dataclass
class ManualClock:
    """A clock that stands still until it is moved, so that a test of a minute takes no time.

    >>> async def nap(clock: ManualClock) -> float:
    ...     sleeper = asyncio.create_task(clock.sleep(60))
    ...     await clock.advance(60)
    ...     await sleeper
    ...     return clock.now()
    >>> asyncio.run(nap(ManualClock()))
    60.0
    """

    time_s: float = 0.0
    _order: "count[int]" = field(default_factory=count)
    _sleepers: list[tuple[float, int, asyncio.Event]] = field(default_factory=list)

    def now(self) -> float:
        """Return seconds since some fixed moment."""
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        """Return once the clock has been moved so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self.time_s + seconds, next(self._order), woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Move on; those whose time has come wake in order, each at its own moment."""
        end = self.time_s + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self.time_s, _, woken = heapq.heappop(self._sleepers)
            woken.set()
            await _settle()
        self.time_s = end
        await _settle()


async def _settle() -> None:
    """Let every task that can run do so until it waits for the clock again."""
    for _ in range(50):
        await asyncio.sleep(0)
