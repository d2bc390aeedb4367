"""What every page of a report shares: one look, no script, nothing asked of the network."""

from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from farthing import __version__
from farthing.reports.base import Grid, TableCell, TableLine
from farthing.reports.table import Table


def render(template: str, title: str, *, package: str = "farthing", **values: Any) -> str:
    """Return a page of a package's; every name that comes from traces is escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "reports") for name in ("farthing", package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    style = files("farthing.reports").joinpath("page.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        title=title,
        style=Markup(style),  # noqa: S704 - ours
        version=__version__,
        **values,
    )


def grid_of(table: Table, title: str = "") -> Grid:
    """Return a table of the terminal as a page draws it.

    >>> grid_of(Table.of(["Model", "USD"], [("small", "0.50")], bold=(0,))).lines[0].best
    True
    """
    headings = tuple(heading for heading, _ in table.columns)
    lines = [
        TableLine(label, label, tuple(map(TableCell, cells)), best=at in table.bold)
        for at, (label, *cells) in enumerate(table.cells)
    ]
    return Grid(title, headings, headings, tuple(lines))
