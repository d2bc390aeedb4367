"""When a request came, and when it must have ended: one moment for all that is done for it."""

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Deadline:
    """Two moments of `time.monotonic`."""

    began: float
    until: float

    @classmethod
    def within(cls, seconds: float) -> Self:
        """Return the deadline of a request that comes now and may take so many seconds."""
        now = time.monotonic()
        return cls(now, now + seconds)

    @property
    def seconds(self) -> float:
        """What the request may take in all."""
        return self.until - self.began

    @property
    def took_s(self) -> float:
        """Seconds since it came."""
        return time.monotonic() - self.began

    @property
    def left_s(self) -> float:
        """Seconds until it must have ended; below 0 once that is past."""
        return self.until - time.monotonic()

    @property
    def passed(self) -> bool:
        """Whether it is too late to begin anything."""
        return self.left_s <= 0
