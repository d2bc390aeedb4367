"""The curves of trainings, each quantity in a panel, as a matplotlib figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from farthing.errors import MissingExtraError
from farthing.reports.style import INK, MUTED, STYLE, TARGET, WIDTH, Looks, looks
from farthing.traces.arrays import FloatArray

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("drawing plots", "plots") from error

CURVES = {
    "cost": "Cost, in rounds of mean price",
    "coverage": "Coverage of the batch",
    "kappa": "Threshold κ",
    "violation": "Constraint violation",
    "length": "Average length, rounds",
    "set_size": "Set size (leaves)",
}
"""What is drawn of a training, and its title."""
SHORTEST_MEAN = 5
PANELS = {
    "reward": "Reward",
    "call_ratio": "Call ratio",
    "cost_usd": "Cost, USD a question",
    "kl": "KL to the reference, nats a token",
    "entropy": "Entropy, nats a token",
    "clip_fraction": "Clip fraction",
}
"""What is drawn of each update, and its title."""
OF_MODES = {"call_ratio": 0, "reward": 1}
"""What is known of each mode, and its place in `by_mode`."""
COLOURS = ("#56b4e9", "#e69f00", "#d55e00", "#009e73", "#cc79a7")
"""Of the modes, from the cheapest."""


@dataclass(frozen=True)
class TrainingCurves:
    """The training curves of one policy."""

    policy: str
    label: str
    curves: Mapping[str, Sequence[float]]
    """Name to one value per update."""


def training(runs: Sequence[TrainingCurves], alpha: Fraction) -> Figure | None:
    """Draw training curves, a panel per quantity; None where nothing was trained by steps.

    A batch is small, so the lines are running means over a twentieth of the updates.
    """
    runs = _trainings([run for run in runs if any(name in run.curves for name in CURVES)])
    shown = [name for name in CURVES if any(name in run.curves for run in runs)]
    if not shown:
        return None
    colours = looks(run.policy for run in runs)
    rows = -(-len(shown) // 2)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.4 + 2.1 * rows), layout="constrained")
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, name in zip(panels, shown, strict=False):
            _curve_panel(axes, name, runs, alpha, colours)
        for axes in panels[len(shown) :]:
            axes.axis("off")
        for axes in panels[max(0, len(shown) - 2) : len(shown)]:
            axes.set_xlabel("Update")
        key = panels[0].get_legend_handles_labels()
        figure.legend(*key, loc="outside lower center", ncols=3, fontsize="medium")
    return figure


def _trainings(runs: Sequence[TrainingCurves]) -> list[TrainingCurves]:
    shared: list[TrainingCurves] = []
    for run in runs:
        same = next((i for i, other in enumerate(shared) if other.curves == run.curves), None)
        if same is None:
            shared.append(run)
        else:
            shared[same] = replace(shared[same], label=f"{shared[same].label}, {run.label}")
    return shared


def _curve_panel(
    axes: Axes,
    name: str,
    runs: Sequence[TrainingCurves],
    alpha: Fraction,
    colours: Looks,
) -> None:
    for run in runs:
        values = np.asarray(run.curves.get(name, []), dtype=np.float64)
        updates, means = running_mean(values)
        axes.plot(updates, means, color=colours[run.policy][0], label=run.label, linewidth=1.4)
    if name == "coverage":
        axes.axhline(float(1 - alpha), color=TARGET, linewidth=1.0, zorder=1)
    if name == "violation":
        axes.axhline(0, color=TARGET, linewidth=1.0, zorder=1)
    axes.set_title(CURVES[name])
    axes.grid(visible=True)


def running_mean(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return updates and the mean of a twentieth up to each; of a few, the values themselves."""
    if len(values) < 2 * SHORTEST_MEAN:
        return np.arange(1, len(values) + 1, dtype=np.float64), values
    width = max(SHORTEST_MEAN, len(values) // 20)
    means = np.convolve(values, np.full(width, 1 / width), mode="valid")
    return np.arange(width, len(values) + 1, dtype=np.float64), means


def controller_curves(updates: Sequence[Mapping[str, Any]], modes: Sequence[str]) -> Figure:
    """Draw a controller's training; lines are running means over a twentieth of the updates.

    Args:
        updates: a record an update, the fields of `learner.Update`.
        modes: their names, from the cheapest.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
            _mode_panel(axes, name, updates, modes)
            axes.set_title(title)
            axes.grid(visible=True)
        for axes in panels[-2:]:
            axes.set_xlabel("Update")
        key = panels[0].get_legend_handles_labels()
        figure.legend(*key, loc="outside lower center", ncols=len(modes) + 1, fontsize="medium")
    return figure


def _mode_panel(
    axes: Axes, name: str, updates: Sequence[Mapping[str, Any]], modes: Sequence[str]
) -> None:
    if name in OF_MODES:
        for mode, colour in zip(modes, COLOURS, strict=False):
            # Of few prompts, none may be in a mode; nothing is drawn of it then.
            place = OF_MODES[name]
            of_mode = [update["by_mode"].get(mode, (np.nan, np.nan))[place] for update in updates]
            values = np.array(of_mode, dtype=np.float64)
            known = np.flatnonzero(~np.isnan(values))
            at, means = running_mean(values[known])
            axes.plot(
                known[at.astype(int) - 1] + 1.0, means, color=colour, label=mode, linewidth=1.2
            )
    values = np.array([update[name] for update in updates], dtype=np.float64)
    colour = INK if name in OF_MODES else MUTED
    axes.plot(*running_mean(values), color=colour, label="all modes", linewidth=1.5)
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))))
