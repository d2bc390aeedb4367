"""A task in four parts, one budget: who does which part, and how many samples does it get?

    .venv/bin/python benchmarks/parts.py collect FOLDER [--tasks 160] [--samples 5]
    .venv/bin/python benchmarks/parts.py money FOLDER [--splits 20]
    .venv/bin/python benchmarks/parts.py tokens FOLDER
    .venv/bin/python benchmarks/parts.py trials
    .venv/bin/python benchmarks/parts.py draw

`collect`: a task is four chains of arithmetic, and right if all four are: a short one, a long one,
one of sums, one of products, each of a length drawn anew. Each embedded model answers each part
several times at temperature 1, and once by its likeliest symbols. What comes of it goes to FOLDER
as sample traces, a file a part and model, with `parts.toml` beside them.

`money`: half of the tasks to choose by, the other half to measure, drawn anew for each split.

`tokens`: all parts go to the model that was best at them, which takes its likeliest symbols. What
is shared is a cap on what it writes, each task by its own credits: how many steps its chains have.

`trials`: made-up tasks whose options saturate, so that all choices can be enumerated: what is short
of the best after so many runs of the whole task.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from parts_recorded import collect

from farthing.reports.style import STYLE
from farthing.traces.assemble import load
from farthing_lab.methods.allocators.agent_tts import AgentTts, Space, rule
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.plan_and_budget import (
    SCHEDULES,
    efficiency,
    scheduled,
    shares,
    whole,
)
from farthing_lab.studies.part_samples import PipelinePart, in_rows, measure, read_parts, shared_ids
from farthing_lab.studies.pipeline_parts import PACKED, CappedReplies, share, shared

FOLDER = Path(__file__).parents[1]
RESULTS = FOLDER / "benchmarks/results/parts.json"
IMAGE = FOLDER / "docs/images/parts.svg"
BUDGETS = (0.0003, 0.0006, 0.0009, 0.0012, 0.0016, 0.002, 0.003, 0.005)
WAYS = {
    "lagrangian": ("#009e73", "-"),
    "Plan-and-Budget": ("#0072b2", "--"),
    "AgentTTS": ("#d55e00", "-"),
    "even shares": ("#7d8590", ":"),
    "one model for all": ("#8c6d46", "--"),
}


def money(folder: Path, splits: int) -> None:
    measured = measure(read_parts(folder / "parts.toml"))
    found: dict[str, list[list[list[float]]]] = {name: [] for name in WAYS}
    for usd in BUDGETS:
        each: dict[str, list[list[float]]] = {name: [] for name in WAYS}
        for seed in range(splits):
            for row in share(measured, round(usd * 1e9), seed=seed).rows:
                name = row.name.partition(":")[0]
                if name in WAYS:
                    lacking = row.choice is None
                    each[name].append([np.nan] * 2 if lacking else [row.right, row.cost_nano / 1e9])
        for name, rows in each.items():
            found[name].append(rows)
    keep("money", {"budgets": BUDGETS, "found": found})
    print("| | " + " | ".join(f"${usd:g}" for usd in BUDGETS) + " |")
    print("| --- " + "| ---: " * len(BUDGETS) + "|")
    even = 100 * np.array(found["even shares"])[:, :, 0]
    for name in WAYS:
        right, spent = np.moveaxis(np.array(found[name]), 2, 0)
        cells = []
        for at, usd in enumerate(BUDGETS):
            lead = 100 * right[at] - even[at]
            beside = "" if name == "even shares" else f", {lead.mean():+.1f} ± {error(lead):.1f}"
            cells.append(
                f"{100 * right[at].mean():.1f}{beside} / {100 * spent[at].mean() / usd:.0f}"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")


TOKENS = (120, 140, 160, 180, 200, 220, 260)


def tokens(folder: Path, splits: int) -> None:
    """Caps of each task's own, by its credits: how long each of its chains is."""
    right, length, credit, best = likeliest(folder)
    n, m = right.shape
    print(f"models {best}; without caps {right.all(axis=1).mean():.3f} right, ", end="")
    print(f"{length.sum(axis=1).mean():.0f} tokens")
    names = ["even shares", "Plan-and-Budget, credits", *(f"{s} decay" for s in SCHEDULES)]
    names += ["best fixed caps", "knew the lengths"]
    found: dict[str, list[list[list[float]]]] = {name: [] for name in names}
    for total in TOKENS:
        caps = {
            "even shares": np.full((n, m), total // m),
            "Plan-and-Budget, credits": np.array(
                [whole(one, total) for one in shares(credit, np.ones((n, m)), np.full(n, total), 1)]
            ),
        }
        for name in SCHEDULES:
            weights = [scheduled(name, one) for one in credit]
            caps[f"{name} decay"] = np.array([whole(total * one, total) for one in weights])
        knew = np.minimum(length, total)
        knew[length.sum(axis=1) > total] = total // m
        caps["knew the lengths"] = knew
        each: dict[str, list[list[float]]] = {name: [] for name in names}
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(n)
            learned, measured = order[: n // 2], order[n // 2 :]
            of = [
                CappedReplies(right[learned, i : i + 1], length[learned, i : i + 1])
                for i in range(m)
            ]
            fixed = shared(of, np.ones(m), total)[PACKED]
            for name in names:
                cap = np.broadcast_to(fixed, (n, m)) if name == "best fixed caps" else caps[name]
                good = (right & (length <= cap)).all(axis=1)[measured]
                taken = np.minimum(length, cap).sum(axis=1)[measured]
                accuracy = float(good.mean())
                e3 = 1_000 * efficiency(accuracy, float(taken.mean()))
                each[name].append([accuracy, float(taken.mean()), e3])
        for name, rows in each.items():
            found[name].append(rows)
    keep("tokens", {"tokens": TOKENS, "found": found})
    print("| | " + " | ".join(map(str, TOKENS)) + " |")
    print("| --- " + "| ---: " * len(TOKENS) + "|")
    for name in names:
        rows = np.array(found[name])
        cells = []
        for at in range(len(TOKENS)):
            lead = 100 * (rows[at, :, 0] - np.array(found["even shares"])[at, :, 0])
            beside = "" if name == "even shares" else f", {lead.mean():+.1f} ± {error(lead):.1f}"
            cells.append(f"{100 * rows[at, :, 0].mean():.1f}{beside} / {rows[at, :, 2].mean():.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def likeliest(folder: Path) -> tuple[Any, Any, Any, list[str]]:
    """Return what the best model of each part makes of each task: [n, m] right, length, credit."""
    parts = read_parts(folder / "parts.toml")
    ids = shared_ids(parts)
    best, columns = [], []
    for part in parts:
        greedy = {}
        for name in part.models:
            own = PipelinePart(
                part.name, {name: load(folder / f"{part.name}-{name}-likeliest.jsonl.gz")}
            )
            greedy[name] = in_rows(own, name, ids)
        name = max(greedy, key=lambda one: greedy[one].correct.mean())
        best.append(name)
        of = greedy[name]
        hops = np.array([int(one) for one in of.group_names])
        tokens_ = of.signals["output_tokens"][:, 0, 0].astype(int)
        columns.append((of.correct[:, 0, 0], tokens_, hops[of.group].astype(float)))
    right, length, credit = (np.array(column).T for column in zip(*columns, strict=True))
    return right, length, credit, best


def trials(tasks: int) -> None:
    """What is short of the best of 3,375 choices after so many runs of the whole task."""
    found: dict[str, list[list[float]]] = {"AgentTTS's rule": [], "any choice": []}
    for seed in range(tasks):
        space, chance = saturating(seed)
        rows = np.arange(3)
        every = np.array(list(product(range(15), repeat=3)))
        fits = space.batch.expected_nano[rows, every].sum(axis=1) <= space.budget_nano
        best = max(whole_task(chance[rows, one]) for one in every[fits])
        for name, proposer in (("AgentTTS's rule", rule), ("any choice", any_choice)):
            search = AgentTts(60, proposer, seed)
            so_far = search.maximise(
                space,
                lambda one: whole_task(chance[rows, one]),  # noqa: B023
            ).best_so_far()
            so_far += so_far[-1:] * (60 - len(so_far))
            found[name].append([round(1 - value / best, 5) for value in so_far])
    keep("trials", found)
    print("| trials | 5 | 10 | 20 | 40 | 60 |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, rows in found.items():
        regret = 100 * np.array(rows)[:, [4, 9, 19, 39, 59]]
        cells = [f"{one.mean():.2f} ± {error(one):.2f}" for one in regret.T]
        print(f"| {name} | " + " | ".join(cells) + " |")


def saturating(seed: int) -> tuple[Space, Any]:
    rng = np.random.default_rng(seed)
    height, pace = rng.uniform(0.3, 1.0, (3, 3, 1)), rng.uniform(0.5, 4.0, (3, 3, 1))
    samples = np.arange(1, 6)
    chance = height * (1 - np.exp(-samples / pace))
    price = np.array([10, 40, 100])[None, :, None] * rng.integers(5, 20, (3, 1, 1))
    cost = (price * samples).reshape(3, -1)
    model = np.broadcast_to(np.repeat(np.arange(3), 5), cost.shape).copy()
    batch = ItemBatch(np.zeros(cost.shape), cost, 2 * cost)
    low, high = batch.least_nano, int(cost.max(axis=1).sum())
    budget = int(low + rng.uniform(0.1, 0.5) * (high - low))
    return Space(batch, budget, model), chance.reshape(3, -1)


def whole_task(chance: Any) -> float:
    """All parts are right, or the last one repairs what was wrong before."""
    return float(chance.prod() + (1 - chance[:-1].prod()) * chance[-1] ** 3 / 2)


def any_choice(space: Space, _: Any, rng: np.random.Generator) -> list[tuple[int, ...]]:
    while not space.fits(one := tuple(int(k) for k in rng.choice(15, 3))):
        pass
    return [one]


def error(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def keep(name: str, found: Any) -> None:
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**before, name: found}) + "\n")


def draw() -> None:
    kept = json.loads(RESULTS.read_text())
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.7), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for name, (color, line) in WAYS.items():
            values = 100 * np.array(kept["money"]["found"][name], dtype=float)[:, :, 0]
            style = {"color": color, "linestyle": line, "marker": "o", "markersize": 3}
            left.plot(kept["money"]["budgets"], values.mean(axis=1), label=name, **style)
        left.set_title("Right tasks, %, by budget")
        left.set_xlabel("USD a task")
        looks = {
            "knew the lengths": ("#1f2430", "--"),
            "Plan-and-Budget, credits": ("#0072b2", "-"),
            "best fixed caps": ("#009e73", "-"),
            "linear decay": ("#cc79a7", "-"),
            "even shares": ("#7d8590", ":"),
        }
        for name, (color, line) in looks.items():
            values = 100 * np.array(kept["tokens"]["found"][name])[:, :, 0].mean(axis=1)
            style = {"color": color, "linestyle": line, "marker": "o", "markersize": 3}
            middle.plot(kept["tokens"]["tokens"], values, label=name, **style)
        middle.set_title("Right tasks, %, by tokens")
        middle.set_xlabel("cap on a task, tokens")
        for name, color in (("AgentTTS's rule", "#d55e00"), ("any choice", "#7d8590")):
            regret = 100 * np.array(kept["trials"][name])
            at, mean = np.arange(1, 61), regret.mean(axis=0)
            half = 1.96 * regret.std(axis=0, ddof=1) / np.sqrt(len(regret))
            right.plot(at, mean, color=color, label=name)
            right.fill_between(at, mean - half, mean + half, color=color, alpha=0.15, linewidth=0)
        right.set_yscale("log")
        right.set_title("Short of the best choice, %")
        right.set_xlabel("trials of the whole task")
        for axes in (left, middle, right):
            axes.legend(fontsize=7.5, frameon=False)
        figure.savefig(IMAGE, metadata={"Date": None})


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["collect", "money", "tokens", "trials", "draw"])
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("--tasks", type=int, default=160)
    arguments.add_argument("--samples", type=int, default=5)
    arguments.add_argument("--splits", type=int, default=20)
    given = arguments.parse_args()
    if given.what == "collect":
        collect(given.folder, given.tasks, given.samples)
    elif given.what == "money":
        money(given.folder, given.splits)
    elif given.what == "tokens":
        tokens(given.folder, given.splits)
    elif given.what == "trials":
        trials(100)
    else:
        draw()


if __name__ == "__main__":
    main()
