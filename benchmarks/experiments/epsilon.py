"""How much does the width of the soft mask, epsilon, matter?

python benchmarks/experiments/epsilon.py [--redraw]
"""

from dataclasses import replace

import numpy as np
from common import (
    ALPHA,
    PRESET,
    SEEDS,
    UPDATES,
    Experiment,
    Row,
    calibrated,
    coverage_at,
    draw,
    fresh_questions,
    series,
    table,
    train,
)
from matplotlib.figure import Figure

from farthing.process.batch_replay import replay
from farthing.reports.style import TARGET, looks
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.methods.ccpo.learner import PUBLISHED, CcpoConfig

WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1)
METHODS = {"ccpo": CcpoConfig(), "ccpo-published": PUBLISHED}
LABELS = {"ccpo": "CCPO", "ccpo-published": "as published"}
BLOCK = 50
"""Updates that a point of a training curve averages."""


def measure(policy: str, epsilon: float, seed: int) -> list[Row]:
    settings = replace(METHODS[policy], epsilon=epsilon, updates=UPDATES)
    fitted = train(PRESET, settings, seed)
    fresh = fresh_questions(PRESET)
    empty = "argmax" if policy == "ccpo" else "allow"
    found = at_coverage(fitted.policy, fresh, float(1 - ALPHA), empty)
    critical = replay(fitted.policy, fresh, empty).followed.critical
    trained = replay(fitted.policy, fresh, "allow").followed.critical
    split = coverage_at(critical, calibrated(critical, np.random.default_rng(seed)))
    return [
        {
            "policy": policy,
            "epsilon": epsilon,
            "seed": seed,
            "ratio": found["cost_usd"] / optimal_cost(PRESET, float(1 - ALPHA)),
            "coverage": found["coverage"],
            "split_coverage": float(split.mean()),
            "training_coverage": float(coverage_at(trained, fitted.kappa or 0.0)),
            "training_kappa": fitted.kappa,
            "curve_coverage": fitted.curves["coverage"].reshape(-1, BLOCK).mean(axis=1),
            "curve_cost": fitted.curves["cost"].reshape(-1, BLOCK).mean(axis=1),
        }
    ]


def paint(rows: list[Row], figure: Figure) -> None:
    colours = looks(METHODS)
    cost, coverage, curves = figure.subplots(1, 3)
    for policy, (colour, marker) in ((p, colours[p]) for p in METHODS):
        look = {"color": colour, "marker": marker, "capsize": 3, "markersize": 5}
        x, y, error = series(rows, "epsilon", "ratio", policy=policy)
        cost.errorbar(x, y, error, label=LABELS[policy], **look)
        for name, line, what in (
            ("split_coverage", "-", "split conformal, 200 questions"),
            ("training_coverage", ":", "κ left by training"),
        ):
            x, y, error = series(rows, "epsilon", name, policy=policy)
            coverage.errorbar(
                x, y, error, label=f"{LABELS[policy]}: {what}", linestyle=line, **look
            )
    cost.set(title="Cost at coverage 0.9 (optimum: 1)", xscale="log", xlabel="epsilon")
    cost.axhline(1, color=TARGET, linewidth=1.0)
    cost.set_ylim(bottom=0.95)
    cost.legend()
    coverage.axhline(0.9, color=TARGET, linewidth=1.0)
    coverage.set(title="Realised coverage", xscale="log", xlabel="epsilon")
    coverage.legend(fontsize=7.5)
    for epsilon, colour in zip((0.001, 0.01, 0.1), ("#e69f00", "#0072b2", "#4b5563"), strict=True):
        mine = [r["curve_cost"] for r in rows if r["policy"] == "ccpo" and r["epsilon"] == epsilon]
        mean = np.mean(mine, axis=0)
        curves.plot(BLOCK * (1 + np.arange(len(mean))), mean, color=colour, label=f"ε = {epsilon}")
    curves.set(title="CCPO in training: cost in rounds", xlabel="update")
    curves.legend()


def main() -> None:
    cases = [
        {"policy": policy, "epsilon": epsilon, "seed": seed}
        for policy in METHODS
        for epsilon in WIDTHS
        for seed in SEEDS
    ]
    rows = Experiment("epsilon", measure).rows(cases)
    for policy in METHODS:
        print(f"\n{LABELS[policy]}")
        columns = ("ratio", "coverage", "split_coverage", "training_coverage", "training_kappa")
        table({y: series(rows, "epsilon", y, policy=policy) for y in columns}, "epsilon")
    draw("epsilon", lambda figure: paint(rows, figure))


if __name__ == "__main__":
    main()
