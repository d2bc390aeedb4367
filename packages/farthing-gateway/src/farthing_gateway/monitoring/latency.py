"""Latency of all replies under a certificate, half hour by half hour, against the same time before.

Working days and weekends (of UTC) are times of their own.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from farthing.promises.statistics.rhythm import RhythmTest
from farthing_gateway.recording.audit_sampling import lot

LATENCY = "latency"
HALF_HOUR_US = 1_800_000_000
A_DAY = 48
"""Half hours."""
LATELY = 12
"""The last half hours with replies, which an alarm tells of."""
_LEAST_S = 1e-6
_THURSDAY = 3
"""The day of the week, from Monday, that 1970 began with."""
_SATURDAY = 5

Timed = tuple[str, int, float]
"""A reply: its request's id, the half hour since 1970 that it began in, and its seconds."""


class LatencyStats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of latency, and the half hour that has not ended."""

    test: RhythmTest
    """Of logarithms of seconds."""
    half_hour: int = 0
    """Since 1970."""
    replies: int = 0
    """In that half hour; of one that has ended, what is written late is left out."""
    logs: float = 0.0
    """Sum of the logarithms of their seconds."""
    lately: tuple[tuple[int, float], ...] = ()
    """The last half hours that were tested: the time of day, and the mean."""

    @classmethod
    def begin(cls) -> "LatencyStats":
        """Return what is known before any reply."""
        return cls(RhythmTest.begin())

    def after(self, replies: Sequence[Timed]) -> "LatencyStats":
        """Return what is known after replies, in their order."""
        found = self
        for name, half_hour, seconds in replies:
            if half_hour < found.half_hour:
                continue
            if half_hour > found.half_hour:
                found = found._ended(half_hour, name)
            found = msgspec.structs.replace(
                found,
                replies=found.replies + 1,
                logs=found.logs + math.log(max(seconds, _LEAST_S)),
            )
        return found

    def _ended(self, next_one: int, name: str) -> "LatencyStats":
        """Test a half hour that has ended; the reply that says so draws its uniform number."""
        begun = msgspec.structs.replace(self, half_hour=next_one, replies=0, logs=0.0)
        if not self.replies:
            return begun
        time, mean = time_of_day(self.half_hour), self.logs / self.replies
        uniform = np.array([lot(name, LATENCY)])
        test = self.test.observe(np.array([mean]), np.array([time]), uniform)
        return msgspec.structs.replace(
            begun, test=test, lately=(*self.lately, (time, mean))[-LATELY:]
        )

    def says(self) -> str:
        """Say what latency is, and what it was at the same times before."""
        number, total = len(self.lately), sum(mean for _, mean in self.lately)
        said = f"in the last {number} half hours with replies it is {_seconds(total / number)}"
        before, ended = 0.0, 0
        for time in {time for time, _ in self.lately}:
            own = [mean for at, mean in self.lately if at == time]
            of_all, so_many = self.test.sum_at(time)
            before, ended = before + of_all - sum(own), ended + so_many - len(own)
        if not ended:
            return said
        return f"{said}, at the same times of {ended} half hours before {_seconds(before / ended)}"


def time_of_day(half_hour: int) -> int:
    """Return the time of day of a half hour since 1970; those of weekends come after all others.

    >>> time_of_day(0), time_of_day(47), time_of_day(48 * 2), time_of_day(48 * 4 + 5)
    (0, 47, 48, 5)
    """
    day, time = divmod(half_hour, A_DAY)
    return time + A_DAY * ((day + _THURSDAY) % 7 >= _SATURDAY)


def _seconds(log: float) -> str:
    return f"{math.exp(log):.3g} s"
