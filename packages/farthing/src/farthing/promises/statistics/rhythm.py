"""A test that a signal with a daily rhythm did not change, on means of short stretches of time.

Neighbours among single values resemble one another, and night is not like noon, so the order of
values says much where nothing changed (`ExchangeabilityTest` would ring). Here a value is a mean
over a stretch, which a queue or one user's session hardly outlasts, and it is compared with those
alone that came at the same time of other days.

Source: the p-values are conformal within categories (Vovk, Gammerman and Shafer 2022, "Algorithmic
learning in a random world", section 4.6, Mondrian), the bets those of `drift`.
"""

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray, IntArray
from farthing.promises.statistics.drift import (
    Bets,
    Fortune,
    begin_bets,
    densities,
    p_values,
    rounded,
    unrounded,
)


class Ranks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The values that came at one time of day."""

    seen: tuple[int, ...] = ()
    """Rounded, as `rounded` numbers them, in ascending order."""
    counts: tuple[int, ...] = ()
    """How often each did."""

    def with_one(self, value: int) -> "Ranks":
        """Return them after one more."""
        at = int(np.searchsorted(self.seen, value))
        if self.seen[at : at + 1] == (value,):
            counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
            return Ranks(self.seen, counts)
        seen = (*self.seen[:at], value, *self.seen[at:])
        return Ranks(seen, (*self.counts[:at], 1, *self.counts[at:]))


class RhythmTest(Bets, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence that a signal's values shifted against those at the same time of other days.

    The p-value of a value is its rank among itself and all earlier ones of its time of day. Where
    days are alike, whatever the rhythm within each, and stretches independent, p-values are
    independent and uniform, and an alarm ever rings with probability at most delta. The first value
    of each time of day says nothing, so that no alarm rings on the first day.

    What is kept is how often each rounded value came: at each time of day so many numbers as its
    values differ by parts of 0.5 %.
    """

    times: dict[int, Ranks]
    """A time of day to the values that came at it."""
    fortune: Fortune

    @classmethod
    def begin(cls) -> "RhythmTest":
        """Return the test before any value; a tenth of the stake bets at once."""
        return cls({}, begin_bets())

    def observe(self, values: FloatArray, times: IntArray, uniforms: FloatArray) -> "RhythmTest":
        """Take in values, in the order in which they came.

        Args:
            values: [k] means of the signal over stretches; finite.
            times: [k] the time of day of each.
            uniforms: [k] drawn evenly from [0, 1], independent of all; a keyed hash will do.

        Raises:
            CalibrationError: not one time and one uniform number a value, or one that is out of
                range.

        >>> rng = np.random.default_rng(0)
        >>> hours = np.arange(24 * 20) % 24
        >>> days = np.sin(hours) + 0.1 * rng.normal(size=len(hours))
        >>> quiet = RhythmTest.begin().observe(days, hours, rng.random(len(hours)))
        >>> slow = quiet.observe(days[:24] + 0.5, hours[:24], rng.random(24))
        >>> quiet.alarms(0.05), slow.alarms(0.05)
        (False, True)
        """
        return self.followed(values, times, uniforms)[0]

    def followed(
        self, values: FloatArray, times: IntArray, uniforms: FloatArray
    ) -> tuple["RhythmTest", FloatArray]:
        """Return the test after `observe`, and the logarithm of its fortune after each, [k]."""
        if not len(values) == len(times) == len(uniforms):
            raise CalibrationError("values come with one time and one uniform number each")
        if not np.isfinite(values).all() or not ((uniforms >= 0) & (uniforms <= 1)).all():
            raise CalibrationError("a value must be finite, a uniform number between 0 and 1")
        known, found = dict(self.times), np.empty(len(values))
        for k, (value, time) in enumerate(zip(rounded(values), times.tolist(), strict=True)):
            ranks = known.get(time, Ranks())
            seen, counts = (np.array(one, dtype=np.int64) for one in (ranks.seen, ranks.counts))
            found[k] = p_values(seen, counts, np.array([value]), uniforms[k : k + 1])[0]
            known[time] = ranks.with_one(int(value))
        fortune, path = self.fortune.after(densities(found))
        return RhythmTest(known, fortune), path

    def sum_at(self, time: int) -> tuple[float, int]:
        """Return the sum of the values at a time of day, as they were rounded, and their number."""
        ranks = self.times.get(time, Ranks())
        counts = np.array(ranks.counts, dtype=np.int64)
        return float(unrounded(np.array(ranks.seen, dtype=np.int64)) @ counts), int(counts.sum())
