"""The plots of a comparison, each a matplotlib figure; no display is needed."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from farthing.errors import MissingExtraError
from farthing.promises.texts import Goal
from farthing.recommendation.base import Comparison, Row
from farthing.reports.base import PER_THOUSAND
from farthing.reports.style import INK, MUTED, STYLE, TARGET, WIDTH, Looks, looks
from farthing_lab.comparison.published import beside
from farthing_lab.comparison.rows import mean_of, ran, rows_at
from farthing_lab.reports.summary import goal_of

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("drawing plots", "plots") from error

EXPECTED = "known optimum, in expectation"
BELOW = 0.02
"""Coverage that is drawn under the least of what matters."""
DRAWN_POINTS = 240
"""Points of a frontier that are drawn; a frontier holds one per question."""


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
        names = [
            f"{row.label} (no promise)" if row.calibration == "none" else row.label
            for row in reversed(rows)
        ]
        left.set_yticks(range(len(rows)), names)
        if papers:
            right.set_xlabel("◇ published figure", loc="right", color=MUTED)
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
        seen = [mean_of(row, goal.metric) for row in rows]
        seen += [reached for row in rows for _, reached in _worth_drawing(row, goal.metric)]
        asked = [] if goal.line is None else [goal.line]  # far outliers would flatten the lines
        floor = min([*asked, *(value for value in seen if value >= goal.worst)]) - BELOW
        top = 1.0 if goal.line is not None and goal.line > 0 else max(seen, default=1.0) + BELOW
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


def _frontier_line(axes: Axes, row: Row, look: tuple[str, str], metric: str, floor: float) -> None:
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


def _frontier_axes(axes: Axes, goal: Goal, *, published: bool) -> None:
    if goal.line is not None:
        axes.axhline(goal.line, color=TARGET, linewidth=1.0, zorder=1)
        axes.annotate(
            goal.asked,
            (1, goal.line),
            xycoords=("axes fraction", "data"),
            xytext=(-2, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            color=TARGET,
            fontsize="small",
        )
    axes.set_xlabel("Cost, $ per 1,000 questions")
    axes.set_title(goal.name)
    axes.grid(visible=True)
    handles, labels = axes.get_legend_handles_labels()
    if published:
        handles += axes.plot([], [], "D", markerfacecolor="white", markeredgecolor=MUTED)
        labels += ["hollow: published"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.01, 0.5))
