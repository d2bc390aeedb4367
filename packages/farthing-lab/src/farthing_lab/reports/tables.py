"""The paper's table, the paired differences and the published figures: terminal and Markdown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from farthing.promises.texts import Column, decimal, share
from farthing.recommendation.base import NOBODY_ASKED, Comparison, Difference, Row
from farthing.reports.base import PER_THOUSAND, Grid, TableCell, TableLine
from farthing_lab.comparison.published import beside, notes
from farthing_lab.comparison.rows import (
    GROUPS,
    alphas,
    best,
    mean_of,
    ran,
    returns_everything,
    rows_at,
    standard_error_of,
)
from farthing_lab.reports.glossary import ROUTER_COLUMNS, columns, count, key, per_thousand
from farthing_lab.reports.summary import goal_of

NOTHING = TableCell("–")
WITH_ERROR = ("total_cost_usd", "coverage")
"""Metrics whose standard error the table has room for; `results.json` has all of them."""


def policy_grid(comparison: Comparison, alpha: Fraction) -> Grid:
    """Lay out how each policy did at one alpha."""
    shown = columns(comparison)
    rows = rows_at(comparison, alpha)
    cheapest = best(comparison, alpha)
    return Grid(
        goal_of(comparison, alpha).title,
        ("Policy", *(column.heading for column in shown)),
        ("Policy", *(column.short for column in shown)),
        tuple(
            TableLine(
                row.policy,
                row.label,
                tuple(_cell(row, column) if ran(row) else NOTHING for column in shown),
                GROUPS[row.calibration],
                row is cheapest,
            )
            for row in rows
        ),
        tuple(_notes(rows)),
        key(comparison),
    )


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    sets = "is cheaper, and right as often as these sets hold a right answer: use that instead"
    best = "is cheaper, and right as often as the best answer here: use that where one will do"
    if labels := [row.label for row in rows if returns_everything(row)]:
        why = "too few calibration questions to promise anything tighter: everything is returned"
        yield f"{', '.join(labels)}: {why}"
    for row in rows:
        if row.instead:
            yield f"{row.label}: always-{row.instead} {sets}"
        elif row.for_one_answer:
            yield f"{row.label}: always-{row.for_one_answer} {best}"
    yield from (f"{row.label}: {row.note}" for row in rows if row.note)


def difference_grid(comparison: Comparison, alpha: Fraction) -> Grid:
    """Lay out the paired differences at one alpha: mean and 95 % interval over the splits.

    Nothing is held against a policy that returns everything.
    """
    by_pair: dict[tuple[str, str], dict[str, Difference]] = {}
    for found in comparison.differences:
        if found.alpha == alpha:
            by_pair.setdefault((found.policy, found.other), {})[found.metric] = found
    labels = {row.policy: row for row in rows_at(comparison, alpha)}
    goal = goal_of(comparison, alpha)
    at = f", alpha = {decimal(alpha)}" if goal.of_alpha else ""
    return Grid(
        f"Paired differences over the same splits{at}: mean [95 % interval]",
        ("First less second", "USD per 1,000 questions", "relative", f"{goal.beside}, points"),
        ("First less second", "$/1,000", "relative", f"{goal.beside}, points"),
        tuple(
            TableLine(
                ours,
                f"{labels[ours].label} − {labels[theirs].label}",
                _difference_cells(metrics, labels[theirs], goal.beside_metric),
            )
            for (ours, theirs), metrics in by_pair.items()
            if not returns_everything(labels[theirs])
        ),
    )


def published_grid(comparison: Comparison, alpha: Fraction) -> Grid:
    """Lay out ours / the paper's, for the policies that both have."""
    pairs = beside(comparison, alpha)
    return Grid(
        f"Ours / published, alpha = {decimal(alpha)}",
        ("Policy", "USD per 1,000 questions", "Coverage", "Avg. Len.", "Set Size (leaves)"),
        ("Policy", "$/1,000", "Coverage", "Len", "Leaf"),
        tuple(
            TableLine(
                row.policy,
                row.label,
                (
                    _two(per_thousand, mean_of(row, "cost_usd"), paper.cost_usd),
                    _two(share, mean_of(row, "coverage"), paper.coverage),
                    _two(count, mean_of(row, "avg_len"), paper.avg_len),
                    _two(count, mean_of(row, "set_size_leaves"), paper.set_size),
                ),
            )
            for row, paper in pairs
        ),
        notes(comparison, alpha) if pairs else (),
    )


def router_grid(comparison: Comparison, alpha: Fraction) -> Grid:
    """Lay out what benchmarks of routers print, where some row has it."""
    rows = [row for row in rows_at(comparison, alpha) if row.router_figures]
    return Grid(
        f"{goal_of(comparison, alpha).title}, as benchmarks of routers print it",
        ("Policy", *(column.heading for column in ROUTER_COLUMNS)),
        ("Policy", *(column.short for column in ROUTER_COLUMNS)),
        tuple(
            TableLine(
                row.policy,
                row.label,
                tuple(
                    TableCell(column.write(row.router_figures[column.metric]))
                    if column.metric in row.router_figures
                    else NOTHING
                    for column in ROUTER_COLUMNS
                ),
                GROUPS[row.calibration],
            )
            for row in rows
        ),
        tuple(f"{column.heading}: {column.meaning}" for column in ROUTER_COLUMNS),
    )


def written_grids(comparison: Comparison, alpha: Fraction) -> list[Grid]:
    """Return the tables of one alpha that a report has: those of the terminal and one more."""
    last = router_grid(comparison, alpha)
    return [*grids(comparison, alpha), *([last] if last.lines else [])]


def grids(comparison: Comparison, alpha: Fraction) -> list[Grid]:
    """Return every table of one alpha that has lines."""
    made = (policy_grid, difference_grid, published_grid)
    return [grid for make in made if (grid := make(comparison, alpha)).lines]


def render_tables(comparison: Comparison) -> Group:
    """Draw every table for a terminal."""
    drawn: list[RenderableType] = []
    for alpha in alphas(comparison):
        for grid in grids(comparison, alpha):
            remarks = [grid.key, *grid.notes] if grid.key else grid.notes
            drawn += [FittedTable(grid), *(Text(line, style="dim") for line in remarks), Text("")]
    drawn += [Text(f"Note: {note}") for note in comparison.notes]
    return Group(*drawn)


@dataclass(frozen=True)
class FittedTable:
    """A table that leaves out its last columns where the terminal is too narrow, and says so."""

    grid: Grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, unbounded = len(self.grid.short), console.options.update(max_width=1_000)
        while columns > 2:
            needed = Measurement.get(console, unbounded, render_grid(self.grid, columns)).minimum
            if needed <= options.max_width:
                break
            columns -= 1
        yield render_grid(self.grid, columns)
        missing = self.grid.short[columns:]
        if missing:
            yield Text(f"no room here for {', '.join(missing)}: see table.md", style="dim")


def render_grid(grid: Grid, columns: int) -> Table:
    """Draw the first columns of a table; names are data and carry no markup."""
    table = Table(
        title=escape(grid.title),
        title_justify="left",
        title_style="bold",
        box=box.HORIZONTALS,
        padding=0,
        show_edge=False,
    )
    table.add_column(escape(grid.short[0]), overflow="fold", min_width=12)
    for place, heading in enumerate(grid.short[1:columns]):
        widest = max(len(str(line.cells[place])) for line in grid.lines)
        table.add_column(escape(heading), justify="right", no_wrap=True, min_width=widest)
    group = ""
    for line in grid.lines:
        if line.group != group:
            table.add_section()
            table.add_row(escape(line.group), style="dim")
            group = line.group
        cells = (escape(str(cell)) for cell in line.cells[: columns - 1])
        table.add_row(escape(line.label), *cells, style="bold" if line.best else None)
    return table


def markdown(comparison: Comparison) -> str:
    """Write every table as Markdown, with its notes."""
    parts = [
        f"# {_plain(comparison.title)}",
        *([NOBODY_ASKED] if comparison.published else []),
        *([_plain(comparison.lede)] if comparison.lede else []),
        " · ".join(f"{name} {size:,}" for name, size in comparison.sizes.items())
        + f" questions · {comparison.splits} splits · seeds "
        + ", ".join(map(str, comparison.seeds)),
    ]
    for alpha in alphas(comparison):
        for grid in written_grids(comparison, alpha):
            parts += [f"## {_plain(grid.title)}", _markdown_grid(grid)]
            parts += ["\n".join(f"- {_plain(note)}" for note in grid.notes)] if grid.notes else []
    parts += [f"Note: {_plain(note)}" for note in comparison.notes]
    return "\n\n".join(parts) + "\n"


def _markdown_grid(grid: Grid) -> str:
    rule = ["---"] + ["---:"] * (len(grid.headings) - 1)
    body = [[line.label, *map(str, line.cells)] for line in grid.lines]
    table = [[*map(_plain, grid.headings)], rule, *([*map(_plain, row)] for row in body)]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def _plain(text: str) -> str:
    """Names are data: no line break, table bar or HTML tag of theirs may act."""
    flat = " ".join(text.split())
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def _cell(row: Row, column: Column) -> TableCell:
    mean = mean_of(row, column.metric)
    error = standard_error_of(row, column.metric)
    if isnan(mean):
        return NOTHING
    written = column.write(mean)
    if column.metric not in WITH_ERROR or isnan(error):
        return TableCell(written)
    places = len(written.partition(".")[2])
    scale = 100 if column.metric == "total_cost_usd" else 1
    return TableCell(written, f"{error * scale:.{places}f}")


def _difference_cells(
    metrics: dict[str, Difference], other: Row, beside: str
) -> tuple[TableCell, ...]:
    cost, coverage = metrics.get("cost_usd"), metrics.get(beside)
    base = mean_of(other, "cost_usd")
    return (
        _interval(cost, PER_THOUSAND, 3),
        TableCell(f"{cost.mean / base:+.1%}") if cost and base > 0 else NOTHING,
        _interval(coverage, 100, 1),
    )


def _interval(difference: Difference | None, scale: float, places: int) -> TableCell:
    if difference is None:
        return NOTHING
    mean, low, high = (
        f"{value * scale:+.{places}f}"
        for value in (difference.mean, difference.low, difference.high)
    )
    return TableCell(f"{mean} [{low}, {high}]")


def _two(write: Callable[[float], str], ours: float, theirs: float) -> TableCell:
    return TableCell(f"{'–' if isnan(ours) else write(ours)} / {write(theirs)}")
