"""How often do alarms ring when nothing changed, and how soon when something did?

    .venv/bin/python benchmarks/drift.py [--quiet 1000] [--drifting 200] [--beside 40]

*Quiet*: so many streams of 5,000 observations in which nothing changes. An alarm at any moment is
false. *Drifting*: so many streams for each size of change and each moment of it; counted is how
many observations after the change the alarm rings, among the 5,000 after it.

Beside them stands what is often done: a test at level delta that is repeated at every step. For
graded audits that is the exact binomial test of all so far; for a signal it compares the mean of
the last 200 values with that of all before them. *Simple Jumper* is that of the package crepes, on
p-values of its own, for the first of the streams (`--beside`).
"""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from crepes.martingales import SimpleJumper, semi_online_p_values
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.progress import Progress
from scipy import stats
from scipy.signal import lfilter

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.binomial import binomial_interval
from farthing.promises.statistics.confidence_sequence import MeanState, interval, observe
from farthing.promises.statistics.drift import ExchangeabilityTest, PromiseTest
from farthing.reports.style import FAINT, INK, MUTED, STYLE, TARGET

ALPHA, DELTA, LENGTH, WINDOW, FLOOR = 0.1, 0.05, 5_000, 200, 0.1
CHANGES = (500, 3_000)
LOOK_AT = (100, 300, 1_000, 5_000)
IMAGE = Path(__file__).parents[1] / "docs/images/drift.svg"
BLUE, GREEN, ORANGE = "#0072b2", "#009e73", "#d55e00"

Draw = Callable[[np.random.Generator, FloatArray], FloatArray]
"""[n] sizes of the drift at each observation -> [n] observations."""
Paths = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Stream:
    """Observations, at rest where the size of the drift is `rest`."""

    name: str
    draw: Draw
    rest: float = 0.0
    sizes: tuple[float, ...] = ()
    graded: bool = False
    weights: FloatArray | None = None


@dataclass
class Found:
    """When alarms rang, as observations since the change; inf where none did."""

    ours: list[float] = field(default_factory=list)
    repeated: list[float] = field(default_factory=list)
    jumper: list[float] = field(default_factory=list)


def failures(rng: np.random.Generator, chance: FloatArray) -> FloatArray:
    return (rng.random(len(chance)) < chance).astype(float)


def latency(rng: np.random.Generator, shift: FloatArray) -> FloatArray:
    """Return seconds: lognormal, the shift in standard deviations of the logarithm."""
    return np.exp(0.5 * (rng.normal(size=len(shift)) + shift))


def confidence(rng: np.random.Generator, shift: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-1.5 - rng.normal(size=len(shift)) + shift))


def cost(rng: np.random.Generator, more: FloatArray) -> FloatArray:
    """Return dollars: one call mostly, sometimes two or three."""
    luck = rng.random(len(more)) + more
    return np.select([luck < 0.7, luck < 0.9], [0.0002, 0.0012], 0.0062)


def queued(rng: np.random.Generator, shift: FloatArray, every: int = 1) -> FloatArray:
    """Return seconds, each half as its predecessor was; of one request in `every`, at random."""
    noise = rng.normal(size=2 * every * len(shift))
    found = lfilter([math.sqrt(0.75)], [1, -0.5], noise)
    drawn = np.flatnonzero(rng.random(len(noise)) * every < 1)[: len(shift)]
    return np.asarray(np.exp(0.5 * (found[drawn] + shift)))


def daily(rng: np.random.Generator, shift: FloatArray) -> FloatArray:
    """Return seconds; a tenth slower at noon than at midnight, ten days in all."""
    day = 0.1 * np.sin(20 * np.pi * np.arange(len(shift)) / len(shift))
    return latency(rng, shift + day)


PROMISE = Stream("graded audits", failures, 0.1, (0.12, 0.15, 0.25), graded=True)
AGREEMENT = Stream("agreement", failures, 0.8, (0.75, 0.7, 0.6))
LATENCY = Stream("latency", latency, 0.0, (0.25, 0.5, 1.0))
CONFIDENCE = Stream("confidence", confidence, 0.0, (0.25, 0.5, 1.0))
COST = Stream("cost", cost)
QUEUED = Stream("latency, each like the one before", queued)
THINNED = Stream("the same, one request in 20", partial(queued, every=20))
DAILY = Stream("latency, slower by day", daily)


def logs(stream: Stream, seen: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the logarithm of our fortune after each observation."""
    if stream.graded:
        return PromiseTest.begin(ALPHA).followed(seen)[1]
    return ExchangeabilityTest.begin().followed(seen, rng.random(len(seen)))[1]


def repeated(stream: Stream, seen: FloatArray) -> FloatArray:
    """Return the p-value at each step of a test that was made to be done once."""
    n = np.arange(1, len(seen) + 1)
    if stream.graded:
        return np.asarray(stats.binom.sf(seen.cumsum() - 1, n, ALPHA))
    total, squares = np.append(0, seen.cumsum()), np.append(0, (seen**2).cumsum())
    late, early = n[2 * WINDOW :], n[2 * WINDOW :] - WINDOW
    means = (total[late] - total[early]) / WINDOW - total[early] / early
    spread = squares[late] / late - (total[late] / late) ** 2
    z = np.abs(means) / np.sqrt(spread * (1 / WINDOW + 1 / early))
    return np.concatenate([np.ones(2 * WINDOW), 2 * stats.norm.sf(z)])


def first(rang: FloatArray, change: int = 0) -> float:
    """Return how many observations after the change it first rang; negative before it."""
    return int(np.argmax(rang)) + 1 - change if rang.any() else math.inf


def quiet(stream: Stream, streams: int, step: Callable[[], None]) -> Found:
    found = Found()
    for run in range(streams):
        rng = np.random.default_rng([run, 1])
        seen = stream.draw(rng, np.full(LENGTH, stream.rest))
        found.ours.append(first(logs(stream, seen, rng) >= -math.log(DELTA)))
        found.repeated.append(first(repeated(stream, seen) <= DELTA))
        step()
    return found


def drifting(
    stream: Stream, case: tuple[float, int], streams: int, beside: int, step: Callable[[], None]
) -> Found:
    found, (size, change) = Found(), case
    sizes = np.repeat([stream.rest, size], [change, LENGTH])
    for run in range(streams):
        rng = np.random.default_rng([run, 2, change])
        seen = stream.draw(rng, sizes)
        found.ours.append(first(logs(stream, seen, rng) >= -math.log(DELTA), change))
        if run < beside and not stream.graded:
            jumps = SimpleJumper().apply(semi_online_p_values(seen, seed=run))
            found.jumper.append(first(jumps >= 1 / DELTA, change))
        step()
    return found


@dataclass
class Intervals:
    """How wide intervals were at some moments (medians), and how many ever missed."""

    widths: list[list[float]] = field(default_factory=list)
    missed: int = 0


def intervals(streams: int, step: Callable[[], None], *, weighted: bool) -> Intervals:
    """Watch the share of kept promises; weighted: a hard quarter is drawn five times as often."""
    found = Intervals()
    for run in range(streams):
        rng, state, widths = np.random.default_rng([run, 3]), MeanState.begin(DELTA), []
        hard = rng.random(LENGTH) < (0.25 * 5 / (0.25 * 5 + 0.75) if weighted else 0)
        chance = np.where(hard, 0.7, 0.97) if weighted else np.full(LENGTH, 0.9)
        mean = 0.25 * 0.7 + 0.75 * 0.97 if weighted else 0.9
        kept, weights = failures(rng, chance), np.where(hard, 0.2, 1.0)
        for begin, end in zip((0, *LOOK_AT), LOOK_AT, strict=False):
            state = observe(state, kept[begin:end], weights[begin:end])
            low, high = interval(state)
            widths.append(high - low)
        found.widths.append(widths)
        found.missed += state.refuted or not low <= mean <= high
        step()
    return found


def share(rang: int, of: int) -> str:
    low, high = binomial_interval(rang, of, 0.05)
    return f"{rang} ({100 * low:.1f} to {100 * high:.1f} %)"


def before(times: list[float]) -> int:
    return sum(math.isfinite(time) for time in times)


def delays(times: list[float]) -> str:
    late = np.sort([time for time in times if time > 0])
    if not len(late):
        return ""
    at = [late[math.ceil(q * len(late)) - 1] for q in (0.5, 0.9)]
    return " / ".join(f"{time:,.0f}" if math.isfinite(time) else "-" for time in at)


def early(times: list[float]) -> int:
    return sum(time <= 0 for time in times)


Drifts = dict[tuple[str, float, int], Found]


def tables(calm: dict[str, Found], drifts: Drifts, watched: dict[str, Intervals]) -> None:
    print("\n| quiet streams | alarms | repeated at every step |\n| --- | ---: | ---: |")
    for name, found in calm.items():
        n = len(found.ours)
        print(f"| {name} | {share(before(found.ours), n)} | {share(before(found.repeated), n)} |")
    heads = [f"after {change:,}: median / 90 %" for change in CHANGES]
    print(f"\n| drift | {' | '.join(heads)} | false before | Simple Jumper, {' | '.join(heads)} |")
    print("| --- " + "| ---: " * (2 * len(CHANGES) + 1) + "|")
    for name, size in dict.fromkeys(key[:2] for key in drifts):
        cases = [drifts[name, size, change] for change in CHANGES]
        cells = [delays(case.ours) for case in cases]
        cells.append(str(sum(early(case.ours) for case in cases)))
        cells += [delays(case.jumper) for case in cases]
        print(f"| {name}, {size:g} | {' | '.join(cells)} |")
    print("\n| interval | " + " | ".join(f"width at {n:,}" for n in LOOK_AT) + " | ever missed |")
    print("| --- " + "| ---: " * (len(LOOK_AT) + 1) + "|")
    for name, one in watched.items():
        widths = [f"{width:.3f}" for width in np.median(one.widths, axis=0)]
        print(f"| {name} | {' | '.join(widths)} | {share(one.missed, len(one.widths))} |")


def paint(calm: dict[str, Found], drifts: Drifts, figure: Figure) -> None:
    left, middle, right = figure.subplots(1, 3)
    rng = np.random.default_rng(11)
    chance = np.repeat([PROMISE.rest, 0.15], [3_000, 1_500])
    left.plot(np.arange(1, 4_501), np.exp(logs(PROMISE, failures(rng, chance), rng)), color=BLUE)
    left.axhline(1 / DELTA, color=TARGET, linestyle="--")
    left.axvspan(3_000, 4_500, color=FAINT, linewidth=0)
    left.text(60, 1.25 / DELTA, "alarm", color=TARGET)
    left.text(3_060, 0.06, "0.15 fail", color=INK)
    left.text(60, 0.06, "0.10 fail, as promised", color=INK)
    left.set_yscale("log")
    left.set_ylim(0.05, 500)
    left.set_title("Evidence in one stream")
    left.set_xlabel("graded audits")
    n = np.arange(LENGTH + 1)
    lines = (("repeated test", "repeated", ORANGE, 1.0), ("alarms", "ours", BLUE, -2.7))
    for name, of, color, beside in lines:
        times = np.sort(getattr(calm[PROMISE.name], of))
        rang = np.searchsorted(times, n, "right") / len(times)
        middle.plot(n, 100 * rang, color=color)
        middle.text(LENGTH, 100 * rang[-1] + beside, name, color=color, ha="right")
    middle.axhline(100 * DELTA, color=TARGET, linestyle="--")
    middle.set_ylim(0, 45)
    middle.set_title("Quiet streams that rang so far, %")
    middle.set_xlabel("graded audits")
    for stream, color, what in (
        (PROMISE, BLUE, "audits"),
        (AGREEMENT, ORANGE, "agreement"),
        (LATENCY, GREEN, "latency"),
    ):
        for change, line in zip(CHANGES, ("--", "-"), strict=True):
            medians = [np.median(drifts[stream.name, size, change].ours) for size in stream.sizes]
            label = what if line == "-" else None
            right.plot((1, 2, 3), medians, color=color, linestyle=line, marker="o", label=label)
    right.set_yscale("log")
    right.set_xticks((1, 2, 3), ("small", "middle", "large"))
    right.set_xlim(0.8, 3.2)
    right.set_title("Median delay, observations")
    right.set_xlabel("change, after 3,000 (dashed: 500)")
    right.legend()
    for axes in (left, middle, right):
        axes.tick_params(colors=MUTED, which="both")


def cases(streams: tuple[Stream, ...]) -> Iterator[tuple[Stream, float, int]]:
    for stream in streams:
        for size in stream.sizes:
            for change in CHANGES:
                yield stream, size, change


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quiet", type=int, default=1_000)
    arguments.add_argument("--drifting", type=int, default=200)
    arguments.add_argument("--beside", type=int, default=30)
    given = arguments.parse_args()
    resting = (PROMISE, AGREEMENT, LATENCY, CONFIDENCE, COST, QUEUED, THINNED, DAILY)
    moving = tuple(cases((PROMISE, AGREEMENT, LATENCY, CONFIDENCE)))
    kinds = {"equal draws": False, "hard requests 5 times as often": True}
    with Progress() as progress:
        total = given.quiet * (len(resting) + len(kinds)) + given.drifting * len(moving)
        task = progress.add_task("streams", total=total)

        def step() -> None:
            progress.advance(task)

        calm = {stream.name: quiet(stream, given.quiet, step) for stream in resting}
        watched = {
            name: intervals(given.quiet, step, weighted=kind) for name, kind in kinds.items()
        }
        drifts = {
            (stream.name, size, change): drifting(
                stream, (size, change), given.drifting, given.beside, step
            )
            for stream, size, change in moving
        }
    tables(calm, drifts, watched)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.4), layout="constrained")
        paint(calm, drifts, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    main()
