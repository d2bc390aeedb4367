"""How often does the watch on latency ring when nothing changed, and how soon when something did?

    .venv/bin/python benchmarks/latency_watch.py [--quiet 1000] [--drifting 40] [--long 20]

*Quiet*: so many gateways of ten days with 500 replies a day each, and some (`--long`) of 1,000 days
with 100 replies each. *Drifting*: so many for each change, which comes after ten days. Seconds of a
reply are lognormal, the logarithm's standard deviation being 0.5. Watched is as the gateway does:
all replies, half hour by half hour (`LatencyStats`). Beside it stands a watch on audited replies
alone, one by one, whatever the time (`ExchangeabilityTest`, as the gateway had before). Each test
has the whole of delta; in the gateway five share it.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.progress import Progress

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.binomial import binomial_interval
from farthing.promises.statistics.drift import ExchangeabilityTest
from farthing_gateway.monitoring.latency import A_DAY, LatencyStats

DELTA, SPREAD, DAYS, A_DAY_REPLIES = 0.05, 0.5, 10, 500
MONDAY = 4 * A_DAY
"""The first half hour of a week, since 1970."""
NOON_TWICE = math.log(2) / 2
AUDITS = 20
"""One reply in so many is audited."""
CHANGES = (1.1, 1.25, 2.0)
TRAFFIC = (50, 500, 5_000)


@dataclass(frozen=True)
class Stream:
    """Replies of a gateway; logarithms are natural."""

    name: str
    noon: float = 0.0
    """Half of what noon's logarithm is above midnight's."""
    spells: float = 0.0
    """Minutes that slow and fast spells last: replies so far apart correlate by 1 / e."""
    weekend: float = 0.0
    """What is added on Saturdays and Sundays."""
    days_apart: float = 0.0
    """Standard deviation of what is added to a whole day."""

    def draw(
        self, rng: np.random.Generator, days: int, a_day: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return when replies came, in days, and the logarithms of their seconds."""
        at = np.sort(rng.random(days * a_day)) * days
        noise = rng.normal(size=len(at))
        if self.spells:
            noise = in_spells(noise, np.diff(at, prepend=-1.0) * 1_440 / self.spells)
        logs = SPREAD * noise - self.noon * np.cos(2 * np.pi * at)
        logs += np.where(at % 7 >= 5, self.weekend, 0.0)
        return at, logs + self.days_apart * rng.normal(size=days)[at.astype(int)]


def in_spells(noise: FloatArray, gaps: FloatArray) -> FloatArray:
    """Let each be like the one before: correlated by e to the power of minus the gap."""
    last, found = 0.0, []
    for new, alike in zip(noise.tolist(), np.exp(-gaps).tolist(), strict=True):
        last = alike * last + math.sqrt(1 - alike**2) * new
        found.append(last)
    return np.array(found)


RHYTHM = Stream("the same, and a quarter faster at weekends", NOON_TWICE, weekend=math.log(0.75))
SPELLS = Stream("all three", NOON_TWICE, 5.0, math.log(0.75))
QUIET = (
    Stream("steady"),
    Stream("a tenth slower at noon than at midnight", noon=math.log(1.1) / 2),
    Stream("twice as slow at noon", noon=NOON_TWICE),
    RHYTHM,
    Stream("spells of some five minutes", spells=5.0),
    SPELLS,
    Stream("days that differ by 2.5 %", days_apart=0.025),
    Stream("days that differ by 10 %", days_apart=0.1),
)
LONG = (RHYTHM, SPELLS)


def watched(at: FloatArray, logs: FloatArray, run: int) -> float:
    """Return when the gateway's watch rings, in days; inf: never."""
    stats, half_hours = LatencyStats.begin(), MONDAY + (at * A_DAY).astype(int)
    begins = np.flatnonzero(np.diff(half_hours, prepend=-1))
    seconds = np.exp(logs)
    for begin, end in zip(begins, [*begins[1:], len(at)], strict=True):
        half_hour = int(half_hours[begin])
        stats = stats.after(
            [(f"{run} {k}", half_hour, float(seconds[k])) for k in range(begin, end)]
        )
        if stats.test.alarms(DELTA):
            return float(at[begin])
    return math.inf


def of_audits(
    at: FloatArray, logs: FloatArray, rng: np.random.Generator, every: int = AUDITS
) -> float:
    """Return when a watch on audited replies alone rings, in days."""
    drawn = np.flatnonzero(rng.random(len(at)) * every < 1)
    path = ExchangeabilityTest.begin().followed(np.exp(logs[drawn]), rng.random(len(drawn)))[1]
    rang = np.flatnonzero(path >= -math.log(DELTA))
    return float(at[drawn[rang[0]]]) if len(rang) else math.inf


def quiet(stream: Stream, runs: int, size: tuple[int, int], step: Callable[[], None]) -> str:
    rang = np.zeros(2, dtype=int)
    for run in range(runs):
        rng = np.random.default_rng([run, 4])
        at, logs = stream.draw(rng, *size)
        rang += [math.isfinite(watched(at, logs, run)), math.isfinite(of_audits(at, logs, rng))]
        step()
    return " | ".join(share(int(number), runs) for number in rang)


def share(rang: int, of: int) -> str:
    low, high = binomial_interval(rang, of, 0.05)
    return f"{rang} ({100 * low:.1f} to {100 * high:.1f} %)"


def drifting(factor: float, a_day: int, runs: int, step: Callable[[], None]) -> str:
    """Return hours until the alarm, median / 90 %, of both watches."""
    after: list[tuple[float, float]] = []
    for run in range(runs):
        rng = np.random.default_rng([run, 5])
        at, logs = QUIET[2].draw(rng, 2 * DAYS, a_day)
        logs += np.where(at >= DAYS, math.log(factor), 0.0)
        rang = (watched(at, logs, run), of_audits(at, logs, rng, every=50))
        after.append((rang[0] - DAYS, rang[1] - DAYS))
        step()
    return " | ".join(
        delays([one for one in times if one > 0]) for times in zip(*after, strict=True)
    )


def delays(days: list[float]) -> str:
    late = 24 * np.sort(days)
    at = [late[math.ceil(q * len(late)) - 1] for q in (0.5, 0.9)] if len(late) else []
    return " / ".join(f"{time:,.0f}" if math.isfinite(time) else "-" for time in at)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quiet", type=int, default=1_000)
    arguments.add_argument("--drifting", type=int, default=40)
    arguments.add_argument("--long", type=int, default=20)
    given = arguments.parse_args()
    with Progress() as progress:
        cases = [(factor, a_day) for factor in CHANGES for a_day in TRAFFIC]
        total = given.quiet * len(QUIET) + given.long * len(LONG) + given.drifting * len(cases)
        task = progress.add_task("gateways", total=total)

        def step() -> None:
            progress.advance(task)

        calm = [quiet(one, given.quiet, (DAYS, A_DAY_REPLIES), step) for one in QUIET]
        long = [quiet(one, given.long, (1_000, 100), step) for one in LONG]
        drifts = [drifting(*case, given.drifting, step) for case in cases]
    print("\n| quiet gateways | alarms | of audits alone |\n| --- | ---: | ---: |")
    for stream, found in zip(QUIET, calm, strict=True):
        print(f"| {stream.name} | {found} |")
    for stream, found in zip(LONG, long, strict=True):
        print(f"| {stream.name}: {given.long} for 1,000 days | {found} |")
    print("\n| slower by | replies a day | hours until the alarm | of audits alone |")
    print("| ---: | ---: | ---: | ---: |")
    for (factor, a_day), found in zip(cases, drifts, strict=True):
        print(f"| {factor - 1:.0%} | {a_day:,} | {found} |".replace("%", " %"))


if __name__ == "__main__":
    main()
