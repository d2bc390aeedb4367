"""One budget for a whole batch: how near the optimum is an allocation, and how long does it take?

    .venv/bin/python benchmarks/allocate.py knapsack
    .venv/bin/python benchmarks/allocate.py pools [--traces FOLDER] [--splits 20]

`knapsack`: questions of known difficulty before nine models of rising price, beside SciPy's HiGHS,
which solves the linear relaxation in the same run (up to `--highs` questions, since it takes hours
beyond). At each size: the value as a share of the bound, and the seconds.

`pools`: recorded questions, 60 % of them to learn from and 40 % as the batch, drawn anew for each
split. Budgets lie between the cheapest and the strongest model's bill for the batch. Policies that
buy one answer after another get the operating point that was nearest below the budget in training.
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
from scipy import sparse
from scipy.optimize import linprog

from farthing.methods.base import Silent, load
from farthing.methods.cards import card
from farthing.reports.style import STYLE
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load as read
from farthing.traces.pool import cheapest_first, in_order
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.allocators.base import ItemBatch, fit_estimates
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN, pack
from farthing_lab.methods.allocators.rco import RCO
from farthing_lab.studies.batch_allocation import allocate

MODELS = 9
POOLS = {
    "MMLU": "mmlu-nine-models.jsonl.gz",
    "MedMCQA": "medmcqa-nine-models.jsonl.gz",
    "ZeroEval": "zeroeval-ten-models.jsonl.gz",
}
POLICIES = ("route-llm", "cascade-routing", "frugal-gpt", "ucci")
TIGHTNESS = (0.05, 0.1, 0.25, 0.5, 0.75)
ROWS = ("allocated", "by price alone", "best affordable model", "drawn at random")
LOOKS = {
    "allocated": ("#009e73", "-"),
    "by price alone": ("#56b4e9", "-"),
    "best affordable model": ("#8c6d46", "--"),
    "drawn at random": ("#7d8590", ":"),
    "route-llm": ("#cc79a7", "-"),
    "cascade-routing": ("#d55e00", "-"),
    "frugal-gpt": ("#e69f00", "-"),
    "ucci": ("#0072b2", "-"),
}
FAR_BELOW = "drawn at random"
"""Not in the figure, whose other lines it would press together."""
IMAGE = Path(__file__).parents[1] / "docs/images/allocators.svg"


def questions(n: int, seed: int = 0) -> ItemBatch:
    rng = np.random.default_rng(seed)
    usd = np.geomspace(1e-5, 6e-4, MODELS)
    cost = np.ceil(1e9 * usd * rng.lognormal(0.0, 0.4, (n, MODELS))).astype(np.int64)
    odds = np.linspace(-0.5, 2.0, MODELS) - rng.normal(0, 2, (n, 1))
    value = 1.0 / (1.0 + np.exp(-odds - rng.normal(0, 0.7, (n, MODELS))))
    return ItemBatch(value, cost, 2 * cost)


def highs(batch: ItemBatch, budget: int) -> float:
    n = len(batch)
    one_each = sparse.kron(sparse.eye(n), np.ones((1, MODELS)), format="csr")
    money = sparse.csr_matrix(batch.expected_nano.ravel()[None] / budget * n)
    solve: Any = linprog
    found = solve(-batch.value.ravel(), money, [n], one_each, np.ones(n), method="highs")
    return -float(found.fun)


def timed(work: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    done = work()
    return done, time.perf_counter() - began


def knapsack(by_highs_up_to: int) -> None:
    print("| questions | HiGHS, s | knapsack | s | RCO's own rounding | s | more than the budget |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n in (100, 1_000, 10_000, 100_000):
        batch = questions(n)
        budget = int(0.7 * batch.least_nano + 0.3 * batch.cost_of(batch.best))
        packed, by_pack = timed(lambda: pack(batch, budget))  # noqa: B023

        def descent() -> Any:
            soft = RCO.descend(batch, budget, lambda _: (0.0, batch.value))  # noqa: B023
            return RCO.rounded(batch, budget, soft)  # noqa: B023

        rounded, by_rco = timed(descent)
        theirs = "–"
        if n <= by_highs_up_to:
            best, by_highs = timed(lambda: highs(batch, budget))  # noqa: B023
            assert abs(best / packed.bound - 1) < 1e-6
            theirs = f"{by_highs:.2f}"
        choices = packed.choice, rounded
        shares = [batch.value[np.arange(n), one].sum() / packed.bound for one in choices]
        over = max(0, *(batch.cost_of(one) - budget for one in choices))
        print(
            f"| {n:,} | {theirs} | {shares[0]:.5%} | {by_pack:.3f} | {shares[1]:.5%} "
            f"| {by_rco:.2f} | {over} |",
            flush=True,
        )


Figures = dict[tuple[str, float, str], list[tuple[float, float]]]
"""(pool, tightness, who) to the share of right answers and of the budget spent, a split each."""


def pools(folder: Path, splits: int) -> None:
    found: Figures = {}
    for name, file in POOLS.items():
        traces = read(folder / file)
        for seed in range(splits):
            rows = np.random.default_rng([seed, 3]).permutation(len(traces))
            cut = int(0.6 * len(rows))
            one_split(found, name, traces.take(rows[:cut]), traces.take(rows[cut:]), seed)
    for name in POOLS:
        table(found, name)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        paint(found, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


def one_split(found: Figures, name: str, train: TraceArrays, test: TraceArrays, seed: int) -> None:
    order = cheapest_first([train])
    train, test = in_order(train, order), in_order(test, order)
    estimates = fit_estimates(train)
    batch = estimates.batch(QuestionFeatures.of(test), test.made[:, 0])
    cost = batch.expected_nano.sum(axis=0)
    low, high = int(cost.min()), int(cost[estimates.mean.argmax()])
    bought = {}
    for policy in POLICIES:
        if policy not in ("route-llm", "cascade-routing") and "confidence" not in train.signals:
            continue
        fitted = load(card(policy).learner).fit(train, Fraction(1, 10), seed, Silent()).policy
        bought[policy] = fitted.points(train), fitted.points(test)
    for tightness in TIGHTNESS:
        budget = int(low + tightness * (high - low))
        _, rows = allocate(estimates, batch, budget, LAGRANGIAN, recorded=test, seed=seed)
        for row in rows:
            short = row["name"].partition(":")[0]
            if short in ROWS and "cost_usd" in row:
                spent = row["cost_usd"] * 1e9 / budget, row["right"] / len(test)
                found.setdefault((name, tightness, short), []).append(spent)
        for policy, (before, after) in bought.items():
            mean = before.cost_nano.mean(axis=0)
            each = budget / len(test)
            if mean.min() > each:  # it has no point that is so cheap
                continue
            point = int(np.where(mean <= each, mean, -np.inf).argmax())
            spent = after.cost_nano[:, point].sum() / budget, after.correct[:, point].mean()
            found.setdefault((name, tightness, policy), []).append(spent)


def table(found: Figures, name: str) -> None:
    print(f"\n| {name} | " + " | ".join(f"{at:g}" for at in TIGHTNESS) + " |")
    print("| --- " + "| ---: " * len(TIGHTNESS) + "|")
    for who in LOOKS:
        if not any((name, at, who) in found for at in TIGHTNESS):
            continue
        cells = []
        for at in TIGHTNESS:
            if len(found.get((name, at, who), [])) < len(found[name, at, "allocated"]):
                cells.append("too dear")
                continue
            spent, right = 100 * np.array(found[name, at, who]).T
            lead = right - 100 * np.array(found[name, at, "allocated"])[:, 1]
            other = f", {lead.mean():+.1f} ± {error(lead):.1f}" if who != "allocated" else ""
            own = f" ± {error(right):.1f}" if who == "allocated" else ""
            cells.append(f"{right.mean():.1f}{own}{other} / {spent.mean():.0f}")
        print(f"| {who} | " + " | ".join(cells) + " |")


def error(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def paint(found: Figures, figure: Figure) -> None:
    every = figure.subplots(1, len(POOLS))
    for axes, name in zip(every, POOLS, strict=True):
        for who, (color, line) in LOOKS.items():
            kept = [at for at in TIGHTNESS if (name, at, who) in found and who != FAR_BELOW]
            right = [100 * np.mean(found[name, at, who], axis=0)[1] for at in kept]
            if kept:
                axes.plot(
                    kept, right, color=color, linestyle=line, marker="o", markersize=3, label=who
                )
        axes.set_title(f"{name}: right answers, %")
        axes.set_xlabel("budget: 0 cheapest, 1 strongest model")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=8)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["knapsack", "pools"])
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--highs", type=int, default=10_000)
    given = arguments.parse_args()
    if given.what == "knapsack":
        knapsack(given.highs)
    else:
        needed(*(given.traces / file for file in POOLS.values()))
        pools(given.traces, given.splits)


if __name__ == "__main__":
    main()
