"""The curves of a controller's training, a panel a quantity, as a matplotlib figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farthing.errors import MissingExtraError
from farthing.reports.style import INK, MUTED, STYLE, WIDTH
from farthing.reports.training import running_mean
from farthing.traces.arrays import FloatArray

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("drawing plots", "report") from error

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


def curves(updates: Sequence[Mapping[str, Any]], modes: Sequence[str]) -> Figure:
    """Draw a training's log; lines are running means over a twentieth of the updates.

    Args:
        updates: a record an update, the fields of `learner.Update`.
        modes: their names, from the cheapest.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, name, updates, modes)
            axes.set_title(title)
            axes.grid(visible=True)
        for axes in panels[-2:]:
            axes.set_xlabel("Update")
        key = panels[0].get_legend_handles_labels()
        figure.legend(*key, loc="outside lower center", ncols=len(modes) + 1, fontsize="medium")
    return figure


def _panel(
    axes: Axes, name: str, updates: Sequence[Mapping[str, Any]], modes: Sequence[str]
) -> None:
    if name in OF_MODES:
        for mode, colour in zip(modes, COLOURS, strict=False):
            # Of few prompts, none may be in a mode; nothing is drawn of it then.
            place = OF_MODES[name]
            of_mode = [one["by_mode"].get(mode, (np.nan, np.nan))[place] for one in updates]
            at, means = _known(np.array(of_mode, dtype=np.float64))
            axes.plot(at, means, color=colour, label=mode, linewidth=1.2)
    values = np.array([one[name] for one in updates], dtype=np.float64)
    colour = INK if name in OF_MODES else MUTED
    axes.plot(*running_mean(values), color=colour, label="all modes", linewidth=1.5)
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))))


def _known(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return updates and running means of the values that there are."""
    known = np.flatnonzero(~np.isnan(values))
    at, means = running_mean(values[known])
    return known[at.astype(int) - 1] + 1.0, means
