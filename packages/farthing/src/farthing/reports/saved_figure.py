"""The figure of what is saved against what is lost; no display is needed."""

import re
from collections.abc import Sequence
from html import escape
from io import StringIO

import numpy as np

from farthing.errors import MissingExtraError
from farthing.reports.saved import Mark, SavedAgainstLost, Sweep
from farthing.reports.style import INK, STYLE, TARGET, looks

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("drawing plots", "plots") from error

SIZE = (4.7, 4.0)
"""Inches: narrow, so that its words can be read on a phone."""
LEAST_RANGE, MOST_RANGE = 0.03, 0.3
"""Of the loss that is drawn."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#6a4c93")
"""Okabe and Ito's first, of methods that have no colour of their own."""
LINE = 6.5
"""Percent saved that a line of text takes."""
DEEPEST = 0.5
"""What costs more than so much above the reference stands at the edge."""


def figure(drawn: SavedAgainstLost) -> Figure:
    """Draw it; a model that loses more than the plot shows stands at its edge, with its loss."""
    colours = _colours(drawn)
    left, right = _range(drawn)
    bottom = min([0.0, *(max(mark.saved, -DEEPEST) for mark in drawn.marks)])
    swept = {sweep.name for sweep in drawn.sweeps}
    with rc_context(STYLE):
        made = Figure(figsize=SIZE, layout="constrained")
        axes = made.subplots()
        axes.set_xlim(100 * left, 100 * right)
        axes.set_ylim(100 * bottom - 5, 105)
        axes.grid(visible=True)
        if drawn.allowed is not None:
            _draw_allowed(axes, drawn.allowed)
        for sweep in drawn.sweeps:
            _draw_sweep(axes, sweep, colours[sweep.name][0])
        if drawn.stairs:
            lost, kept = 100 * np.array([*drawn.stairs, (right, drawn.stairs[-1][1])]).T
            axes.step(lost, kept, where="post", color=INK, linewidth=1.3, label="proved together")
        axes.plot(0, 0, "o", color=INK, markersize=7, zorder=5)
        _name(axes, drawn.reference, 0, 0)
        for mark in drawn.marks:
            _draw_mark(axes, mark, colours[mark.name], in_key=mark.name not in swept)
        _name_marks(axes, [mark for mark in drawn.marks if mark.alone or mark.chosen], right)
        axes.set_xlabel(f"Lost, points of {drawn.measure}")
        axes.set_title(f"Saved, % of what {drawn.reference} costs", parse_math=False)
        if axes.get_legend_handles_labels()[0]:
            made.legend(loc="outside lower left", ncols=2, handlelength=1.4, fontsize="small")
    return made


def svg(figure: Figure, title: str) -> str:
    """Return a figure as inline SVG: the same bytes for the same figure, and no script."""
    target = StringIO()
    with rc_context(STYLE):
        figure.savefig(
            target, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    drawn = target.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'<g id="[^"]*">', "<g>", drawn)  # several plots share the page's one id space
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _colours(drawn: SavedAgainstLost) -> dict[str, tuple[str, str]]:
    """Give each name a colour and a marker: what is chosen the first, models alone ink."""
    chosen = {mark.name for mark in drawn.marks if mark.chosen}
    swept = sorted((sweep.name for sweep in drawn.sweeps), key=lambda name: name not in chosen)
    found = looks([*swept, *(mark.name for mark in drawn.marks)])
    unknown = [name for name in swept if found[name][1].startswith("$")]
    found |= {name: (COLOURS[i % len(COLOURS)], "o") for i, name in enumerate(unknown)}
    return found | {mark.name: (INK, "s") for mark in drawn.marks if mark.alone}


def _draw_allowed(axes: Axes, allowed: float) -> None:
    axes.axvline(100 * allowed, color=TARGET, linewidth=1.2, zorder=1)
    axes.annotate(
        f"{100 * allowed:.3g} may be lost" if allowed > 0 else f"{-100 * allowed:.3g} to be won",
        (100 * allowed, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        color=TARGET,
        fontsize="small",
    )


def _draw_sweep(axes: Axes, sweep: Sweep, colour: str) -> None:
    """Draw a method's settings: where some are proved, the others are dotted."""
    lost, saved = 100 * np.array(sweep.points).T
    if not sweep.proved:
        axes.plot(lost, saved, color=colour, linewidth=1.2, label=sweep.label)
        return
    full = np.array(sweep.proved)
    axes.plot(lost, saved, color=colour, linewidth=1.1, linestyle=":")
    axes.plot(lost[~full], saved[~full], "o", color=colour, markersize=3, markerfacecolor="white")
    proved = np.where(full, lost, np.nan), np.where(full, saved, np.nan)
    axes.plot(*proved, "o-", color=colour, markersize=3, label=sweep.label)


def _draw_mark(axes: Axes, mark: Mark, look: tuple[str, str], *, in_key: bool) -> None:
    colour, marker = look
    edge = axes.get_xlim()[1]
    lost, saved = min(100 * mark.lost, edge), 100 * max(mark.saved, -DEEPEST)
    if mark.within is not None and 100 * mark.lost < edge:
        low, high = mark.within
        axes.plot([100 * low, 100 * high], [saved, saved], "|-", color=colour, linewidth=1.2)
    letter = marker.startswith("$") and not mark.chosen
    axes.plot(
        lost,
        saved,
        marker="*" if mark.chosen else ">" if 100 * mark.lost > edge else marker,
        color=colour,
        markeredgecolor=colour if letter else "white",
        markeredgewidth=0.4 if letter else 0.8,
        markersize=17 if mark.chosen else 7,
        zorder=6 + mark.chosen,
        clip_on=False,
        linestyle="none",
        label=mark.label if in_key and not mark.alone and not mark.chosen else None,
    )


def _name_marks(axes: Axes, marks: Sequence[Mark], right: float) -> None:
    """Write names beside marks, each below the one before where that is too near."""
    heights = {mark.name: 100 * max(mark.saved, -DEEPEST) - LINE * mark.chosen for mark in marks}
    before = 200.0
    for mark in sorted(marks, key=lambda mark: -heights[mark.name]):
        outside = mark.lost > right
        text = f"{mark.label} loses {100 * mark.lost:.0f}" if outside else mark.label
        before = min(heights[mark.name], before - LINE)
        _name(axes, text, 100 * min(mark.lost, right), before, bold=mark.chosen)


def _name(axes: Axes, text: str, lost: float, saved: float, *, bold: bool = False) -> None:
    """Write a name beside a mark: to its left where it stands in the right half."""
    left, right = axes.get_xlim()
    over = lost > (left + right) / 2
    axes.annotate(
        text,
        (lost, saved),
        xytext=(-8 if over else 8, 0),
        textcoords="offset points",
        ha="right" if over else "left",
        va="center",
        fontweight="bold" if bold else "normal",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
        parse_math=False,
        zorder=8,
    )


def _range(drawn: SavedAgainstLost) -> tuple[float, float]:
    """Return the losses that are drawn: a model that loses far more would flatten the rest."""
    near = [mark for mark in drawn.marks if mark.chosen or not mark.alone]
    losses = [mark.lost for mark in near] + [end for mark in near for end in mark.within or ()]
    proved = [
        point[0]
        for sweep in drawn.sweeps
        for point, proved in zip(sweep.points, sweep.proved, strict=False)
        if proved
    ]
    most = max([LEAST_RANGE, 3 * (drawn.allowed or 0), *losses, *proved])
    swept = [lost for sweep in drawn.sweeps for lost, _ in sweep.points]
    least = max(min([0.0, drawn.allowed or 0.0, *losses, *swept]), -MOST_RANGE)
    room = (most - least) / 20
    return least - room, min(most, MOST_RANGE) + room
