"""What is left of the promise when the questions get harder, and what repairs it?

Calibrated on the preset's mix of difficulties, used on a mix that moves towards the hard ones.

python benchmarks/experiments/shifted_mix.py [--redraw]
"""

import numpy as np
from common import (
    ALPHA,
    CALIBRATE,
    DRAWS,
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

from farthing.money import usd_from_nano
from farthing.process.batch_replay import NestedReplay, replay
from farthing.promises.kinds.groups import group_thresholds
from farthing.promises.kinds.split import split_threshold
from farthing.reports.style import INK, TARGET
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.generator.config import shift_mix
from farthing_lab.methods.ccpo.learner import CcpoConfig
from farthing_lab.promises.online import OnlineThreshold, run_online

HARD = np.array([0.1, 0.3, 0.6])
"""The mix at the end of the shift; the preset's is 0.56, 0.305, 0.135."""
SHIFTS = (0.0, 0.25, 0.5, 0.75, 1.0)
BATCH, BEFORE, AFTER, STREAMS = 10, 200, 800, 50
WINDOW = 20
LEVELS = ("easy", "middling", "hard")
DECAYS = {"online, steps shrink": 0.1, "online, steps stay": -0.5}
CHANGES = (("frozen", TARGET, "x"), ("recalibrated", "#0072b2", "o"), ("groups", "#009e73", "D"))


def measure(seed: int) -> list[Row]:
    policy = train(PRESET, CcpoConfig(updates=UPDATES), seed).policy
    only = [tuple(float(i == j) for i in range(3)) for j in range(3)]
    levels = [replay(policy, fresh_questions(shift_mix(PRESET, w)), "argmax") for w in only]
    rng = np.random.default_rng([seed, 3])
    rows = [row | {"seed": seed} for shift in SHIFTS for row in _at(levels, shift, rng)]
    return rows + [row | {"seed": seed} for row in _streams(levels, rng)]


def _mix(shift: float) -> FloatArray:
    mix: FloatArray = (1 - shift) * PRESET.mix + shift * HARD
    return mix


def _draw(
    levels: list[NestedReplay], mix: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Return kappa* and the level of `n` questions, [2, n]."""
    level = rng.choice(len(mix), size=n, p=mix)
    index = rng.integers(len(levels[0].traces), size=n)
    pool = np.stack([part.followed.critical for part in levels])
    return np.stack([pool[level, index], level])


def _at(
    levels: list[NestedReplay], shift: float, rng: np.random.Generator
) -> list[dict[str, float]]:
    """Average coverage and cost over calibration sets, for each way to calibrate."""
    found: dict[str, list[FloatArray]] = {name: [] for name, _, _ in CHANGES}
    for _ in range(DRAWS):
        old, group = _draw(levels, _mix(0.0), CALIBRATE, rng)
        new, _ = _draw(levels, _mix(shift), CALIBRATE, rng)
        parts = group_thresholds(old, group.astype(np.int64), LEVELS, ALPHA)
        found["frozen"].append(np.full(3, split_threshold(old, ALPHA).kappa))
        found["recalibrated"].append(np.full(3, split_threshold(new, ALPHA).kappa))
        found["groups"].append(np.array([parts[name].kappa for name in LEVELS]))
    return [
        {"change": name, "shift": shift, **_outcome(levels, np.stack(kappas), _mix(shift))}
        for name, kappas in found.items()
    ]


def _outcome(levels: list[NestedReplay], kappas: FloatArray, mix: FloatArray) -> dict[str, float]:
    """Weigh what each level covers and costs at its thresholds, [DRAWS, levels]."""
    covered = [coverage_at(r.followed.critical, k) for r, k in zip(levels, kappas.T, strict=True)]
    cost = [_cost_at(r, k) for r, k in zip(levels, kappas.T, strict=True)]
    hard = float(covered[2].mean())
    return {
        "coverage": float(mix @ np.mean(covered, axis=1)),
        "cost": float(mix @ np.mean(cost, axis=1)) * PER_THOUSAND,
        "hard_coverage": hard,
    }


def _cost_at(replayed: NestedReplay, kappa: FloatArray) -> FloatArray:
    """Return the mean cost of a question in USD at each threshold."""
    reach = replayed.followed.reach.reshape(-1)
    order = np.argsort(-reach)
    spent: IntArray = replayed.traces.round_cost_nano.reshape(-1)[order].cumsum()
    run = np.searchsorted(-reach[order], -np.minimum(kappa, 1.0), side="right")
    mean = spent[run - 1] / len(replayed.traces)
    return np.array([usd_from_nano(float(nano)) for nano in mean])


def _streams(levels: list[NestedReplay], rng: np.random.Generator) -> list[dict[str, object]]:
    """Follow thresholds along streams whose mix shifts, all of it, after `BEFORE` batches."""
    misses: dict[str, list[FloatArray]] = {name: [] for name in ("frozen", *DECAYS)}
    for _ in range(STREAMS):
        first = split_threshold(_draw(levels, _mix(0.0), CALIBRATE, rng)[0], ALPHA).kappa
        stream = np.concatenate(
            [
                _draw(levels, _mix(0.0), BEFORE * BATCH, rng)[0],
                _draw(levels, _mix(1.0), AFTER * BATCH, rng)[0],
            ]
        )
        for name, found in misses.items():
            kappas = np.full(BEFORE + AFTER, min(first, 1.0))
            if name in DECAYS:
                start = OnlineThreshold(kappa=min(first, 1.0), decay=DECAYS[name])
                kappas = run_online(stream, ALPHA, BATCH, start)[:-1]
            missed = np.minimum(stream.reshape(-1, BATCH), 1.0) < kappas[:, None]
            found.append(missed.mean(axis=1).reshape(-1, WINDOW).mean(axis=1))
    return [
        {"change": name, "stream": 1 - np.mean(found, axis=0)} for name, found in misses.items()
    ]


def paint(rows: list[Row], figure: Figure) -> None:
    coverage, cost, stream = figure.subplots(1, 3)
    fixed = [row for row in rows if "shift" in row]
    for name, colour, marker in CHANGES:
        for axes, y in ((coverage, "coverage"), (cost, "cost")):
            points, mean, error = series(fixed, "shift", y, change=name)
            axes.errorbar(
                points, mean, error, color=colour, marker=marker, capsize=3, label=LABELS[name]
            )
    coverage.set(title="Coverage", xlabel="shift towards hard questions")
    cost.set(title="Cost, $ per 1,000", xlabel="shift towards hard questions")
    cost.set_ylim(bottom=0)
    cost.legend(fontsize=8)
    batches = WINDOW * (np.arange((BEFORE + AFTER) // WINDOW) + 0.5) - BEFORE
    for name, colour in (("frozen", TARGET), *zip(DECAYS, ("#e69f00", "#6a4c93"), strict=True)):
        mean = _stream(rows, name)
        stream.plot(batches, mean, color=colour, label=name)
    stream.axvline(0, color=INK, linewidth=0.8, linestyle=":")
    stream.set(title="Coverage along a stream", xlabel="batches of 10 since the shift")
    stream.legend(fontsize=8)
    for axes in (coverage, stream):
        axes.axhline(0.9, color=INK, linewidth=1.0)


def _stream(rows: list[Row], name: str) -> FloatArray:
    """Return the coverage of each window of batches, averaged over streams and seeds."""
    found = [row["stream"] for row in rows if "stream" in row and row["change"] == name]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


LABELS = {
    "frozen": "threshold of the old mix",
    "recalibrated": "recalibrated on 200 new",
    "groups": "a threshold a level (200 old)",
}


def main() -> None:
    rows = Experiment("shifted_mix", measure).rows([{"seed": seed} for seed in SEEDS])
    fixed = [row for row in rows if "shift" in row]
    for name, _, _ in CHANGES:
        print(f"\n{LABELS[name]}")
        columns = ("coverage", "hard_coverage", "cost")
        table({y: series(fixed, "shift", y, change=name) for y in columns}, "shift")
    for name in ("frozen", *DECAYS):
        mean = _stream(rows, name)
        first = BEFORE // WINDOW
        print(name, np.round([mean[:first].mean(), *mean[[first, first + 5, -1]]], 4))
    draw("shifted_mix", lambda figure: paint(rows, figure))


if __name__ == "__main__":
    main()
