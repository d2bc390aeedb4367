"""A day's budget over a day's traffic: how much of what hindsight could do does a pacer reach?

    .venv/bin/python benchmarks/pacing.py [--traces FOLDER] [--days 10]

*recorded*: nine models on MMLU. The settings are operating points of UCCI that were bounded
together on calibration questions; every request is offered the same ones, at the same values.
*generated*: six models whose chance of being right is known question by question, so that values
differ from request to request. Nothing is promised there.

Requests come at the hours that people are awake, 10,000 a day, and are settled 20 requests later.
A budget of `tightness` 0 pays for the cheapest setting all day, of 1 for the best. Without the
recordings only generated questions are asked.
"""

import argparse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, PacingState, begin, choose, settle
from farthing.methods.base import Silent
from farthing.promises.statistics.binomial import binomial_upper
from farthing.reports.style import FAINT, INK, STYLE
from farthing.traces.arrays import FloatArray, IntArray
from farthing.traces.assemble import load
from farthing_lab.methods.allocators.lagrangian import optimum
from farthing_lab.methods.cascades.ucci import UcciLearner

PER_DAY, LATE, SETTINGS = 10_000, 20, 8
TIGHTNESS = (0.1, 0.25, 0.5, 0.75)
HOURS = np.array(
    [2, 1, 1, 1, 1, 2, 3, 5, 8, 11, 12, 13, 13, 12, 11, 10, 9, 8, 7, 6, 6, 5, 4, 3], dtype=float
)
"""Requests an hour, as shares of the day's."""
FILE = "mmlu-nine-models.jsonl.gz"
IMAGE = Path(__file__).parents[1] / "docs/images/pacing.svg"
LOOKS = {
    "no pacing": ("#7d8590", ":"),
    "best fixed setting": ("#8c6d46", "--"),
    "proportional": ("#d55e00", "-"),
    "dual-descent": ("#0072b2", "-"),
    "dual-descent-entropy": ("#56b4e9", "-"),
    "dual-descent-following": ("#009e73", "-"),
}


@dataclass(frozen=True)
class Questions:
    """What requests are drawn from: Q questions in K settings, the cheapest first."""

    name: str
    options: Sequence[Sequence[Option]]
    """[Q, K]"""
    cost: IntArray
    """[Q, K] what each really costs, in nano-dollars."""
    right: FloatArray
    """[Q, K] whether the answer is right; its chance where that is known."""

    @property
    def value(self) -> FloatArray:
        """[Q, K] what each setting is worth."""
        return np.array([[option.value for option in row] for row in self.options])


@dataclass(frozen=True)
class NoPacing:
    """The best setting until the money is gone: a dollar has no price."""

    def first_price(self) -> float:
        """Return 0."""
        return 0.0

    def price(self, _state: PacingState, _now: float, /) -> float:
        """Return 0."""
        return 0.0

    def settled(self, _state: PacingState, _spent_nano: int, _now: float, /) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True)
class Day:
    """Requests in the order of their times."""

    asked: IntArray
    """[n] which question."""
    hour: FloatArray
    """[n] 0 to 24."""
    expected: FloatArray
    """[n] share of a usual day's requests that have come by then."""


@dataclass(frozen=True)
class Result:
    """What a day came to."""

    right: float
    """Right answers of all requests; a refused one is none."""
    regret: float
    """Share of the hindsight optimum's value that was not reached."""
    refused: float
    """Share of the requests."""
    spent: float
    """Share of the budget."""
    over: int
    """Nano-dollars beyond the budget."""
    spending: FloatArray
    """[25] share of the budget that was spent by each full hour."""


def recorded(folder: Path, seed: int) -> Questions:
    traces = load(folder / FILE)
    rows = np.random.default_rng(seed).permutation(len(traces))
    train, calibrate, test = np.split(rows, [600, 1_200])
    policy = UcciLearner().fit(traces.take(train), Fraction(1, 10), seed, Silent()).policy
    points = policy.points(traces)
    cost = points.cost_nano[calibrate].mean(axis=0)
    targets = np.linspace(cost.min(), cost.max(), SETTINGS)
    kept = np.unique([int(np.abs(cost - target).argmin()) for target in targets])
    wrong = (~points.correct[calibrate][:, kept]).sum(axis=0)
    delta = 0.1 / len(kept)
    row = [
        Option(
            1.0 - binomial_upper(int(wrong[at]), len(calibrate), delta),
            int(cost[point]),
            int(points.cost_nano[:, point].max()),
        )
        for at, point in enumerate(kept)
    ]
    chosen = points.take(test).keep(kept)
    return Questions("recorded", [row] * len(test), chosen.cost_nano, chosen.correct.astype(float))


def generated(seed: int) -> Questions:
    rng = np.random.default_rng(seed)
    usd = np.geomspace(1e-4, 1e-2, 6)
    skill = np.linspace(-0.5, 2.5, 6)
    odds = skill - rng.normal(0.0, 2.0, (2_000, 1)) + rng.normal(0.0, 0.5, (2_000, 6))
    chance = 1.0 / (1.0 + np.exp(-odds))
    cost = np.ceil(1e9 * usd * rng.lognormal(0.0, 0.3, (2_000, 6))).astype(np.int64)
    mean, largest = cost.mean(axis=0), cost.max(axis=0)
    options = [
        [
            Option(value, int(mean[k]), int(largest[k]), proved=False)
            for k, value in enumerate(row.tolist())
        ]
        for row in chance
    ]
    return Questions("generated", options, cost, chance)


def day(questions: Questions, requests: int, rng: np.random.Generator) -> Day:
    share = np.concatenate([[0.0], np.cumsum(HOURS / HOURS.sum())])
    expected = np.sort(rng.random(requests))
    hour = np.interp(expected, share, np.arange(25))
    return Day(rng.integers(len(questions.options), size=requests), hour, expected)


def live(
    pacer: Pacer, questions: Questions, of: Day, budget: int, *, by_clock: bool = False
) -> tuple[IntArray, int]:
    """Return which setting each request got, -1 for none, and the most that was ever committed."""
    state, under_way, most = begin(pacer, budget, PER_DAY), deque[tuple[Option, int]](), 0
    got = np.full(len(of.asked), -1)
    times = (of.hour / 24.0 if by_clock else of.expected).tolist()
    for at, (asked, now) in enumerate(zip(of.asked.tolist(), times, strict=True)):
        choice = choose(pacer, state, questions.options[asked], now)
        if choice is not None:
            got[at], state = choice.index, choice.state
            under_way.append((choice.option, int(questions.cost[asked, choice.index])))
            most = max(most, state.spent_nano + state.reserved_nano)
        if under_way and (len(under_way) > LATE or choice is None):
            option, cost = under_way.popleft()
            state = settle(pacer, state, option, cost, now)
    return got, most


def judged(questions: Questions, of: Day, got: IntArray, budget: int, most: int) -> Result:
    answered = np.flatnonzero(got >= 0)
    which = of.asked[answered], got[answered]
    best = optimum(questions.value[of.asked], questions.cost[of.asked].astype(float), budget)
    cost = questions.cost[which]
    by = np.searchsorted(of.hour[answered], np.arange(25))
    return Result(
        float(questions.right[which].sum() / len(of.asked)),
        float(1.0 - questions.value[which].sum() / best),
        1.0 - len(answered) / len(of.asked),
        float(cost.sum() / budget),
        max(0, most - budget, int(cost.sum()) - budget),
        np.concatenate([[0], np.cumsum(cost)])[by] / budget,
    )


def best_fixed(questions: Questions, of: Day, budget: int) -> IntArray:
    """Return the one setting, kept until the money is gone, that turns out to bring most."""
    cost, value = questions.cost[of.asked].cumsum(axis=0), questions.value[of.asked]
    best = int((value * (cost <= budget)).sum(axis=0).argmax())
    return np.where(cost[:, best] <= budget, best, -1)


def results(questions: Questions, tightness: float, times: float, seed: int) -> dict[str, Result]:
    of = day(questions, int(times * PER_DAY), np.random.default_rng([seed, 5]))
    best = int(questions.value.mean(axis=0).argmax())
    cheapest, dearest = questions.cost.mean(axis=0)[[0, best]] * PER_DAY
    budget = int(cheapest + tightness * (dearest - cheapest))
    pacers = {name: plugins.load("pacers", name) for name in plugins.names("pacers")}
    found = {}
    for name, pacer in {"no pacing": NoPacing(), **pacers}.items():
        got, most = live(pacer, questions, of, budget)
        found[name] = judged(questions, of, got, budget, most)
    for name in ("proportional", "dual-descent-following"):
        got, most = live(pacers[name], questions, of, budget, by_clock=True)
        found[f"{name}, by the clock"] = judged(questions, of, got, budget, most)
    fixed = best_fixed(questions, of, budget)
    return found | {"best fixed setting": judged(questions, of, fixed, budget, 0)}


Rows = dict[tuple[str, float, float], dict[str, list[Result]]]


def table(rows: Rows) -> None:
    for source in dict.fromkeys(source for source, _, _ in rows):
        cases = {key[1:]: methods for key, methods in rows.items() if key[0] == source}
        heads = [f"{at:g}" + ("" if times == 1 else f", {times:g} x") for at, times in cases]
        print(f"\n| {source} | " + " | ".join(heads) + " |\n| --- " + "| ---: " * len(cases) + "|")
        for name in next(iter(cases.values())):
            print(f"| {name} | " + " | ".join(cell(days[name]) for days in cases.values()) + " |")
    every = [one for methods in rows.values() for days in methods.values() for one in days]
    print(f"\n{len(every)} days, the most beyond a budget: {max(one.over for one in every)}")


def cell(days: list[Result]) -> str:
    regret = 100 * np.array([one.regret for one in days])
    refused, spent = (100 * np.mean([(one.refused, one.spent) for one in days], axis=0)).tolist()
    error = regret.std(ddof=1) / np.sqrt(len(days))
    mean = abs(round(float(regret.mean()), 1))
    return f"{mean:.1f} ± {error:.1f} / {refused:.1f} / {spent:.0f}"


def paint(rows: Rows, figure: Figure) -> None:
    source = "recorded" if ("recorded", 0.25, 1.0) in rows else "generated"
    left, middle, right = figure.subplots(1, 3)
    usual = np.concatenate([[0.0], np.cumsum(HOURS / HOURS.sum())])
    left.fill_between(np.arange(25), usual, color=FAINT, label="requests", linewidth=0)
    for name, (color, line) in LOOKS.items():
        spending = np.mean([one.spending for one in rows[source, 0.25, 1.0][name]], axis=0)
        left.plot(np.arange(25), spending, color=color, linestyle=line)
        for axes, what in ((middle, "regret"), (right, "refused")):
            shares = [
                100 * np.mean([getattr(one, what) for one in rows[source, at, 1.0][name]])
                for at in TIGHTNESS
            ]
            axes.plot(TIGHTNESS, shares, color=color, linestyle=line, marker="o", label=name)
    left.set_title(f"Share spent, {source}, tightness 0.25")
    left.set_xlabel("hour")
    left.set_xticks(range(0, 25, 6))
    left.text(17.3, 0.18, "requests so far", color=INK)
    middle.set_title("Value short of hindsight, %")
    right.set_title("Requests refused, %")
    for axes in (middle, right):
        axes.set_xlabel("budget: 0 cheapest, 1 best all day")
        axes.set_ylim(bottom=0)
    figure.legend(*middle.get_legend_handles_labels(), loc="outside lower center", ncols=6)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--days", type=int, default=10)
    arguments.add_argument("--generated", action="store_true", help="made-up questions alone")
    given = arguments.parse_args()
    if not given.generated:
        needed(given.traces / FILE)
    rows: Rows = {}
    for seed in range(given.days):
        sources = [generated(seed)]
        if not given.generated:
            sources.insert(0, recorded(given.traces, seed))
        for questions in sources:
            cases = [(at, 1.0) for at in TIGHTNESS] + [(0.25, 0.5), (0.25, 2.0)]
            for tightness, times in cases:
                kept = rows.setdefault((questions.name, tightness, times), {})
                for name, one in results(questions, tightness, times, seed).items():
                    kept.setdefault(name, []).append(one)
    table(rows)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.4), layout="constrained")
        paint(rows, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    main()
