"""Short streams, long streams, and days that are not like the day before: which pacer holds?

    .venv/bin/python benchmarks/bidding.py horizons [--traces FOLDER] [--streams 20000]
    .venv/bin/python benchmarks/bidding.py regret
    .venv/bin/python benchmarks/bidding.py bursts [--traces FOLDER] [--days 10]

`horizons`: streams with a known end, of 10 to 10,000 requests, settled at once. Questions are those
of benchmarks/pacing.py, at tightness 0.25. Yesterday is another draw from the same questions, of
which `bidding` learns the options and the dual pacers the price that they ended with. What is drawn
as a chart is the value short of hindsight. `--streams` requests are played at each length.

`regret`: values drawn evenly from 0 to 1 at unit cost, half of which can be bought; the regret
against hindsight over the root of the number of requests, with 95 % intervals over seeds.

`bursts`: recorded questions at tightness 0.25. Half of the requests come in five bursts of a
quarter of an hour, which yesterday did not have; from noon on, questions on which models differ are
asked five times as often. All have the same money. `fixed threshold` is the setting that would have
lasted yesterday.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pacing as days
from matplotlib import rc_context
from matplotlib.figure import Figure
from pacing import Questions
from recordings import FOLDER, needed

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, PacingState, begin, choose, settle
from farthing.reports.style import STYLE
from farthing.traces.arrays import IntArray
from farthing_gateway.pacers.bidding import BIDDING
from farthing_lab.methods.allocators.lagrangian import optimum

HORIZONS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
TIGHTNESS, YESTERDAY = 0.25, 2_000
DUAL = ("dual-descent", "dual-descent-entropy", "dual-descent-following")
LOOKS = {
    "no pacing": ("#7d8590", ":"),
    "proportional": ("#d55e00", "-"),
    "dual-descent-entropy": ("#56b4e9", "-"),
    "dual-descent-following": ("#009e73", "-"),
    "bidding, untaught": ("#cc79a7", ":"),
    "bidding": ("#cc79a7", "-"),
}
IMAGE = Path(__file__).parents[1] / "docs/images/bidding.svg"


def mean(values: list[float], *, scale: float = 100.0) -> str:
    every = scale * np.array(values)
    return f"{every.mean():.1f} ± {every.std(ddof=1) / np.sqrt(len(every)):.1f}"


def played(
    pacer: Pacer, questions: Questions, asked: IntArray, budget: int, before: PacingState | None
) -> tuple[IntArray, PacingState]:
    """Return which option each request got, -1 for none, and where the day ended."""
    n, got = len(asked), np.full(len(asked), -1)
    state = begin(pacer, budget, n, before)
    for at, question in enumerate(asked.tolist()):
        choice = choose(pacer, state, questions.options[question], at / n)
        if choice is not None:
            got[at] = choice.index
            cost = int(questions.cost[question, choice.index])
            state = settle(pacer, choice.state, choice.option, cost, at / n)
    assert state.spent_nano <= budget
    return got, state


def budget_of(questions: Questions, requests: int) -> int:
    best = int(questions.value.mean(axis=0).argmax())
    cheapest, dearest = questions.cost.mean(axis=0)[[0, best]] * requests
    return int(cheapest + TIGHTNESS * (dearest - cheapest))


def short_of(questions: Questions, asked: IntArray, got: IntArray, budget: int) -> float:
    best = optimum(questions.value[asked], questions.cost[asked].astype(float), budget)
    had = np.flatnonzero(got >= 0)
    return float(1.0 - questions.value[asked[had], got[had]].sum() / best)


Figures = dict[str, dict[tuple[str, int], list[float]]]
"""Pacer, then (source, requests), to the value short of hindsight, one a stream."""


def taught_ones(questions: Questions) -> dict[str, tuple[Pacer, PacingState | None]]:
    """Return pacers, and where yesterday ended for those that begin at its price."""
    some = np.random.default_rng([0, 11]).integers(len(questions.options), size=YESTERDAY)
    money = budget_of(questions, YESTERDAY)
    began = time.perf_counter()
    taught = BIDDING.taught(
        [questions.options[at] for at in some.tolist()], questions.cost[some].tolist()
    )
    print(f"{questions.name}: taught in {time.perf_counter() - began:.2f} s")
    pacers: dict[str, tuple[Pacer, PacingState | None]] = {
        "no pacing": (days.NoPacing(), None),
        "proportional": (plugins.load("pacers", "proportional"), None),
        "bidding, untaught": (BIDDING, None),
        "bidding": (taught, None),
    }
    for name in DUAL:
        pacer: Pacer = plugins.load("pacers", name)
        pacers[name] = pacer, played(pacer, questions, some, money, None)[1]
    return pacers


def horizons(folder: Path | None, requests: int) -> None:
    sources = [days.generated(0)]
    if folder:
        sources.insert(0, days.recorded(folder, 0))
    figures: Figures = {}
    for questions in sources:
        pacers = taught_ones(questions)
        for n in HORIZONS:
            budget = budget_of(questions, n)
            for stream in range(max(5, min(500, requests // n))):
                rng = np.random.default_rng([stream, n, 12])
                asked = rng.integers(len(questions.options), size=n)
                for name, (pacer, before) in pacers.items():
                    got, _ = played(pacer, questions, asked, budget, before)
                    kept = figures.setdefault(name, {}).setdefault((questions.name, n), [])
                    kept.append(short_of(questions, asked, got, budget))
        table(figures, questions.name)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        paint(figures, [source.name for source in sources], figure)
        figure.savefig(IMAGE, metadata={"Date": None})
    pace(pacers["bidding"][0], sources[-1])


def table(figures: Figures, source: str) -> None:
    print(f"\n| {source} | " + " | ".join(f"{n:,}" for n in HORIZONS) + " |")
    print("| --- " + "| ---: " * len(HORIZONS) + "|")
    for name, found in figures.items():
        print(f"| {name} | " + " | ".join(mean(found[source, n]) for n in HORIZONS) + " |")
    lead = [
        mean((np.array(figures[DUAL[2]][source, n]) - figures["bidding"][source, n]).tolist())
        for n in HORIZONS
    ]
    print(f"| bidding ahead of {DUAL[2]} | " + " | ".join(lead) + " |\n")


def paint(figures: Figures, sources: list[str], figure: Figure) -> None:
    every = figure.subplots(1, len(sources), squeeze=False)[0]
    for axes, source in zip(every, sources, strict=True):
        for name, (color, line) in LOOKS.items():
            shares = [100 * np.mean(figures[name][source, n]) for n in HORIZONS]
            axes.plot(HORIZONS, shares, color=color, linestyle=line, marker="o", label=name)
        axes.set_title(f"Value short of hindsight, %: {source}")
        axes.set_xlabel("requests")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.6, 80)
        axes.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        axes.minorticks_off()
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def pace(pacer: Pacer, questions: Questions) -> None:
    state, taken = begin(pacer, budget_of(questions, 10_000), 10_000), []
    for at in range(2_000):
        began = time.perf_counter_ns()
        choice = choose(pacer, state, questions.options[at % 500], at / 10_000)
        taken.append(time.perf_counter_ns() - began)
        assert choice is not None
        cost = choice.option.expected_nano
        state = settle(pacer, choice.state, choice.option, cost, at / 10_000)
    print(f"\na decision of bidding: median {np.median(taken) / 1e3:.0f} microseconds")


def regret() -> None:
    print("| requests | " + " | ".join([*DUAL, "bidding"]) + " |")
    print("| ---: " * (len(DUAL) + 2) + "|")
    pacers = {name: plugins.load("pacers", name) for name in DUAL}
    values = [(at + 0.5) / 64 for at in range(64)]
    free = Option(0.0, 0, 0)
    pacers["bidding"] = BIDDING.taught([[free, Option(v, 1_000, 1_000)] for v in values])
    for n in (100, 1_000, 10_000, 100_000):
        seeds, found = int(np.clip(200_000 // n, 8, 200)), {name: [] for name in pacers}
        for seed in range(seeds):
            drawn = np.random.default_rng([seed, n, 9]).random(n)
            best = optimum(drawn[:, None], np.ones((n, 1)), n / 2)
            for name, pacer in pacers.items():
                state, total = begin(pacer, 500 * n, n), 0.0
                for at, value in enumerate(drawn.tolist()):
                    choice = choose(pacer, state, [free, Option(value, 1_000, 1_000)], at / n)
                    assert choice is not None
                    total += choice.option.value
                    cost = choice.option.expected_nano
                    state = settle(pacer, choice.state, choice.option, cost, at / n)
                found[name].append((best - total) / np.sqrt(n))
        cells = []
        for name in pacers:
            half = 1.96 * np.std(found[name], ddof=1) / np.sqrt(seeds)
            cells.append(f"{np.mean(found[name]):.3f} ± {half:.3f}")
        print(f"| {n:,} | " + " | ".join(cells) + " |", flush=True)


def bursty(questions: Questions, rng: np.random.Generator) -> days.Day:
    """Half of the requests in five bursts; from noon on, what models differ on comes more often."""
    n = days.PER_DAY
    share = np.concatenate([[0.0], np.cumsum(days.HOURS / days.HOURS.sum())])
    usual = np.interp(rng.random(n // 2), share, np.arange(25))
    bursts = rng.choice(rng.uniform(8.0, 20.0, 5), n - n // 2) + rng.uniform(0, 0.25, n - n // 2)
    hour = np.sort(np.concatenate([usual, bursts]))
    differ = questions.right.max(axis=1) - questions.right.min(axis=1) > 0.5
    weight = np.where(differ, 5.0, 1.0)
    late = rng.choice(len(weight), size=n, p=weight / weight.sum())
    asked = np.where(hour < 12.0, rng.integers(len(weight), size=n), late)
    return days.Day(asked, hour, np.interp(hour, np.arange(25), share))


def bursts(folder: Path, number: int) -> None:
    rows: dict[str, list[days.Result]] = {}
    for seed in range(number):
        questions = days.recorded(folder, seed)
        budget = budget_of(questions, days.PER_DAY)
        before = days.day(questions, days.PER_DAY, np.random.default_rng([seed, 5]))
        today = bursty(questions, np.random.default_rng([seed, 6]))
        lasted = questions.cost[before.asked].sum(axis=0) <= budget
        value = np.where(lasted, questions.value[before.asked].mean(axis=0), -1.0)
        setting = int(value.argmax())
        cost = questions.cost[today.asked, setting].cumsum()
        fixed = np.where(cost <= budget, setting, -1)
        rows.setdefault("fixed threshold, of yesterday", []).append(
            days.judged(questions, today, fixed, budget, 0)
        )
        best = days.best_fixed(questions, today, budget)
        rows.setdefault("fixed threshold, best in hindsight", []).append(
            days.judged(questions, today, best, budget, 0)
        )
        taught = BIDDING.taught(questions.options, questions.cost.tolist())
        named = {name: plugins.load("pacers", name) for name in plugins.names("pacers")}
        for name, pacer in {"no pacing": days.NoPacing(), **named, "bidding": taught}.items():
            got, most = days.live(pacer, questions, today, budget)
            rows.setdefault(name, []).append(days.judged(questions, today, got, budget, most))
    heads = ("right, %", "ahead of yesterday's", "short of hindsight, %", "refused, %", "spent, %")
    print("| bursts and drift | " + " | ".join(heads) + " |")
    print("| --- " + "| ---: " * len(heads) + "|")
    usual = [one.right for one in next(iter(rows.values()))]
    for name, every in rows.items():
        cells = [
            mean([getattr(one, what) for one in every])
            for what in ("right", "regret", "refused", "spent")
        ]
        assert max(one.over for one in every) == 0
        lead = [one.right - other for one, other in zip(every, usual, strict=True)]
        cells.insert(1, mean(lead))
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["horizons", "regret", "bursts"])
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--streams", type=int, default=20_000)
    arguments.add_argument("--days", type=int, default=10)
    arguments.add_argument("--generated", action="store_true", help="made-up questions alone")
    given = arguments.parse_args()
    reads = given.what == "bursts" or (given.what == "horizons" and not given.generated)
    if reads:
        needed(given.traces / days.FILE)
    if given.what == "horizons":
        horizons(given.traces if reads else None, given.streams)
    elif given.what == "regret":
        regret()
    else:
        bursts(given.traces, given.days)


if __name__ == "__main__":
    main()
