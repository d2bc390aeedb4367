"""A model joins a pool with a handful of outcomes: how well is its success known, and routed by?

    .venv/bin/python benchmarks/joining.py [--traces FOLDER] [--splits 4] [--workers 1]

Of each recorded pool 60 % of the questions train and 40 % test, drawn anew for each split. Each
model in turn is the one that joins: V_0 learns from the others alone, then reads 10, 50 or 200 of
the newcomer's outcomes on training questions. Beside it: the share of right answers among them, a
logistic regression on these outcomes alone, and one on all of its outcomes (RouteLLM's linear score
of the text, as `farthing study allocate` fits it). Routing is V_0's, with the newcomer's column by
each of them; its right answers are read off at equal money, between the cheapest model's bill (0)
and the strongest's (1) for the test questions. Errors are standard errors over splits, of
differences between rows of the same split.
"""

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from farthing.methods.scorer import STRENGTH, logistic
from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import load as read
from farthing.traces.pool import cheapest_first, in_order
from farthing_lab.features.question import QuestionFeatures, groups_of, seen_of
from farthing_lab.methods.estimators.base import OutcomeHistory, log_loss
from farthing_lab.methods.estimators.v0 import V0, chance
from farthing_lab.methods.routers.v0 import BETAS, chosen

POOLS = {
    "MMLU": "mmlu-nine-models.jsonl.gz",
    "MedMCQA": "medmcqa-nine-models.jsonl.gz",
    "ZeroEval": "zeroeval-ten-models.jsonl.gz",
}
OUTCOMES = (10, 50, 200)
TIGHTNESS = (0.1, 0.25, 0.5)
LOOKS = {
    "V_0": ("#009e73", "-"),
    "logistic regression": ("#d55e00", "-"),
    "share of right answers": ("#7d8590", ":"),
}
ALL = "retrained on all"
IMAGE = Path(__file__).parents[1] / "docs/images/joining.svg"
Found = dict[tuple[str, str, int], list[list[float]]]
"""(pool, who, outcomes) to log loss, AUC, error of accuracy, then right answers at each tightness:
a row a split, averaged over the models that join."""


def one_split(file: Path, seed: int) -> dict[tuple[str, int], FloatArray]:
    traces = read(file)
    rng = np.random.default_rng([seed, 7])
    rows = rng.permutation(len(traces))
    cut = int(0.6 * len(rows))
    train, test = traces.take(rows[:cut]), traces.take(rows[cut:])
    order = cheapest_first([train])
    train, test = in_order(train, order), in_order(test, order)
    found = defaultdict(list)
    for model in range(traces.n_roles):
        with threadpool_limits(limits=1):
            every = one_newcomer(train, test, model)
        for key, figures in every.items():
            found[key].append(figures)
    return {key: np.mean(each, axis=0) for key, each in found.items()}


def one_newcomer(
    train: TraceArrays, test: TraceArrays, model: int
) -> dict[tuple[str, int], list[float]]:
    others = [m for m in range(train.n_roles) if m != model]
    learned = V0.fit(of_models(train, others), 0)
    asked, known = QuestionFeatures.of(test), OutcomeHistory.of(train, model)
    groups = groups_of(known.asked.group)
    seen, new = seen_of(known.asked, groups), seen_of(asked, groups)
    success = np.zeros((len(test), train.n_roles))
    z, own = learned.directions.coordinates(asked), learned.directions.own
    for other, ability in zip(others, learned.abilities, strict=True):
        success[:, other] = chance(z, ability, 0.0, own)

    def regressed(n: int) -> FloatArray:
        weight = logistic(seen[:n], known.right[:n], STRENGTH)
        return np.asarray(1 / (1 + np.exp(-(new @ weight[:-1] + weight[-1]))))

    none = known.take(np.arange(0))
    columns: dict[tuple[str, int], FloatArray] = {("V_0", 0): learned.success(none, asked)}
    for n in OUTCOMES:
        few = known.take(np.arange(n))
        share = (few.right.sum() + 0.5) / (n + 1)
        columns["V_0", n] = learned.success(few, asked)
        columns["logistic regression", n] = regressed(n)
        columns["share of right answers", n] = np.full(len(test), share)
    columns[ALL, -1] = regressed(len(known.right))
    columns["V_0", -1] = learned.success(known, asked)
    found = {}
    for key, column in columns.items():
        right = test.correct[:, 0, model]
        graded = test.made[:, 0][:, model]
        figures = [
            log_loss(column[graded], right[graded]),
            float(roc_auc_score(right[graded], column[graded])),
            abs(float(column[graded].mean() - right[graded].mean())),
        ]
        success[:, model] = column
        found[key] = figures + routed(train, test, success, test.made[:, 0])
    offered = test.made[:, 0].copy()
    offered[:, model] = False
    found["without it", 0] = [np.nan] * 3 + routed(train, test, success, offered)
    return found


def of_models(traces: TraceArrays, models: list[int]) -> TraceArrays:
    """Return the same questions with some of the models alone."""
    names = ("answer", "correct", "cost_nano", "largest_cost_nano", "ungraded")
    columns: Any = {name: getattr(traces, name)[:, :, models] for name in names}
    return replace(
        traces,
        roles=tuple(traces.roles[m] for m in models),
        models=tuple(traces.models[m] for m in models),
        signals={name: values[:, :, models] for name, values in traces.signals.items()},
        replies={},
        **columns,
    )


def routed(
    train: TraceArrays, test: TraceArrays, success: FloatArray, offered: np.ndarray
) -> list[float]:
    """Return right answers at each tightness, by interpolation between operating points."""
    mean = train.cost_nano[:, 0].mean(axis=0)
    who = chosen(success, mean / mean.max(), BETAS, offered)
    rows = np.arange(len(test))[:, None]
    cost = test.cost_nano[:, 0][rows, who].mean(axis=0)
    right = test.correct[:, 0][rows, who].mean(axis=0)
    bill = test.cost_nano[:, 0].mean(axis=0)
    low, high = bill.min(), bill[train.correct[:, 0].mean(axis=0).argmax()]
    order = np.argsort(cost, kind="stable")
    return [float(np.interp(low + t * (high - low), cost[order], right[order])) for t in TIGHTNESS]


def table(found: Found, name: str) -> None:
    heads = ["log loss", "AUC", "off by", *(f"right at {t:g}" for t in TIGHTNESS)]
    print(f"\n| {name} | outcomes | " + " | ".join(heads) + " |")
    print("| --- | ---: " + "| ---: " * len(heads) + "|")
    for pool, who, n in found:
        if pool != name:
            continue
        every = np.array(found[pool, who, n])
        # beside V_0 with as many outcomes; what has all or none, beside V_0 with 50
        base = np.array(found[pool, "V_0", n if n in OUTCOMES else 50])
        cells = []
        for k in range(len(heads)):
            scale, digits = (1, 3) if k < 2 else (100, 1)
            mean, lead = scale * every[:, k].mean(), scale * (every - base)[:, k]
            if np.isnan(mean):
                cells.append("")
            elif who == "V_0" and n in OUTCOMES:
                cells.append(f"{mean:.{digits}f} ± {error(scale * every[:, k]):.{digits}f}")
            else:
                beside = f"{lead.mean():+.{digits}f} ± {error(lead):.{digits}f}"
                cells.append(f"{mean:.{digits}f} ({beside})")
        count = {-1: "all", 0: "none"}.get(n, str(n))
        print(f"| {who} | {count} | " + " | ".join(cells) + " |")


def error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def paint(found: Found, figure: Figure) -> None:
    every = figure.subplots(1, len(POOLS))
    for axes, name in zip(every, POOLS, strict=True):
        for who, (color, line) in LOOKS.items():
            loss = [np.array(found[name, who, n])[:, 0] for n in OUTCOMES]
            means, bars = [one.mean() for one in loss], [error(one) for one in loss]
            axes.errorbar(
                OUTCOMES,
                means,
                bars,
                color=color,
                linestyle=line,
                marker="o",
                markersize=3,
                label=who,
            )
        bottom = np.array(found[name, ALL, -1])[:, 0].mean()
        axes.axhline(bottom, color="#0072b2", linestyle="--", label="regression on all outcomes")
        axes.set_xscale("log")
        axes.set_xticks(OUTCOMES, [str(n) for n in OUTCOMES])
        axes.minorticks_off()
        axes.set_title(f"{name}: log loss")
        axes.set_xlabel("outcomes of the model that joins")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--splits", type=int, default=4)
    arguments.add_argument("--workers", type=int, default=1)
    given = arguments.parse_args()
    needed(*(given.traces / file for file in POOLS.values()))
    found: Found = defaultdict(list)
    jobs = [(given.traces / file, seed) for file in POOLS.values() for seed in range(given.splits)]
    names = [name for name in POOLS for _ in range(given.splits)]
    with ProcessPoolExecutor(given.workers) as workers:
        for name, split in zip(
            names, workers.map(one_split, *zip(*jobs, strict=True)), strict=True
        ):
            for (who, n), figures in split.items():
                found[name, who, n].append(figures.tolist())
    for name in POOLS:
        table(found, name)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        paint(found, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    main()
