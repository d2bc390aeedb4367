"""Cold start: how fast does a bandit learn whom to ask, and what does that cost?

    .venv/bin/python benchmarks/bandits.py pools [--traces FOLDER] [--seeds 10]
    .venv/bin/python benchmarks/bandits.py until [--traces FOLDER] [--seeds 3]
    .venv/bin/python benchmarks/bandits.py regret

`pools`: recorded questions once, in random orders. Budgets lie between the cheapest and the
strongest model's bill (0 and 1). In each cell: right answers in % of all questions, what is not
answered counting as not right, +- standard error over orders. "In hindsight" know all grades: the
best mixture of models, and FrugalGPT trained on these very questions.

`until`: 60 % of the questions drawn again and again, 20,000 times, at tightness 0.25. Now and then
the bandit is held still and judged on the other 40 %: what it costs on average, over what others
cost there at equal accuracy: the best mixture in hindsight, and FrugalGPT, trained on the 60 % with
every grade. The first moment at which that is at most 1.2 in the mean over seeds is printed.

`regret`: three arms of known chances and costs; (LP - right answers) / sqrt(T), 95 % intervals.
"""

import argparse
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing import plugins
from farthing.methods.base import Silent, load
from farthing.methods.cards import card, system
from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import load as read
from farthing_lab.methods.allocators.lagrangian import optimum
from farthing_lab.methods.bandits.base import (
    DIMENSIONS,
    Arm,
    BanditContext,
    BanditSession,
    begin,
    choose,
    settle,
)
from farthing_lab.studies.online_learning import Stream, stream_of

POOLS = {
    "MMLU": "mmlu-nine-models.jsonl.gz",
    "MedMCQA": "medmcqa-nine-models.jsonl.gz",
    "ZeroEval": "zeroeval-ten-models.jsonl.gz",
}
BANDITS = plugins.names("bandits")
TIGHTNESS, TIGHT = (0.1, 0.25, 0.5), 0.25
MOMENTS = (100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
BEST, FRUGAL = "best mixture", "FrugalGPT"
LOOKS = {"knapsack": "#0072b2", "squarecb": "#009e73"}
SPARE = 1.1
IMAGE = Path(__file__).parents[1] / "docs/images/bandits.svg"


def frontiers(train: TraceArrays, stream: Stream) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return mean cost and accuracy on a stream, cheapest first, of what knows all grades."""
    found = {BEST: (stream.cost_nano.mean(axis=0), stream.right.mean(axis=0))}
    fitted = load(card("frugal-gpt").learner).fit(train, Fraction(1, 10), 0, Silent())
    points = fitted.policy.points(stream.traces)
    found[FRUGAL] = points.cost_nano.mean(axis=0), points.correct.mean(axis=0)
    return {name: hull(*pair) for name, pair in found.items()}


def hull(cost: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the concave hull: mixing two settings is possible."""
    kept: list[tuple[float, float]] = [(0.0, 0.0)]
    for at in np.lexsort((-right, cost)).tolist():
        x, y = float(cost[at]), float(right[at])
        if y <= kept[-1][1]:
            continue
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (x - kept[-1][0]) <= (
            y - kept[-1][1]
        ) * (kept[-1][0] - kept[-2][0]):
            kept.pop()
        kept.append((x, y))
    corners = np.array(kept).T
    return corners[0], corners[1]


def budget_of(stream: Stream, tightness: float, questions: int) -> int:
    mean = stream.cost_nano.mean(axis=0)
    strong = mean[stream.right.mean(axis=0).argmax()]
    return int((mean.min() + tightness * (strong - mean.min())) * questions)


def run(stream: Stream, name: str, order: Any, budget: int, at: Any = ()) -> tuple[Any, ...]:
    """Return right answers, answered questions, the session, and the session at some moments."""
    bandit, rng = system("bandit", name), np.random.default_rng([stream.seed, 2])
    spare = SPARE if len(at) else 1.0  # so that it is held still before its money is gone
    session = begin(bandit, stream.arms, int(spare * budget), int(spare * len(order)), DIMENSIONS)
    right, asked, kept = 0.0, 0, {}
    for t, q in enumerate(order.tolist()):
        choice = choose(bandit, session, stream.features[q], rng)
        if choice is None:
            break
        grade = float(stream.right[q, choice.arm])
        cost = int(stream.cost_nano[q, choice.arm])
        session = settle(bandit, choice.session, choice, grade, cost)
        right, asked = right + grade, asked + 1
        if t + 1 in at:
            kept[t + 1] = session
    assert session.day.spent_nano <= spare * budget
    return right, asked, session, kept


def mean(values: Any) -> str:
    every = np.array(values)
    return f"{every.mean():.1f} ± {every.std(ddof=1) / np.sqrt(len(every)):.1f}"


def pools(folder: Path, seeds: int) -> None:
    for pool, file in POOLS.items():
        traces = read(folder / file)
        rows: dict[str, dict[float, list[float]]] = {}
        answered: dict[str, dict[float, list[float]]] = {}
        best = frontiers(traces, stream_of(traces, 0))
        for seed in range(seeds):
            stream = stream_of(traces, seed)
            n = len(stream)
            for tightness in TIGHTNESS:
                budget = budget_of(stream, tightness, n)
                for name in BANDITS:
                    right, asked, _, _ = run(stream, name, np.arange(n), budget)
                    rows.setdefault(name, {}).setdefault(tightness, []).append(100 * right / n)
                    answered.setdefault(name, {}).setdefault(tightness, []).append(asked / n)
                rng = np.random.default_rng([seed, 3])
                drawn = rng.integers(len(stream.arms), size=n)
                spent = stream.cost_nano[np.arange(n), drawn].cumsum()
                had = stream.right[np.arange(n), drawn][spent <= budget].sum()
                rows.setdefault("drawn", {}).setdefault(tightness, []).append(100 * had / n)
        print(f"\n| {pool} | " + " | ".join(f"{one:g}" for one in TIGHTNESS) + " |")
        print("| --- " + "| ---: " * len(TIGHTNESS) + "|")
        for name, cells in rows.items():
            many = answered.get(name)
            print(
                f"| {name} | "
                + " | ".join(
                    mean(cells[one]) + (f" / {100 * np.mean(many[one]):.1f}" if many else "")
                    for one in TIGHTNESS
                )
                + " |"
            )
        for name, (cost, right) in best.items():
            each = [
                100 * float(np.interp(budget_of(stream, one, 1), cost, right)) for one in TIGHTNESS
            ]
            print(f"| {name}, in hindsight | " + " | ".join(f"{one:.1f}" for one in each) + " |")


def judged(stream: Stream, name: str, session: BanditSession) -> tuple[float, float]:
    """Return what a question costs and how often it is right, the bandit held still."""
    bandit, day = system("bandit", name), session.day
    toll = day.price / day.share_nano * session.cost_nano
    every, k = np.ones(len(session.arms), dtype=bool), len(session.arms)
    chances = np.array(
        [
            bandit.propensities(session.learned, BanditContext(x, every, toll))
            for x in stream.features
        ]
    )
    chances = session.floor + (1 - session.floor * k) * chances
    cost = float((chances * stream.cost_nano).sum(axis=1).mean())
    return cost, float((chances * stream.right).sum(axis=1).mean())


Ratios = dict[tuple[str, str, str], FloatArray]
"""(pool, bandit, beside whom) to cost at equal accuracy, [seeds, moments]."""


def until(folder: Path, seeds: int) -> None:
    ratios: Ratios = {}
    for pool, file in POOLS.items():
        traces = read(folder / file)
        for seed in range(seeds):
            rows = np.random.default_rng([seed, 6]).permutation(len(traces))
            learn, judge = np.split(rows, [int(0.6 * len(rows))])
            stream, held = stream_of(traces.take(learn), seed), stream_of(traces.take(judge), seed)
            best = frontiers(traces.take(learn), held)
            for name in BANDITS:
                watched = watch(stream, held, name, best)
                for b, other in enumerate(best):
                    kept = ratios.setdefault((pool, name, other), np.zeros((seeds, len(MOMENTS))))
                    kept[seed] = watched[:, b]
    table(ratios, seeds)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.4), layout="constrained")
        paint(ratios, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


def watch(stream: Stream, held: Stream, name: str, best: Any) -> FloatArray:
    """Return one run's costs at equal accuracy, [moments, beside whom]."""
    order = np.random.default_rng([stream.seed, 4]).integers(len(stream), size=MOMENTS[-1])
    kept = run(stream, name, order, budget_of(stream, TIGHT, len(order)), MOMENTS)[3]
    found = np.full((len(MOMENTS), len(best)), np.nan)
    for moment, session in kept.items():
        cost, right = judged(held, name, session)
        for b, (x, y) in enumerate(best.values()):
            found[MOMENTS.index(moment), b] = cost / np.interp(right, y, x)
    said = getattr(session.learned, "promoted", 0), getattr(session.learned, "refused", 0)
    print(f"{name}: right {right:.3f}, promoted and refused {said}", flush=True)
    return found


def table(ratios: Ratios, seeds: int) -> None:
    print("| cost at equal accuracy | " + " | ".join(f"{m:,}" for m in MOMENTS) + " | <= 1.2 |")
    print("| --- " + "| ---: " * (len(MOMENTS) + 1) + "|")
    for key, found in ratios.items():
        middle = found.mean(axis=0)
        good = [m for m, value in zip(MOMENTS, middle, strict=True) if value <= 1.2]
        first = f"{good[0]:,}" if good else "never"
        error = found.std(axis=0, ddof=1) / np.sqrt(seeds)
        cells = [f"{a:.2f} ± {e:.2f}" for a, e in zip(middle, error, strict=True)]
        print(f"| {', '.join(key)} | " + " | ".join(cells) + f" | {first} |")


def paint(ratios: Ratios, figure: Figure) -> None:
    every = figure.subplots(1, len(POOLS), sharey=True)
    for axes, pool in zip(every, POOLS, strict=True):
        axes.axhline(1.2, color="#7d8590", linewidth=0.8)
        for name, color in LOOKS.items():
            for other, line in ((BEST, "-"), (FRUGAL, ":")):
                axes.plot(
                    MOMENTS,
                    ratios[pool, name, other].mean(axis=0),
                    color=color,
                    linestyle=line,
                    marker="o",
                    markersize=3,
                    label=f"{name}, over {other}",
                )
        axes.set_title(pool)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks([1, 1.2, 1.5, 2, 3, 5], ["1", "1.2", "1.5", "2", "3", "5"])
        axes.minorticks_off()
        axes.set_xlabel("questions so far")
    every[0].set_ylabel("cost at equal accuracy")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def regret() -> None:
    arms = [Arm("small", 100, 200), Arm("medium", 300, 600), Arm("large", 2_000, 4_000)]
    chance = np.array([0.5, 0.7, 0.9])
    cost = np.array([[arm.expected_nano for arm in arms]], dtype=float)
    horizons = (250, 1_000, 4_000)
    print("| bandit, budget a question | " + " | ".join(f"{n:,}" for n in horizons) + " |")
    print("| --- " + "| ---: " * len(horizons) + "|")
    taken = []
    for name in BANDITS:
        bandit = system("bandit", name)
        for share in (250, 900, 3_000):
            cells = []
            for n in horizons:
                found = []
                for seed in range(8):
                    rng = np.random.default_rng([seed, 5])
                    session = begin(bandit, arms, share * n, n, 1, 0.2 / n**0.5)
                    right = 0.0
                    for _ in range(n):
                        began = time.perf_counter_ns()
                        choice = choose(bandit, session, np.ones(1), rng)
                        taken.append(time.perf_counter_ns() - began)
                        if choice is None:
                            break
                        grade = float(rng.random() < chance[choice.arm])
                        paid = int(rng.integers(0, arms[choice.arm].largest_nano + 1))
                        session = settle(bandit, choice.session, choice, grade, paid)
                        right += grade
                    best = n * optimum(chance[None], cost, share)
                    found.append((best - right) / n**0.5)
                half = 1.96 * np.std(found, ddof=1) / len(found) ** 0.5
                cells.append(f"{np.mean(found):.2f} ± {half:.2f}")
            print(f"| {name}, {share:,} | " + " | ".join(cells) + " |", flush=True)
    print(f"a decision: median {np.median(taken) / 1e3:.0f} microseconds")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["pools", "until", "regret"])
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--seeds", type=int)
    given = arguments.parse_args()
    if given.what != "regret":
        needed(*(given.traces / file for file in POOLS.values()))
    if given.what == "pools":
        pools(given.traces, given.seeds or 10)
    elif given.what == "until":
        until(given.traces, given.seeds or 3)
    else:
        regret()


if __name__ == "__main__":
    main()
