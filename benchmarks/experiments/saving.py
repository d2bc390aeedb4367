"""What does a proved promise save: against what is lost, over time, and by kind of question?

Recorded MMLU questions with nine models, of which GPT-4o is the one that is paid for. `recommend`
proves a bundle on three fifths of them, and the others, which it has not seen, are answered by it.
*Saved against loss*: parity at four losses, five draws of the questions. *Spend over time*: the
fresh questions of the first draw, one after another. *By kind*: agreement, by MMLU's subjects.

    python benchmarks/experiments/saving.py [--redraw] [--traces FOLDER]

The recordings are read from ../shared/data/traces unless another folder is named.
"""

import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Experiment, Row, draw, mean_and_error, series, table
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from recordings import FOLDER, needed

import farthing as ft
from farthing.promises.statistics.binomial import binomial_interval

FILE = "mmlu-nine-models.jsonl.gz"
REFERENCE = "gpt-4o"
LOSSES = (0.01, 0.02, 0.03, 0.05)
AGREED = 0.1
"""Share of answers that may differ from the reference's."""
SEEDS = 5
STEP = 25
"""Questions between two points of the spending."""
SUBJECT = 15
"""Fewest fresh questions of a subject that is shown."""
BESIDE = {
    "qwen2.5-72b-instruct": (-16, 14),
    "llama3.1-70b": (-10, 5),
    "qwen2.5-32b-coder-instruct": (-38, -11),
    "gpt-4o-mini": (-48, 5),
    "gpt-4o": (6, 4),
}
"""Where a model's name stands beside its mark, in points."""
PLACE = Path(sys.argv[sys.argv.index("--traces") + 1]) if "--traces" in sys.argv else FOLDER


def questions() -> ft.Traces:
    """Return all questions, whatever part the file gives them."""
    with warnings.catch_warnings(action="ignore"):
        traces = ft.read_traces(PLACE / FILE)
    unmarked = np.full(len(traces), -1, dtype=np.int8)
    arrays = replace(traces.arrays, split=unmarked)
    return replace(traces, dataset=replace(traces.dataset, traces=arrays))


def measure(promise: str, loss: float, seed: int) -> list[Row]:
    recorded, fresh = questions().split(0.6, 0.4, seed=seed)
    kinds = {"parity": ft.Parity, "agreement": ft.Agreement}
    with warnings.catch_warnings(action="ignore"):
        found = ft.recommend(recorded, kinds[promise](REFERENCE, epsilon=loss), seed=seed)
        value = found.policy.evaluate(fresh).value
    row = {"promise": promise, "loss": loss, "seed": seed}
    rows: list[Row] = [row | {"what": "all", "saved": value.saved, "gained": value.gained}]
    if promise == "agreement":
        return rows if seed else rows + [row | one for one in by_subject(found.policy, fresh)]
    arrays = fresh.arrays
    usd, right = arrays.cost_nano[:, 0].mean(axis=0), arrays.correct[:, 0].mean(axis=0)
    paid = arrays.roles.index(REFERENCE)
    rows += [
        row | {"what": name, "saved": 1 - usd[i] / usd[paid], "gained": right[i] - right[paid]}
        for i, name in enumerate(arrays.roles)
    ]
    return rows if seed else rows + [row | one for one in over_time(found.policy, fresh)]


def over_time(policy: ft.Policy, fresh: ft.Traces) -> list[Row]:
    """Return what was spent after every few questions."""
    place = fresh.arrays.roles.index(REFERENCE)
    reference = fresh.arrays.cost_nano[:, 0, place] / 1e9
    rows: list[Row] = []
    spent = 0.0
    for start in range(0, len(fresh), STEP):
        part = fresh.take(np.arange(start, min(start + STEP, len(fresh))))
        spent += policy.evaluate(part).metrics["total_cost_usd"]
        after = start + len(part)
        alone = float(reference[:after].sum())
        rows.append({"what": "spent", "after": after, "usd": spent, "alone": alone})
    return rows


def by_subject(policy: ft.Policy, fresh: ft.Traces) -> list[Row]:
    """Return how many answers of each large subject are the reference's."""
    arrays = fresh.arrays
    rows: list[Row] = []
    for group, n in Counter(arrays.group.tolist()).most_common():
        if n >= SUBJECT:
            share = policy.evaluate(fresh.take(arrays.group == group)).metrics["accuracy"]
            name = arrays.group_names[group].replace("_", " ")
            rows.append({"what": "subject", "subject": name, "n": n, "same": round(share * n)})
    return rows


def saved_against_loss(rows: list[Row], axes: Axes) -> None:
    """Draw each model alone and each proved bundle, with the loss that was promised."""
    parity = [row for row in rows if row["promise"] == "parity" and "saved" in row]
    for name in {row["what"] for row in parity} - {"all"}:
        x, y = (
            100 * mean_and_error(row[key] for row in parity if row["what"] == name)[0]
            for key in ("gained", "saved")
        )
        if x > -12 and y > -1:
            axes.plot(-x, y, "o", color="#8a8a8a", markersize=5)
            axes.annotate(
                name, (-x, y), BESIDE.get(name, (6, -3)), fontsize=7, textcoords="offset points"
            )
    for loss in LOSSES:
        own = [row for row in parity if row["what"] == "all" and row["loss"] == loss]
        lost, error = mean_and_error(-100 * row["gained"] for row in own)
        saved, _ = mean_and_error(100 * row["saved"] for row in own)
        axes.plot([lost, 100 * loss], [saved, saved], color="#1b5e3f", linewidth=1, linestyle=":")
        axes.plot(100 * loss, saved, "|", color="#1b5e3f", markersize=12, markeredgewidth=2)
        axes.errorbar(lost, saved, xerr=error, fmt="o", color="#1b5e3f", capsize=2)
    axes.plot([], [], "o", color="#1b5e3f", label="proved: lost on fresh questions")
    axes.plot([], [], "|", color="#1b5e3f", markeredgewidth=2, label="proved: lost at most")
    axes.plot([], [], "o", color="#8a8a8a", label="one model alone")
    axes.axvline(0, color="#555555", linestyle="--", linewidth=1)
    axes.set_xlabel(f"accuracy lost against {REFERENCE}, points")
    axes.set_ylabel(f"saved against {REFERENCE}, %")
    axes.set_title("Saved against loss")
    axes.set_xlim(-2, 9)
    axes.set_ylim(-4, 108)
    axes.legend(loc="lower right", fontsize=7, bbox_to_anchor=(1, 0.07))


def spend_over_time(rows: list[Row], axes: Axes) -> None:
    """Draw what was spent so far."""
    spent = [row for row in rows if row["what"] == "spent"]
    looks = {0.02: "#1b5e3f", 0.05: "#0072b2"}
    for loss, colour in looks.items():
        own = [row for row in spent if row["loss"] == loss]
        after = [row["after"] for row in own]
        if colour == "#1b5e3f":
            alone = [row["alone"] for row in own]
            axes.plot(after, alone, color="#d55e00", label=f"{REFERENCE} alone")
        label = f"at most {100 * loss:g} points lost"
        axes.plot(after, [row["usd"] for row in own], color=colour, label=label)
    axes.set_xlabel("questions answered")
    axes.set_ylabel("US dollars spent so far")
    axes.set_title("Spend over time")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", fontsize=7)


def agreement_by_kind(rows: list[Row], axes: Axes) -> None:
    """Draw the share of each subject's answers that are the reference's."""
    found = [row for row in rows if row["what"] == "subject"]
    found.sort(key=lambda row: row["same"] / row["n"])
    for place, row in enumerate(found):
        low, high = binomial_interval(row["same"], row["n"], 0.05)
        axes.plot([100 * low, 100 * high], [place, place], color="#1b5e3f", linewidth=1)
        axes.plot(100 * row["same"] / row["n"], place, "o", color="#1b5e3f", markersize=5)
    names = [f"{row['subject']} ({row['n']})" for row in found]
    axes.set_yticks(range(len(found)), names, fontsize=7)
    axes.axvline(100 * (1 - AGREED), color="#555555", linestyle="--", linewidth=1)
    axes.set_xlabel(f"answers that are {REFERENCE}'s, %")
    axes.set_title("Agreement by subject")
    axes.grid(visible=False, axis="y")


def paint(rows: list[Row], figure: Figure) -> None:
    first, second, third = figure.subplots(1, 3)
    saved_against_loss(rows, first)
    spend_over_time(rows, second)
    agreement_by_kind(rows, third)


def main() -> None:
    if "--redraw" not in sys.argv:
        needed(PLACE / FILE)
    asked = [("parity", loss) for loss in LOSSES] + [("agreement", AGREED)]
    cases = [
        {"promise": promise, "loss": loss, "seed": seed}
        for promise, loss in asked
        for seed in range(SEEDS)
    ]
    rows = Experiment("saving", measure).rows(cases)
    for promise in ("parity", "agreement"):
        whole = [row for row in rows if row["what"] == "all" and row["promise"] == promise]
        print(f"\n{promise}")
        table({key: series(whole, "loss", key) for key in ("saved", "gained")}, "loss")
    draw("saving", lambda figure: paint(rows, figure), 3.4)


if __name__ == "__main__":
    main()
