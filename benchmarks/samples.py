"""How many samples before a vote: what comes of the same money, shared in each way?

    .venv/bin/python benchmarks/samples.py lastletters [--traces FOLDER] [--orders 50]
    .venv/bin/python benchmarks/samples.py embedded [--out FOLDER] [--questions 500] [--orders 50]

Questions with 40 samples of one model each, drawn in so many orders. Plans and thresholds come from
the other half of the questions. "Knew the frequencies" shares samples by each question's exact vote
curve, as nobody can who has not taken all of them.

`lastletters`: recorded samples of GPT-3.5. `embedded`: chains of arithmetic, new to the networks
`small` and `large`, which are asked as `farthing collect` asks any model; what was asked before
stands in the folder and is not asked again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing.methods.base import Silent
from farthing.reports.style import STYLE
from farthing.runtime.collect import collect_locally
from farthing.runtime.job import read_job
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load as read
from farthing.traces.files import read_arrays
from farthing.traces.pool import leaders, sampled
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.pets import PETS, vote_curve
from farthing_lab.studies.self_consistency import Sampled, compare
from farthing_lab.studies.study import mean_and_half
from farthing_lab.tasks.arithmetic import Recipe, draw_of

RECORDED = "lastletters-forty-samples.jsonl.gz"
WAYS = {
    "the same for each": ("#7d8590", ":"),
    "adaptive consistency": ("#0072b2", "-"),
    "PETS, as one batch": ("#009e73", "-"),
    "PETS, one by one": ("#56b4e9", "-"),
}
EACH = (2, 3, 4, 5, 6, 8, 12, 16)
TAKEN = 40
LEAST_SPAN = 3.0
"""Points that an axis spans at least: less is not worth a steep line."""
HOPS = range(1, 7)
NETWORKS = ("small", "large")
CAP_NANO = 100 * 10**9
"""Nobody is paid: prices of these networks are set for the demo."""
IMAGES = Path(__file__).parents[1] / "docs/images"
PROMPT = Path(__file__).parents[1] / "packages/farthing-lab/src/farthing_lab/cli/demo_job/base.txt"
JOB = """
task = "arithmetic"
questions = "questions.jsonl"
prompts = "prompts"
rounds = {rounds}
mode = "samples"
at_once = 64
[agents.base]
model = "{name}"
max_tokens = 100
[models.{name}]
provider = "embedded"
model = "{name}"
batch = 256
"""


def collected(folder: Path, name: str, questions: int) -> TraceArrays:
    """Have a network answer questions of the part `test`, so many times each."""
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts/base.txt").write_text(PROMPT.read_text())
    drawn: dict[str, Any] = {}
    recipes = [Recipe("affine", hops) for hops in HOPS]
    for problem in draw_of("test", recipes, np.random.default_rng(1)):
        one = problem.question()
        drawn.setdefault(
            one.text,
            {"id": one.id, "question": one.text, "gold": list(one.gold), "group": one.group},
        )
        if len(drawn) == questions:
            break
    lines = [json.dumps(row) for row in drawn.values()]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    job = folder / f"{name}.toml"
    job.write_text(JOB.format(rounds=TAKEN, name=name))
    collect_locally(read_job(job), folder / f"{name}.db", CAP_NANO)
    traces = read_arrays(folder / f"{name}.db")
    return traces.take(np.argsort(traces.ids))  # the store has them as they were finished


def compared(traces: TraceArrays, orders: int) -> dict[int, list[Sampled]]:
    """Compare at each number of samples, and print a table."""
    given: dict[str, Any] = {"orders": orders, "seed": 0, "progress": Silent()}
    found = {each: compare(traces, each, **given)[0] for each in EACH}
    known = {each: knew(traces, each, orders) for each in EACH}
    print("| samples a question | " + " | ".join(map(str, EACH)) + " |")
    print("| --- " + "| ---: " * len(EACH) + "|")
    for what in ("right", "same"):
        for name in (*WAYS, "knew the frequencies"):
            cells = []
            for each in EACH:
                ways = {one.name: one for one in found[each]}
                cells.append(cell({**ways, "knew the frequencies": known[each]}, name, what))
            print(f"| {what}: {name} | " + " | ".join(cells) + " |")
    *_, every = next(iter(found.values()))
    first = sampled(traces)[1][:, 0].mean()
    print(f"all {TAKEN}: right {every.right.mean():.3f}; the first alone: {first:.3f}", flush=True)
    return found


def cell(ways: dict[str, Sampled], name: str, what: str) -> str:
    if name not in ways:
        return ""
    one, uniform = ways[name], ways["the same for each"]
    values, base = getattr(one, what), getattr(uniform, what)
    lead, half = mean_and_half(values - base)
    beside = f", {100 * lead:+.1f} ± {100 * half:.1f}" if one is not uniform else ""
    return f"{100 * values.mean():.1f}{beside} / {one.samples.mean():.1f}"


def draw(found: dict[str, dict[int, list[Sampled]]], image: str) -> None:
    """Draw a row a model: right answers, and agreement with the vote of all."""
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 0.6 + 3.0 * len(found)), layout="constrained")
        rows = figure.subplots(len(found), 2, squeeze=False)
        for (model, by_each), row in zip(found.items(), rows, strict=True):
            titles = ("right answers, %", f"vote of all {TAKEN}, %")
            for axes, what, title in zip(row, ("right", "same"), titles, strict=True):
                lines(axes, by_each, what)
                axes.set_title(f"{model}: {title}" if model else title.capitalize())
        for axes in rows[-1]:
            axes.set_xlabel("samples a question")
        figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(IMAGES / image, metadata={"Date": None})


def lines(axes: Any, by_each: dict[int, list[Sampled]], what: str) -> None:
    for name, (color, line) in WAYS.items():
        kept = [
            (one.samples.mean(), 100 * getattr(one, what).mean())
            for ways in by_each.values()
            for one in ways
            if one.name == name
        ]
        axes.plot(
            *zip(*kept, strict=True),
            color=color,
            linestyle=line,
            marker="o",
            markersize=3,
            label=name,
        )
    low, high = axes.get_ylim()
    middle, half = (low + high) / 2, max(high - low, LEAST_SPAN) / 2
    axes.set_ylim(middle - half, middle + half)


def knew(traces: TraceArrays, each: int, orders: int) -> Sampled:
    """Share samples by exact vote curves of the recorded frequencies."""
    answer, right, cost = sampled(traces)
    n, most = answer.shape
    curves = {}
    keys = [
        tuple(
            sorted(
                (row[row >= 0].tolist().count(a) for a in set(row[row >= 0].tolist())), reverse=True
            )
        )
        for row in answer
    ]
    for key in set(keys):
        top = np.array(key[:6], dtype=float)  # rarer answers cannot win a vote worth mentioning
        curves[key] = vote_curve(top / sum(key), most)[1:] if key else np.ones(most)
    value = np.clip(np.array([curves[key] for key in keys]), 0.0, 1.0)
    units = np.broadcast_to(np.arange(1, most + 1), value.shape).copy()
    k = PETS.allocate(ItemBatch(value, units, units), each * n).choice + 1
    rng, vote, sums = np.random.default_rng(1), leaders(answer)[:, -1], np.zeros((2, n))
    for _ in range(orders):
        drawn = rng.permuted(np.broadcast_to(np.arange(most), answer.shape), axis=1)
        lead = leaders(np.take_along_axis(answer, drawn, 1))[np.arange(n), k - 1]
        sums += ((answer == lead[:, None]) & right).any(axis=1), lead == vote
    spent = (cost.mean(axis=1) * k).astype(float)
    return Sampled("knew the frequencies", k.astype(float), spent, *(sums / orders))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["lastletters", "embedded"])
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--out", type=Path, default=Path("samples-of-networks"))
    arguments.add_argument("--questions", type=int, default=500)
    arguments.add_argument("--orders", type=int, default=50)
    given = arguments.parse_args()
    if given.what == "lastletters":
        needed(given.traces / RECORDED)
        draw({"": compared(read(given.traces / RECORDED), given.orders)}, "samples.svg")
        return
    found = {}
    for name in NETWORKS:
        print(f"\n{name}")
        traces = collected(given.out, name, given.questions)
        found[name] = compared(traces, given.orders)
    draw(found, "samples-embedded.svg")


if __name__ == "__main__":
    main()
