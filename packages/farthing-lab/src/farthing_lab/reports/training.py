"""The curves of trainings, each quantity in a panel, as a matplotlib figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from farthing.errors import MissingExtraError
from farthing.recommendation.base import Row
from farthing.reports.style import INK, MUTED, STYLE, TARGET, WIDTH, looks
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


def training(rows: Sequence[Row], alpha: Fraction) -> Figure | None:
    """Draw training curves, a panel per quantity; None where nothing was trained by steps.

    A batch is small, so the lines are running means over a twentieth of the updates. Policies that
    share a training share its lines.
    """
    runs: list[Row] = []
    for row in rows:
        same = next((i for i, other in enumerate(runs) if other.curves == row.curves), None)
        if same is not None:
            runs[same] = replace(runs[same], label=f"{runs[same].label}, {row.label}")
        elif any(name in row.curves for name in CURVES):
            runs.append(row)
    shown = {
        name: title for name, title in CURVES.items() if any(name in run.curves for run in runs)
    }
    if not shown:
        return None
    colours = looks(run.policy for run in runs)
    targets = {"coverage": float(1 - alpha), "violation": 0.0}

    def draw(axes: Axes, name: str) -> None:
        for run in runs:
            values = np.asarray(run.curves.get(name, []), dtype=np.float64)
            updates, means = running_mean(values)
            axes.plot(updates, means, color=colours[run.policy][0], label=run.label, linewidth=1.4)
        if name in targets:
            axes.axhline(targets[name], color=TARGET, linewidth=1.0, zorder=1)

    return _panels(shown, 0.4 + 2.1 * -(-len(shown) // 2), draw, 3)


def _panels(
    titles: Mapping[str, str], height: float, draw: Callable[[Axes, str], None], columns: int
) -> Figure:
    """Draw a panel of each name, two beside each other, with one key of so many columns."""
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        panels = figure.subplots(-(-len(titles) // 2), 2, squeeze=False).ravel()
        for axes in panels[len(titles) :]:
            axes.axis("off")
        for axes, (name, title) in zip(panels, titles.items(), strict=False):
            draw(axes, name)
            axes.set_title(title)
            axes.grid(visible=True)
        for axes in panels[max(0, len(titles) - 2) : len(titles)]:
            axes.set_xlabel("Update")
        key = panels[0].get_legend_handles_labels()
        figure.legend(*key, loc="outside lower center", ncols=columns, fontsize="medium")
    return figure


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

    def draw(axes: Axes, name: str) -> None:
        place = OF_MODES.get(name)
        for mode, colour in zip(modes if place is not None else (), COLOURS, strict=False):
            # Of few prompts, none may be in a mode; nothing is drawn of it then.
            of_mode = [update["by_mode"].get(mode, (np.nan, np.nan))[place] for update in updates]
            values = np.array(of_mode, dtype=np.float64)
            known = np.flatnonzero(~np.isnan(values))
            at, means = running_mean(values[known])
            axes.plot(
                known[at.astype(int) - 1] + 1.0, means, color=colour, label=mode, linewidth=1.2
            )
        values = np.array([update[name] for update in updates], dtype=np.float64)
        colour = MUTED if place is None else INK
        axes.plot(*running_mean(values), color=colour, label="all modes", linewidth=1.5)
        axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))))

    return _panels(PANELS, 6.6, draw, len(modes) + 1)
