"""What does a budget a question cost in coverage: decided under it, or cut off by it?

*Decided*: the policy sees what is left, and what it cannot pay for is no choice. *Cut*: it decides
as if there were no budget, and the question ends where its next purchase cannot be paid for. Both
are judged by the same bounds of calls, and calibrated under the budget on 200 questions.

    python benchmarks/experiments/question_budget.py [--redraw] [--traces FOLDER]

The recordings are read from ../shared/data/traces unless another folder is named.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import ALPHA, PER_THOUSAND, PRESET, Experiment, Row, draw, series, table
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import LAZY_LEARNER
from farthing.process.base import Budget, Policy
from farthing.process.batch_replay import followed
from farthing.process.budget import PerQuestion, calls_of
from farthing.process.play import PolicyOrder
from farthing.process.replay import outcome, paths
from farthing.promises.kinds.split import split_rank
from farthing.reports.style import TARGET
from farthing.traces.arrays import BoolArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.pool import cascade
from farthing_lab.generator.generate import generate

SOURCES = ("generator", "reasoning", "mmlu")
FILES = {"reasoning": "reasoning-llama2-13b-gpt4.jsonl.gz", "mmlu": "mmlu-nine-models.jsonl.gz"}
SHARES = (0.5, 1.0, 1.1, 1.5, 2.5)
"""Budgets, as multiples of the most that the dearest call can cost."""
SPLITS = 10
CALIBRATE = 200
PLACE = Path(sys.argv[sys.argv.index("--traces") + 1]) if "--traces" in sys.argv else FOLDER


def questions(source: str) -> TraceArrays:
    if source == "reasoning":
        return load(PLACE / FILES[source])
    if source == "mmlu":
        return cascade(load(PLACE / FILES[source]))
    made = generate(PRESET, 1_400, np.random.default_rng(7))
    return replace(made, independent=np.ones(len(made), dtype=bool))


def bounds(traces: TraceArrays) -> dict[str, int]:
    """Return the largest recorded cost of each role, or model: what a bundle would declare."""
    return {
        name: int(traces.cost_nano[:, rounds, place].max())
        for name, (rounds, place) in calls_of(traces).items()
    }


def cut(along: PolicyOrder, budget: Budget) -> BoolArray:
    """Return which purchases are paid for, [n, S], where the first that cannot be ends it."""
    cost = along.traces.cost_nano.sum(axis=2)
    left = budget.nano - (cost.cumsum(axis=1) - cost)
    rows = np.arange(len(cost))[:, None]
    largest = budget.largest_nano[rows, along.calls[:, :, 0]]
    allowed: BoolArray = np.logical_and.accumulate(along.bought & (largest <= left), axis=1)
    return allowed


def plays(
    policy: Policy, traces: TraceArrays, budget: Budget, way: str
) -> tuple[PolicyOrder, BoolArray]:
    if way == "decided":
        along = followed(policy, traces, budget)
        return along, along.bought
    along = followed(policy, traces)
    return along, cut(along, budget)


def measure(source: str, share: float, seed: int) -> list[Row]:
    traces = questions(source)
    rows = np.random.default_rng([seed, 11]).permutation(len(traces))
    train, calibrate, test = np.split(rows, [len(traces) - 2 * CALIBRATE, len(traces) - CALIBRATE])
    policy = LAZY_LEARNER.fit(traces.take(train), ALPHA, seed, Silent()).policy
    largest = bounds(traces)
    limit = PerQuestion(int(share * max(largest.values())), largest)
    found: list[Row] = []
    for way in ("decided", "cut"):
        results = []
        for part in (calibrate, test):
            some = traces.take(part)
            along, bought = plays(policy, some, limit.of(some), way)
            results.append((along, paths(along.scores, along.traces, "argmax", bought)))
        (_, held_out), (along, then) = results
        critical = np.sort(held_out.critical)
        kappa = float(critical[split_rank(len(critical), ALPHA) - 1])
        most = outcome(then, along.traces, 0.0)
        kept = np.isfinite(kappa) or kappa == np.inf
        acted = outcome(then, along.traces, kappa if kept else 0.0)
        found.append(
            {
                "source": source,
                "share": share,
                "seed": seed,
                "way": way,
                "reachable": float(most.covered.mean()),
                "promised": float(kept),
                "coverage": float(acted.covered.mean()),
                "cost": float(acted.cost_nano.mean()) / 1e9 * PER_THOUSAND,
            }
        )
    return found


def paint(rows: list[Row], figure: Figure) -> None:
    for axes, source in zip(figure.subplots(1, len(SOURCES)), SOURCES, strict=True):
        for way, color, marker in (("decided", "#1b5e3f", "o"), ("cut", "#d55e00", "s")):
            x, mean, error = series(rows, "share", "reachable", source=source, way=way)
            axes.errorbar(x, mean, error, label=way, color=color, marker=marker, capsize=2)
        axes.axhline(float(1 - ALPHA), color=TARGET, linestyle="--", linewidth=1)
        axes.set_xlabel("budget a question, in dearest calls")
        axes.set_ylabel("coverage within reach")
        axes.set_title(source)
        axes.legend()


def main() -> None:
    if "--redraw" not in sys.argv:
        needed(*(PLACE / file for file in FILES.values()))
    cases = [
        {"source": source, "share": share, "seed": seed}
        for source in SOURCES
        for share in SHARES
        for seed in range(SPLITS)
    ]
    rows = Experiment("question_budget", measure).rows(cases)
    for source in SOURCES:
        print(f"\n{source}")
        table(
            {
                f"{way}, {what}": series(rows, "share", what, source=source, way=way)
                for way in ("decided", "cut")
                for what in ("reachable", "promised", "coverage", "cost")
            },
            "budget",
        )
    draw("question_budget", lambda figure: paint(rows, figure))


if __name__ == "__main__":
    main()
