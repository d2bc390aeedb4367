"""What does a guide cost that is only 85, 70 or 50 % as good, noticed or unnoticed?

python benchmarks/experiments/degraded_guide.py [--redraw]
"""

import numpy as np
from common import (
    ALPHA,
    PER_THOUSAND,
    PRESET,
    SEEDS,
    UPDATES,
    Experiment,
    Row,
    coverage_at,
    draw,
    fresh_questions,
    series,
    table,
    train,
)
from matplotlib.figure import Figure

from farthing.process.batch_replay import replay
from farthing.recommendation.metrics import metrics
from farthing.reports.style import INK, TARGET, looks
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.generator.config import degrade_guide
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.methods.ccpo.learner import CcpoConfig

QUALITIES = (1.0, 0.85, 0.7, 0.5)


def measure(seed: int) -> list[Row]:
    """Train on the good guide once, and again on each worse one."""
    old = train(PRESET, CcpoConfig(updates=UPDATES), seed).policy
    coverage = float(1 - ALPHA)
    before = np.sort(replay(old, fresh_questions(PRESET), "argmax").followed.critical)
    kappa = float(before[int(ALPHA * len(before))])
    rows: list[Row] = []
    for quality in QUALITIES:
        worse = degrade_guide(PRESET, quality)
        fresh = fresh_questions(worse)
        again = train(worse, CcpoConfig(updates=UPDATES), seed).policy if quality < 1 else old
        unnoticed = replay(old, fresh, "argmax")
        found = metrics(unnoticed.act(kappa))
        rows.append(
            {
                "quality": quality,
                "seed": seed,
                "unnoticed": found["cost_usd"] * PER_THOUSAND,
                "unnoticed_coverage": float(coverage_at(unnoticed.followed.critical, kappa)),
                "unnoticed_solvable": found["coverage_solvable"],
                "recalibrated": at_coverage(old, fresh, coverage)["cost_usd"] * PER_THOUSAND,
                "retrained": at_coverage(again, fresh, coverage)["cost_usd"] * PER_THOUSAND,
                "optimum": optimal_cost(worse, coverage) * PER_THOUSAND,
                "solvable": found["solvable"],
            }
        )
    return rows


def paint(rows: list[Row], figure: Figure) -> None:
    colours = looks(["ccpo", "ccpo-lambda"])
    cost, coverage = figure.subplots(1, 2)
    for name, label, colour, marker in (
        ("unnoticed", "nothing changed (misses the target)", TARGET, "x"),
        ("recalibrated", "CCPO of the good guide, recalibrated", *colours["ccpo-lambda"]),
        ("retrained", "CCPO retrained and recalibrated", *colours["ccpo"]),
        ("optimum", "known optimum", INK, "_"),
    ):
        x, y, error = series(rows, "quality", name)
        cost.errorbar(
            100 * np.array(x), y, error, label=label, color=colour, marker=marker, capsize=3
        )
    cost.set(title="Cost, $ per 1,000 (at coverage 0.9 unless said)")
    cost.set_ylim(bottom=0)
    for name, label, colour, marker in (
        ("unnoticed_coverage", "coverage, nothing changed", TARGET, "x"),
        ("unnoticed_solvable", "the same, of solvable questions", TARGET, "v"),
        ("solvable", "solvable questions", "#7d8590", "D"),
    ):
        x, y, error = series(rows, "quality", name)
        line = "-" if name == "unnoticed_coverage" else "--"
        coverage.errorbar(
            100 * np.array(x), y, error, label=label, color=colour, marker=marker, linestyle=line
        )
    coverage.axhline(0.9, color=INK, linewidth=1.0)
    coverage.set(title="Share of questions (line: promised coverage)")
    for axes in (cost, coverage):
        axes.set_xlabel("guide's quality, %")
        axes.invert_xaxis()
        axes.legend(fontsize=8)


def main() -> None:
    rows = Experiment("degraded_guide", measure).rows([{"seed": seed} for seed in SEEDS])
    names = [name for name in rows[0] if name not in {"quality", "seed"}]
    table({y: series(rows, "quality", y) for y in names}, "quality")
    draw("degraded_guide", lambda figure: paint(rows, figure), height=3.4)


if __name__ == "__main__":
    main()
