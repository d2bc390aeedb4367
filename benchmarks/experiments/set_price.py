"""What does lambda, the price of an answer in the set, buy, up to 5e-4 USD?

python benchmarks/experiments/set_price.py [--redraw]
"""

from dataclasses import replace

import numpy as np
from common import (
    ALPHA,
    PER_THOUSAND,
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

from farthing.money import usd_from_nano
from farthing.process.batch_replay import replay
from farthing.reports.style import TARGET, looks
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.methods.ccpo.learner import PUBLISHED, CcpoConfig

PRICES_USD = (0.0, 1e-4, 2e-4, 5e-4)
METHODS = {"ccpo": CcpoConfig(), "ccpo-published": PUBLISHED}
LABELS = {"ccpo": "CCPO", "ccpo-published": "as published"}


def measure(policy: str, price_usd: float, seed: int) -> list[Row]:
    rounds = price_usd / usd_from_nano(float(PRESET.round_cost_nano.mean()))
    settings = replace(METHODS[policy], set_size_price=rounds, updates=UPDATES)
    fitted = train(PRESET, settings, seed)
    fresh = fresh_questions(PRESET)
    empty = "argmax" if policy == "ccpo" else "allow"
    found = at_coverage(fitted.policy, fresh, float(1 - ALPHA), empty)
    critical = replay(fitted.policy, fresh, empty).followed.critical
    split = coverage_at(critical, calibrated(critical, np.random.default_rng(seed)))
    kept = ("coverage", "coverage_solvable", "avg_len", "set_size", "set_size_leaves", "empty")
    return [
        {
            "policy": policy,
            "price_usd": price_usd,
            "price_rounds": rounds,
            "seed": seed,
            "cost": found["cost_usd"] * PER_THOUSAND,
            "split_coverage": float(split.mean()),
            **{name: found[name] for name in kept},
        }
    ]


def paint(rows: list[Row], figure: Figure) -> None:
    colours = looks(METHODS)
    panels = figure.subplots(1, 3)
    titles = {
        "cost": "Cost at coverage 0.9, $ per 1,000",
        "set_size": "Distinct answers in the set",
        "split_coverage": "Coverage, split conformal",
    }
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        for policy, (colour, marker) in ((p, colours[p]) for p in METHODS):
            x, y, error = series(rows, "price_rounds", name, policy=policy)
            axes.errorbar(x, y, error, color=colour, marker=marker, capsize=3, label=LABELS[policy])
        axes.set(title=title, xlabel="λ, rounds per answer")
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(bottom=0)
    panels[2].set_ylim(0.85, 0.95)
    panels[2].axhline(0.9, color=TARGET, linewidth=1.0)
    panels[1].legend()


def main() -> None:
    cases = [
        {"policy": policy, "price_usd": price, "seed": seed}
        for policy in METHODS
        for price in PRICES_USD
        for seed in SEEDS
    ]
    rows = Experiment("set_price", measure).rows(cases)
    columns = (
        "cost",
        "avg_len",
        "set_size",
        "set_size_leaves",
        "empty",
        "coverage",
        "split_coverage",
    )
    for policy in METHODS:
        print(f"\n{LABELS[policy]}")
        table({y: series(rows, "price_rounds", y, policy=policy) for y in columns}, "λ, rounds")
    draw("set_price", lambda figure: paint(rows, figure))


if __name__ == "__main__":
    main()
