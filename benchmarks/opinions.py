"""Opinions until one more is worth less than it costs: right answers for the money, beside others.

    .venv/bin/python benchmarks/opinions.py [--traces FOLDER] [--splits 8] [--workers 1]

Half of the recorded questions train and half test, drawn anew for each split. Every method's
operating points give a curve of right answers by cost on the test questions (look-ahead: the
thresholds of its cascade, cheapest agent first, with its best answer); it is read off, between
points, at the same sums of money for all: shares of what the dearest agent costs. Errors are
standard errors over splits, of differences to Bayesian orchestration on the same split.
"""

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed
from threadpoolctl import threadpool_limits

from farthing.methods.base import Silent, load
from farthing.methods.cards import card
from farthing.methods.pool import PoolPolicy
from farthing.process.batch_replay import replay
from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import load as read
from farthing.traces.pool import cascade, cheapest_first, in_order
from farthing_lab.methods.bayesian_judges import OpinionsLearner, OpinionsPolicy

FILES = {
    "HotpotQA, seven agents": "hotpotqa-seven-agents.jsonl.gz",
    "MMLU, nine models": "mmlu-nine-models.jsonl.gz",
}
OURS = "bayesian-orchestration"
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
"""Of the dearest agent's mean price."""
LOOKS = {
    OURS: ("#009e73", "-"),
    "lazy-single": ("#c51b7d", "-"),
    "lookahead": ("#1b5e3f", "--"),
    "pool-gain": ("#0072b2", "-"),
    "agreement-cascade": ("#e69f00", "-"),
    "best-single": ("#8c6d46", ":"),
    "always-all": ("#7d8590", ":"),
}
IMAGE = Path(__file__).parents[1] / "docs/images/opinions.svg"
ALPHA = Fraction(1, 10)
Found = dict[tuple[str, str], list[list[float]]]
"""(pool, who) to right answers at each share, a row a split."""


def curve(
    name: str, train: TraceArrays, test: TraceArrays, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean dollars and right answers at each operating point."""
    learner = load(card(name).learner)
    if name == "lookahead":
        train, test = cascade(train), cascade(test, range(test.n_roles))
    policy = learner.fit(train, ALPHA, seed, Silent()).policy
    if isinstance(policy, PoolPolicy):
        points = policy.points(test)
        return points.cost_nano.mean(axis=0) / 1e9, points.correct.mean(axis=0)
    along = replay(policy, test, "argmax")
    done = [along.act(kappa) for kappa in np.linspace(0, 1, 101)]
    return (
        np.array([one.cost_nano.mean() for one in done]) / 1e9,
        np.array([one.best_correct.mean() for one in done]),
    )


def read_off(cost: FloatArray, right: FloatArray, at: FloatArray) -> list[float]:
    """Return right answers at some sums, along the points that a user would choose in hindsight.

    NaN below the cheapest point; above the dearest one its own.
    """
    order = np.lexsort((right, cost))
    found = np.interp(at, cost[order], right[order])
    return np.where(at < cost.min() * (1 - 1e-9), np.nan, found).tolist()


def one_split(title: str, folder: Path, seed: int) -> Found:
    found: Found = {}
    traces = read(folder / FILES[title])
    traces = traces.take(traces.complete)
    rows = np.random.default_rng([seed, 5]).permutation(len(traces))
    half = len(rows) // 2
    train, test = traces.take(rows[:half]), traces.take(rows[half:])
    order = cheapest_first([train])
    train, test = in_order(train, order), in_order(test, order)
    dearest = test.cost_nano.mean(axis=(0, 1)).max() / 1e9
    with threadpool_limits(limits=1):
        curves = {name: curve(name, train, test, seed) for name in LOOKS}
    for name, (cost, right) in curves.items():
        found[title, name] = [read_off(cost, right, dearest * np.array(SHARES))]
    cost, right = curves["always-all"]
    ours = read_off(*curves[OURS], cost[:1])
    found[title, "at the cost of all"] = [[cost[0] / dearest, right[0], *ours]]
    return found


def calibrated(traces: TraceArrays, splits: int) -> str:
    """Return what leaders of all replies were given, and how often they were right, by fifths."""
    given, came = [], []
    for seed in range(splits):
        rows = np.random.default_rng([seed, 5]).permutation(len(traces))
        train, test = traces.take(rows[: len(rows) // 2]), traces.take(rows[len(rows) // 2 :])
        policy = OpinionsLearner().fit(train, ALPHA, seed, Silent()).policy
        assert isinstance(policy, OpinionsPolicy)
        said = policy.judges.said(test)
        belief = policy.judges.belief(said, np.ones(said.answer.shape, dtype=bool))
        at = np.arange(len(test)), np.maximum(belief.leader, 0)
        given.append(belief.chance[at])
        came.append(test.correct[:, 0][at])
    p, won = np.concatenate(given), np.concatenate(came)
    cuts = np.quantile(p, np.linspace(0, 1, 6))
    fifth = np.clip(np.searchsorted(cuts, p, side="right") - 1, 0, 4)
    return ", ".join(f"{p[fifth == k].mean():.2f}: {won[fifth == k].mean():.2f}" for k in range(5))


def table(found: Found, title: str) -> None:
    print(f"\n| {title} | " + " | ".join(f"{share:g}" for share in SHARES) + " |")
    print("| --- " + "| ---: " * len(SHARES) + "|")
    base = 100 * np.array(found[title, OURS])
    for name in LOOKS:
        if name == "always-all":
            continue
        every = 100 * np.array(found[title, name])
        cells = []
        for k in range(len(SHARES)):
            if np.isnan(every[:, k]).any():
                cells.append("too dear")
                continue
            lead = (every - base)[:, k]
            own = f"{every[:, k].mean():.1f}"
            mine = f" ± {error(every[:, k]):.1f}" if name == OURS else ""
            beside = "" if name == OURS else f", {lead.mean():+.1f} ± {error(lead):.1f}"
            cells.append(own + mine + beside)
        print(f"| {name} | " + " | ".join(cells) + " |")
    share, vote, ours = np.array(found[title, "at the cost of all"]).T
    print(
        f"always-all costs {share.mean():.2f} of the dearest: a vote is right in "
        f"{100 * vote.mean():.1f}; at that money {OURS} in {100 * ours.mean():.1f}, "
        f"{100 * (vote - ours).mean():+.1f} ± {100 * error(vote - ours):.1f}",
        flush=True,
    )


def error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def paint(found: Found, figure: Figure) -> None:
    every = figure.subplots(1, len(FILES))
    for axes, title in zip(every, FILES, strict=True):
        for name, (color, line) in LOOKS.items():
            right = 100 * np.array(found[title, name])
            kept = ~np.isnan(right).any(axis=0)
            if name == "always-all":
                share, vote, *_ = np.mean(found[title, "at the cost of all"], axis=0)
                axes.plot([share], [100 * vote], color=color, marker="s", linestyle="", label=name)
                continue
            axes.plot(
                np.array(SHARES)[kept],
                right[:, kept].mean(axis=0),
                color=color,
                linestyle=line,
                marker="o",
                markersize=3,
                label=name,
            )
        axes.set_xscale("log")
        axes.set_title(f"{title}: right, %")
        axes.set_xlabel("cost, in the dearest one's price")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--splits", type=int, default=8)
    arguments.add_argument("--workers", type=int, default=1)
    given = arguments.parse_args()
    needed(*(given.traces / file for file in FILES.values()))
    found: Found = defaultdict(list)
    jobs = [(title, given.traces, seed) for title in FILES for seed in range(given.splits)]
    with ProcessPoolExecutor(given.workers) as workers:
        for part in workers.map(one_split, *zip(*jobs, strict=True)):
            for key, rows in part.items():
                found[key] += rows
    for title, file in FILES.items():
        table(found, title)
        print("given, and came:", calibrated(read(given.traces / file), given.splits), flush=True)
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        paint(found, figure)
        figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    main()
