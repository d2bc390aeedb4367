"""Fit the generator's presets to the paper's published rows and print fitted beside published.

    python benchmarks/fit_presets.py [TABLES]

TABLES is a CSV of the paper's tables: dataset, base_model, alpha, policy, cost_cents, coverage,
avg_len.

Every figure of a candidate is computed exactly, from its enumerated histories, so the fit is
deterministic. Seven numbers a preset are fitted, with a weak pull towards the hand-set start; the
printed numbers go into `farthing/environments/presets.py`.
"""

import csv
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from recordings import FOLDER, needed
from scipy.optimize import least_squares, nnls
from scipy.special import expit, logit

from farthing_lab.generator.config import CallPrice, GeneratorConfig, Level, Uncertainty
from farthing_lab.generator.optimum import UNSEEN, enumerate_histories, optimal_cost
from farthing_lab.generator.presets import PRESETS

TABLES = FOLDER.parent / "paper_tables.csv"
QUESTIONS = 200
"""The tables give cents for this many test questions."""
PULL = 0.004
"""Strength of the pull towards the start, in coverage per unit of a parameter's logit."""
CCPO_WEIGHT = 0.05
"""What one round of difference at CCPO's coverage counts for, in coverage."""

HEADING = """
| preset | row | coverage, published | generator | cents, published | generator |
| --- | --- | --- | --- | --- | --- |"""
HEADING_OF_ROUNDS = """
| preset | coverage | rounds of CCPO, published | rounds of the optimum |
| --- | --- | --- | --- |"""

Row = Mapping[str, str]

HOTPOTQA = GeneratorConfig(
    levels=(
        Level(0.55, 0.35, 0.35, 0.92, 0.95, 0.05),
        Level(0.30, 0.15, 0.15, 0.70, 0.85, 0.15),
        Level(0.15, 0.05, 0.05, 0.40, 0.70, 0.30),
    ),
    base_call=CallPrice(60, 60, input_nano=100, output_nano=100, spread=20),
    guide_call=CallPrice(85, 1, input_nano=2_500, output_nano=10_000, spread=25),
    base_persistence=0.4,
    guide_persistence=0.5,
    uncertainty=Uncertainty(bins=3, noise=0.4),
)
MMLU = GeneratorConfig(
    levels=(
        Level(0.60, 0.30, 0.30, 0.96, 0.95, 0.05),
        Level(0.25, 0.25, 0.25, 0.75, 0.85, 0.15),
        Level(0.15, 0.15, 0.15, 0.40, 0.70, 0.30),
    ),
    base_call=CallPrice(90, 90, input_nano=100, output_nano=100, spread=30),
    guide_call=CallPrice(140, 1, input_nano=2_500, output_nano=10_000, spread=40),
    wrong_answers=3,
    base_persistence=0.4,
    guide_persistence=0.5,
    uncertainty=Uncertainty(bins=3, noise=0.4),
)
STARTS = {
    "hotpotqa-llama2-7b": (HOTPOTQA, "llama-2-7b"),
    "hotpotqa-llama3.2-3b": (HOTPOTQA, "llama-3.2-3b"),
    "mmlu-llama2-7b": (MMLU, "llama-2-7b"),
    "mmlu-llama3.2-3b": (MMLU, "llama-3.2-3b"),
}


@dataclass(frozen=True)
class Figure:
    """One published figure, and what of the generator it is held against."""

    name: str
    published: float
    weight: float = 1.0


@dataclass(frozen=True)
class Fit:
    """A preset, fitted."""

    name: str
    config: GeneratorConfig
    figures: list[Figure]
    rows: list[Row]


def main(tables: Path) -> None:
    needed(tables)
    with tables.open(newline="") as file:
        rows = list(csv.DictReader(file))
    fits = [fit(name, rows) for name in STARTS]
    print(HEADING)
    for done in fits:
        report(done)
    print(HEADING_OF_ROUNDS)
    for done in fits:
        report_rounds(done)
    for done in fits:
        if done.config != PRESETS[done.name].config:
            print(f"\n{done.name} differs from its preset; the fit is\n{done.config}")


def fit(name: str, rows: list[Row]) -> Fit:
    start, base_model = STARTS[name]
    dataset = name.split("-", maxsplit=1)[0]
    mine = [r for r in rows if r["dataset"] == dataset and r["base_model"] == base_model]
    figures = published(mine)
    return Fit(name, fit_costs(fit_answers(start, figures), mine), figures, mine)


def published(rows: list[Row]) -> list[Figure]:
    """Pick out of the tables what is fitted."""
    found = {}
    cpo = [r for r in rows if r["policy"] == "cpo" and float(r["avg_len"]) <= 1.02]
    found["CPO, round 1"] = Figure("CPO, round 1", np.mean([float(r["coverage"]) for r in cpo]))
    for row in rows:
        covered, length = float(row["coverage"]), float(row["avg_len"])
        if row["policy"] == "random":
            found["Random"] = Figure("Random", covered)
        elif row["policy"] == "uala":
            label = f"UALA, length {length:.0f}"
            found[label] = Figure(label, covered)
        elif row["policy"] == "ccpo-lambda-0" and row["alpha"] != "0.2":
            label = f"rounds at {row['coverage']} (CCPO)"
            found[label] = Figure(label, length, CCPO_WEIGHT)
    return list(found.values())


def figure_of(config: GeneratorConfig) -> dict[str, float]:
    """Return the exact coverage of the simple policies."""
    right, base, guide = _last_round(replace(config, uncertainty=Uncertainty(bins=1)))
    unsolvable = right[:, UNSEEN].sum()
    chance = (1 / 3) ** np.arange(4) * np.array([1 / 3, 1 / 3, 1 / 3, 1 / 2])
    random = chance @ [
        _covers(right, base[t : t + 1]) + _covers(right, guide[t : t + 1]) for t in range(4)
    ]
    uala = {f"UALA, length {k}": _covers(right, guide[:k]) + unsolvable for k in (1, 2, 3)}
    best = _best_in_round_1(config) + unsolvable
    return {"Random": random + unsolvable, "CPO, round 1": best, **uala}


def _last_round(config: GeneratorConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return [H, 1 + labels] which answer is right, and [T, H] the labels of base and guide."""
    levels = enumerate_histories(config, config.rounds)
    index = np.arange(len(levels[-1]))
    base, guide = [], []
    for level in levels[::-1]:
        base.append(level.base[index])
        guide.append(level.guide[index])
        index = level.parent[index]
    return levels[-1].weight.sum(axis=1), np.array(base[::-1]), np.array(guide[::-1])


def _covers(right: np.ndarray, labels: np.ndarray) -> float:
    """Return P(the right answer is among these labels), [K, H] for each history."""
    member = (np.arange(right.shape[1] - 1)[:, None, None] == labels).any(axis=1)
    return float((right[:, 1:] * member.T).sum())


def _best_in_round_1(config: GeneratorConfig) -> float:
    """Return P(right) of the likelier answer, given verdict and uncertainty of round 1."""
    first = enumerate_histories(config, 1)[0]
    return float(first.weight[:, :, 1:].sum(axis=1).max(axis=1).sum())


def optimal_rounds(config: GeneratorConfig, coverage: float) -> float:
    flat = replace(config, guide_call=replace(config.guide_call, growth=0))
    return optimal_cost(flat, coverage) * 1e9 / flat.round_cost_nano[0]


def all_figures(config: GeneratorConfig, figures: list[Figure]) -> np.ndarray:
    known = figure_of(config)
    return np.array(
        [
            optimal_rounds(config, float(f.name.split()[2])) if "CCPO" in f.name else known[f.name]
            for f in figures
        ]
    )


def fit_answers(start: GeneratorConfig, figures: list[Figure]) -> GeneratorConfig:
    target = np.array([f.published for f in figures])
    weight = np.array([f.weight for f in figures])

    def residuals(moves: np.ndarray) -> np.ndarray:
        misfit = (all_figures(moved(start, moves), figures) - target) * weight
        return np.concatenate([misfit, PULL * moves])

    solution = least_squares(residuals, np.zeros(7), bounds=(-2.5, 2.5))
    return rounded(moved(start, solution.x))


def moved(start: GeneratorConfig, moves: np.ndarray) -> GeneratorConfig:
    """Shift the start's probabilities by these logits, and the hardest level's log weight."""
    base, guide, yes_if_wrong, hard, base_keeps, guide_keeps, noise = moves
    weights = np.array([level.weight for level in start.levels]) * [1, 1, np.exp(hard)]
    weights = weights / weights.sum()

    def by(value: float, move: float) -> float:
        return float(expit(logit(value) + move))

    levels = tuple(
        Level(
            weight=float(share),
            base_first=by(level.base_first, base),
            base_later=by(level.base_later, base),
            guide=by(level.guide, guide),
            yes_if_right=level.yes_if_right,
            yes_if_wrong=by(level.yes_if_wrong, yes_if_wrong),
        )
        for level, share in zip(start.levels, weights, strict=True)
    )
    return replace(
        start,
        levels=levels,
        base_persistence=by(start.base_persistence, base_keeps),
        guide_persistence=by(start.guide_persistence, guide_keeps),
        uncertainty=replace(start.uncertainty, noise=by(start.uncertainty.noise, noise)),
    )


def rounded(config: GeneratorConfig) -> GeneratorConfig:
    """Keep three digits of every number, as they are written down."""

    def short(record: Any) -> Any:
        numbers = {f.name: getattr(record, f.name) for f in fields(record)}
        return replace(
            record, **{k: round(v, 3) for k, v in numbers.items() if isinstance(v, float)}
        )

    levels = tuple(short(level) for level in config.levels)
    return replace(short(config), levels=levels, uncertainty=short(config.uncertainty))


def fit_costs(config: GeneratorConfig, rows: list[Row]) -> GeneratorConfig:
    """Fit first round and growth to cost against length, by relative least squares."""
    fit = [r for r in rows if is_priced(r)]
    length = np.array([float(r["avg_len"]) for r in fit])
    cents = np.array([float(r["cost_cents"]) for r in fit])
    later = np.array([np.interp(x, [1, 2, 3, 4], [0, 1, 3, 6]) for x in length])
    (first, growth), _ = nnls(np.stack([length, later], axis=1) / cents[:, None], np.ones(len(fit)))
    call, nano = config.guide_call, 1e7 / QUESTIONS
    guide_nano = first * nano - config.base_call.mean_nano(1)[0] - call.output_nano
    return replace(
        config,
        guide_call=replace(
            call,
            input_tokens=round(guide_nano / call.input_nano),
            growth=round(growth * nano / call.input_nano),
        ),
    )


def is_priced(row: Row) -> bool:
    """Leave out who pays for other calls, and `Random 1.411`, which has lost a digit."""
    dropped_digit = row["policy"] == "random" and float(row["cost_cents"]) < 2
    return not (dropped_digit or "exit" in row["policy"] or "llm" in row["policy"])


def report(fit: Fit) -> None:
    """Print the rows of the first table in `docs/research/generator.md`."""
    known, cents = figure_of(fit.config), cents_of(fit.config)
    for figure in fit.figures:
        if figure.name in known:
            paid = np.mean([float(r["cost_cents"]) for r in rows_of(figure, fit.rows)])
            told = f"{figure.published:.3f} | {known[figure.name]:.3f}"
            print(
                f"| {fit.name} | {figure.name} | {told} | {paid:.2f} | {cents[figure.name]:.2f} |"
            )


def report_rounds(fit: Fit) -> None:
    """Print the rows of the second table."""
    for figure in fit.figures:
        if "CCPO" in figure.name:
            coverage = figure.name.split()[2]
            least = optimal_rounds(fit.config, float(coverage))
            print(f"| {fit.name} | {coverage} | {figure.published:.2f} | {least:.2f} |")


def rows_of(figure: Figure, rows: list[Row]) -> list[Row]:
    """Return the published rows that a figure stands for."""
    policy, _, length = figure.name.lower().partition(", ")
    mine = [r for r in rows if r["policy"] == policy]
    if policy == "cpo":
        return [r for r in mine if float(r["avg_len"]) <= 1.02]
    return [r for r in mine if not length or float(r["avg_len"]) == float(length.split()[1])]


def cents_of(config: GeneratorConfig) -> dict[str, float]:
    """Return what the simple policies cost in cents for all test questions."""
    cents = config.round_cost_nano * QUESTIONS / 1e7
    depths = {f"UALA, length {k}": float(cents[:k].sum()) for k in (1, 2, 3)}
    reached = (1 / 3) ** np.arange(config.rounds)
    return {"Random": float(reached @ cents), "CPO, round 1": float(cents[0]), **depths}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TABLES)
