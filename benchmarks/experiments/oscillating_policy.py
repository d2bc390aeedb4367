"""Does the online threshold keep its long-run bound when the policy oscillates?

A stopping policy alternates with itself at another scale (its scores cubed: the same decisions in
the same order, at other thresholds). Equation 9 as printed is run beside the corrected rule.

python benchmarks/experiments/oscillating_policy.py [--redraw]
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from common import (
    ALPHA,
    PRESET,
    SEEDS,
    Experiment,
    Row,
    draw,
    fresh_questions,
    training_questions,
)
from matplotlib.figure import Figure

from farthing.methods.base import Silent
from farthing.process.batch_replay import replay
from farthing.reports.style import INK, TARGET
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.stopping import StoppingLearner
from farthing_lab.promises.online import OnlineThreshold, long_run_bound, update

BATCH, STEPS, WINDOW = 10, 50_000, 100
DECAYS = {"shrinking": 0.1, "constant": -0.5}
POINTS = np.unique(np.geomspace(1, STEPS, 80).round().astype(int))

Choice = Callable[[int, float], int]
"""From the update (0, 1, ...) and the mean error so far to the pool that the next batch is from."""

TARGET_ERROR = float(ALPHA)
STREAMS: dict[str, tuple[Choice, str]] = {
    "steady policy": (lambda t, mean: 0, "#009e73"),  # noqa: ARG005
    "switches every update": (lambda t, mean: t % 2, "#56b4e9"),  # noqa: ARG005
    "switches every 5,000": (lambda t, mean: t // 5_000 % 2, "#0072b2"),  # noqa: ARG005
    "switches against the mean": (lambda t, mean: int(mean >= TARGET_ERROR), "#e69f00"),  # noqa: ARG005
    "invented scores against the mean": (
        lambda t, mean: 2 + int(mean >= TARGET_ERROR),  # noqa: ARG005
        "#cc79a7",
    ),
}
STARTS = (0.05, 0.5)
"""Where the threshold starts when equation 9 is run with its printed sign."""


def measure(seed: int) -> list[Row]:
    questions = training_questions(PRESET, seed)
    policy = StoppingLearner().fit(questions, ALPHA, seed, Silent()).policy
    critical = replay(policy, fresh_questions(PRESET), "allow").followed.critical
    pools = np.stack([critical, critical**3, np.ones_like(critical), np.zeros_like(critical)])
    rows: list[Row] = []
    for name, (choose, _) in STREAMS.items():
        for steps, decay in DECAYS.items():
            errors, kappas = follow(pools, choose, OnlineThreshold(decay=decay), seed)
            rows.append({"stream": name, "steps": steps, "seed": seed, **_kept(errors, kappas)})
    steady = STREAMS["steady policy"][0]
    for start in STARTS:
        for steps, decay in DECAYS.items():
            state = OnlineThreshold(start, decay=decay)
            found = _kept(*follow(pools, steady, state, seed, sign=-1))
            name = f"printed sign, from {start}"
            rows.append({"stream": name, "steps": steps, "seed": seed, **found})
    return rows


def follow(
    pools: FloatArray, choose: Choice, state: OnlineThreshold, seed: int, sign: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return the error of each batch and the threshold that met it, [STEPS] each."""
    rng = np.random.default_rng([seed, 4])
    errors, kappas = np.empty(STEPS), np.empty(STEPS)
    total = 0.0
    for t, index in enumerate(rng.integers(pools.shape[1], size=(STEPS, BATCH))):
        batch = pools[choose(t, total / max(t, 1)), index]
        errors[t] = np.mean(np.minimum(batch, state.bound) < state.kappa)
        kappas[t], total = state.kappa, total + errors[t]
        moved = update(state, batch, ALPHA)
        state = replace(moved, kappa=state.kappa + sign * (moved.kappa - state.kappa))
    return errors, kappas


def _kept(errors: FloatArray, kappas: FloatArray) -> dict[str, object]:
    mean = errors.cumsum() / np.arange(1, STEPS + 1)
    windows = errors[STEPS // 10 :].reshape(-1, WINDOW).mean(axis=1)
    return {
        "error": float(mean[-1]),
        "worst_window": float(windows.max()),
        "best_window": float(windows.min()),
        "deviation": np.abs(mean - TARGET_ERROR)[POINTS - 1],
        "kappa": kappas[POINTS - 1],
    }


def paint(rows: list[Row], figure: Figure) -> None:
    *panels, threshold = figure.subplots(1, 3)
    for axes, steps in zip(panels, DECAYS, strict=True):
        for name, (_, colour) in STREAMS.items():
            found = _of(rows, name, steps, "deviation")
            over = 3 if name == "steady policy" else 2
            axes.plot(POINTS, np.maximum(found, 1e-5), color=colour, label=name, zorder=over)
        axes.plot(POINTS, _bounds(DECAYS[steps]), color=INK, linestyle="--", label="bound")
        axes.set(
            title=f"|mean error - 0.1|, {steps} steps", xscale="log", yscale="log", xlabel="update"
        )
        axes.set_ylim(1e-4, 30)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8
    )
    steady = _of(rows, "steady policy", "constant", "kappa")
    threshold.plot(POINTS, steady, color="#009e73", label="corrected")
    for start in STARTS:
        found = _of(rows, f"printed sign, from {start}", "constant", "kappa")
        line = ":" if start < 0.2 else "-"
        label = f"as printed, from {start}"
        threshold.plot(POINTS, found, color=TARGET, linestyle=line, label=label)
    threshold.set(title="Threshold κ, steady policy", xscale="log", xlabel="update")
    threshold.set_ylim(-3, 5)
    threshold.legend(fontsize=8, loc="lower left")


def _of(rows: list[Row], stream: str, steps: str, name: str) -> FloatArray:
    """Return one curve, averaged over seeds."""
    found = [r[name] for r in rows if r["stream"] == stream and r["steps"] == steps]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


def _bounds(decay: float) -> list[float]:
    return [long_run_bound(OnlineThreshold(decay=decay, updates=int(t))) for t in POINTS]


def main() -> None:
    rows = Experiment("oscillating_policy", measure).rows([{"seed": seed} for seed in SEEDS])
    print("\n| stream | steps | seed | error | best, worst 1,000 questions | last kappa |")
    for row in rows:
        window = f"{row['best_window']:.3f}, {row['worst_window']:.3f}"
        head = f"| {row['stream']} | {row['steps']} | {row['seed']} "
        print(f"{head}| {row['error']:.5f} | {window} | {row['kappa'][-1]:.3f} |")
    for steps, decay in DECAYS.items():
        print(f"bound with {steps} steps after {STEPS} updates: {_bounds(decay)[-1]:.2g}")
    draw("oscillating_policy", lambda figure: paint(rows, figure), height=3.4)


if __name__ == "__main__":
    main()
