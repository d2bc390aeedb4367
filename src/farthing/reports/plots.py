"""The plots of a comparison, each a matplotlib figure; no display is needed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from io import StringIO

import numpy as np

from farthing.errors import MissingExtraError
from farthing.experiments.base import Comparison, Row
from farthing.reports.base import PER_THOUSAND, mean_of, ran, rows_at
from farthing.reports.goals import Goal, goal_of
from farthing.reports.published import beside
from farthing.reports.style import INK, MUTED, STYLE, TARGET, looks
from farthing.traces.arrays import FloatArray

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("drawing plots", "report") from error

Looks = Mapping[str, tuple[str, str]]

WIDTH = 8.0
"""Inches; 800 pixels at the size they are meant to be read."""

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
EXPECTED = "known optimum, in expectation"
BELOW = 0.02
"""Coverage that is drawn under the least of what matters."""
DRAWN_POINTS = 240
"""Points of a frontier that are drawn; a frontier holds one per question."""


@dataclass(frozen=True)
class Run:
    """The training curves of one policy."""

    policy: str
    label: str
    curves: Mapping[str, Sequence[float]]
    """Name to one value per update."""


def boxes(comparison: Comparison, alpha: Fraction) -> Figure:
    """Draw coverage and cost over the splits, one box a policy (the paper's figures 2 to 9)."""
    rows = [row for row in rows_at(comparison, alpha) if ran(row)]
    colours = looks(row.policy for row in comparison.rows)
    papers = {row.policy: paper for row, paper in beside(comparison, alpha)}
    goal = goal_of(comparison, alpha)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.3 + 0.34 * len(rows)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
        _boxes(left, rows, goal.metric, 1, colours)
        _boxes(right, rows, "cost_usd", PER_THOUSAND, colours)
        if goal.line is not None:
            left.axvline(goal.line, color=TARGET, linewidth=1.2, zorder=1)
        left.set_title(goal.name if goal.line is None else f"{goal.name} (line: {goal.level})")
        right.set_title("Cost, $ per 1,000 questions")
        right.set_xlim(left=0)
        for height, row in enumerate(reversed(rows)):
            if row.policy in papers:
                _hollow(left, papers[row.policy].coverage, height)
                _hollow(right, papers[row.policy].cost_usd * PER_THOUSAND, height)
        left.set_yticks(range(len(rows)), [_marked(row) for row in reversed(rows)])
        if papers:
            right.set_xlabel("◇ published figure", loc="right", color=MUTED)
    return figure


def training(runs: Sequence[Run], alpha: Fraction) -> Figure | None:
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


def frontier(comparison: Comparison, alpha: Fraction) -> Figure:
    """Draw what each policy reaches at what cost, and the optimum where it is known.

    What it reaches is coverage, or the figure of another promise.

    Lines sweep a policy's threshold over all questions outside training; full markers are the
    policies as calibrated (or as sampled, where they have no threshold); hollow ones are the
    paper's. The key lists lines in the order of what the promised coverage costs, then points.
    """
    goal = goal_of(comparison, alpha)
    level = goal.worst if goal.line is None else goal.line
    rows = sorted(
        (row for row in rows_at(comparison, alpha) if ran(row)),
        key=lambda row: (
            len(row.frontier) < 2,
            cost_at(row.frontier, level) if len(row.frontier) > 1 else 0,
            row.label,
        ),
    )
    colours = looks(row.policy for row in comparison.rows)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.9), layout="constrained")
        axes = figure.subplots()
        floor, top = _floor(rows, goal), _top(rows, goal)
        axes.set_ylim(floor, top + (top - floor) * 0.04)
        if comparison.optimum:
            cost, coverage = np.array(sorted(comparison.optimum)).T
            axes.plot(cost * PER_THOUSAND, coverage, color=INK, dashes=(4, 2), label=EXPECTED)
        for row in rows:
            _frontier_line(axes, row, colours[row.policy], goal.metric, floor)
        for row, paper in beside(comparison, alpha):
            axes.plot(
                paper.cost_usd * PER_THOUSAND,
                paper.coverage,
                marker=colours[row.policy][1],
                markerfacecolor="white",
                markeredgecolor=colours[row.policy][0],
                markersize=7,
                zorder=4,
            )
        _frontier_axes(axes, goal, published=bool(beside(comparison, alpha)))
    return figure


def cost_at(points: Sequence[tuple[float, float]], coverage: float) -> float:
    """Return the least cost of a point that reaches a coverage; infinity where none does.

    >>> cost_at([(1.0, 0.8), (2.0, 0.9), (3.0, 0.95)], 0.9)
    2.0
    """
    return min((cost for cost, reached in points if reached >= coverage), default=float("inf"))


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


def _trainings(runs: Sequence[Run]) -> list[Run]:
    """Return one run a training, named after all the policies that share it."""
    shared: list[Run] = []
    for run in runs:
        same = next((i for i, other in enumerate(shared) if other.curves == run.curves), None)
        if same is None:
            shared.append(run)
        else:
            shared[same] = replace(shared[same], label=f"{shared[same].label}, {run.label}")
    return shared


def _boxes(
    axes: Axes,
    rows: Sequence[Row],
    metric: str,
    scale: float,
    colours: Looks,
) -> None:
    for height, row in enumerate(reversed(rows)):
        colour = colours[row.policy][0]
        values = np.asarray(row.per_split[metric], dtype=np.float64) * scale
        axes.boxplot(
            values[~np.isnan(values)],
            positions=[height],
            orientation="horizontal",
            widths=0.58,
            patch_artist=True,
            boxprops={"facecolor": f"{colour}40", "edgecolor": colour, "linewidth": 1.0},
            medianprops={"color": colour, "linewidth": 2.0},
            whiskerprops={"color": colour, "linewidth": 1.0},
            capprops={"color": colour, "linewidth": 1.0},
            flierprops={
                "marker": ".",
                "markersize": 3.5,
                "markerfacecolor": colour,
                "markeredgecolor": "none",
            },
        )
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(rows) - 0.4)


def _hollow(axes: Axes, value: float, height: int) -> None:
    axes.plot(
        value, height, "D", markerfacecolor="white", markeredgecolor=INK, markersize=5, zorder=5
    )


def _marked(row: Row) -> str:
    return f"{row.label} (no promise)" if row.calibration == "none" else row.label


def _curve_panel(
    axes: Axes,
    name: str,
    runs: Sequence[Run],
    alpha: Fraction,
    colours: Looks,
) -> None:
    for run in runs:
        values = np.asarray(run.curves.get(name, []), dtype=np.float64)
        updates, means = _running_mean(values)
        axes.plot(updates, means, color=colours[run.policy][0], label=run.label, linewidth=1.4)
    if name == "coverage":
        axes.axhline(float(1 - alpha), color=TARGET, linewidth=1.0, zorder=1)
    if name == "violation":
        axes.axhline(0, color=TARGET, linewidth=1.0, zorder=1)
    axes.set_title(CURVES[name])
    axes.grid(visible=True)


def _running_mean(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    if len(values) < 2 * SHORTEST_MEAN:
        return np.arange(1, len(values) + 1, dtype=np.float64), values
    width = max(SHORTEST_MEAN, len(values) // 20)
    means = np.convolve(values, np.full(width, 1 / width), mode="valid")
    return np.arange(width, len(values) + 1, dtype=np.float64), means


def _frontier_line(axes: Axes, row: Row, look: tuple[str, str], metric: str, floor: float) -> None:
    """Draw a swept policy as a line with its operating point, another as a point."""
    colour, marker = look
    cost, coverage = mean_of(row, "cost_usd") * PER_THOUSAND, mean_of(row, metric)
    points = np.array(_worth_drawing(row, metric, floor))
    if len(points):
        kept = np.unique(np.linspace(0, len(points) - 1, DRAWN_POINTS).round().astype(int))
        axes.plot(points[kept, 0] * PER_THOUSAND, points[kept, 1], color=colour)
    axes.plot(
        cost,
        max(coverage, floor),
        marker=marker,
        color=colour,
        markeredgecolor=colour if marker.startswith("$") else "white",
        markeredgewidth=0.4 if marker.startswith("$") else 0.8,
        markersize=8,
        linestyle="-" if len(points) else "none",
        label=row.label if coverage >= floor else f"{row.label} ({coverage:.2f}, off the plot)",
        clip_on=False,
        zorder=6 if marker.startswith("$") else 5,
    )


def _worth_drawing(row: Row, metric: str, floor: float = -1.0) -> list[tuple[float, float]]:
    """Return the points of a swept line from where it is played, or from its best first step.

    Below that, a policy that may return nothing only falls: it pays the same and covers less.
    """
    points = sorted(row.frontier)
    if len(points) < 2:
        return []
    first_step = max(coverage for cost, coverage in points if cost == points[0][0])
    least = max(min(mean_of(row, metric), first_step), floor)
    return [point for point in points if point[1] >= least]


def _floor(rows: Sequence[Row], goal: Goal) -> float:
    """Return where the plot begins: outliers far below what is asked for would flatten it."""
    asked = [] if goal.line is None else [goal.line]
    return min([*asked, *(value for value in _seen(rows, goal) if value >= goal.worst)]) - BELOW


def _top(rows: Sequence[Row], goal: Goal) -> float:
    """Return where the plot ends: 1 for a share that is asked for, else what is reached."""
    shares = goal.line is not None and goal.line > 0
    return 1.0 if shares else max(_seen(rows, goal), default=1.0) + BELOW


def _seen(rows: Sequence[Row], goal: Goal) -> list[float]:
    found = [mean_of(row, goal.metric) for row in rows]
    return found + [value for row in rows for _, value in _worth_drawing(row, goal.metric)]


def _frontier_axes(axes: Axes, goal: Goal, *, published: bool) -> None:
    if goal.line is not None:
        _line_asked(axes, goal.line, goal.asked)
    axes.set_xlabel("Cost, $ per 1,000 questions")
    axes.set_title(goal.name)
    axes.grid(visible=True)
    handles, labels = axes.get_legend_handles_labels()
    if published:
        handles += axes.plot([], [], "D", markerfacecolor="white", markeredgecolor=MUTED)
        labels += ["hollow: published"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _line_asked(axes: Axes, line: float, asked: str) -> None:
    axes.axhline(line, color=TARGET, linewidth=1.0, zorder=1)
    axes.annotate(
        asked,
        (1, line),
        xycoords=("axes fraction", "data"),
        xytext=(-2, -3),
        textcoords="offset points",
        ha="right",
        va="top",
        color=TARGET,
        fontsize="small",
    )
