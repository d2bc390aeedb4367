"""A comparison as a folder: `results.json`, `table.md` and the self-contained `report.html`."""

from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from farthing import __version__
from farthing.errors import MissingExtraError
from farthing.experiments.base import Comparison
from farthing.experiments.results import results_json
from farthing.reports import glossary as words
from farthing.reports import plots, summary, tables
from farthing.reports.base import (
    Grid,
    alphas,
    cheapest_promised,
    decimal,
    knows_optimum,
    mean_of,
    percent,
    promised,
    rows_at,
    thousand,
)
from farthing.reports.folder import write_all
from farthing.reports.style import looks

try:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("writing a report", "report") from error


@dataclass(frozen=True)
class Section:
    """What the page says about one alpha."""

    anchor: str
    alpha: str
    promised: str
    finding: summary.Finding | None
    cost: str
    """Of the cheapest policy with a promise; empty where there is none."""
    coverage: str
    sentence: str
    promise: str
    reached: str
    optimum: str
    everything: bool
    """Whether the policies with a promise all return everything."""
    grids: tuple[Grid, ...]
    frontier: str
    boxes: str
    training: str


def write_report(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the three files of a comparison into a folder, which is made if need be.

    Raises:
        InputError: the folder cannot be made or written.
    """
    contents = {
        "results.json": results_json(comparison),
        "table.md": tables.markdown(comparison),
        "report.html": html(comparison),
    }
    return write_all(folder, contents, "report")


def html(comparison: Comparison) -> str:
    """Return the report as one page that asks nothing of the network and runs no script.

    Every name that comes from traces is escaped; the plots escape theirs themselves.
    """
    room = files("farthing.reports")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.from_string(room.joinpath("page.html").read_text(encoding="utf-8"))
    return page.render(
        comparison=comparison,
        style=Markup(room.joinpath("page.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
        version=__version__,
        sections=[_section(comparison, alpha) for alpha in alphas(comparison)],
        setting=summary.setting(comparison),
        doubts=summary.doubts(comparison),
        words=words.explained(comparison),
        columns=tables.columns(
            comparison.sizes["test"],
            optimum=knows_optimum(comparison),
            reference=comparison.reference,
        ),
        colours={name: look[0] for name, look in looks(_policies(comparison)).items()},
    )


def _section(comparison: Comparison, alpha: Fraction) -> Section:
    shown = decimal(alpha)
    runs = [plots.Run(r.policy, r.label, r.curves) for r in rows_at(comparison, alpha) if r.curves]
    trained = plots.training(runs, alpha)
    found = summary.finding(comparison, alpha)
    return Section(
        anchor=f"alpha-{shown}",
        alpha=shown,
        promised=percent(1 - alpha),
        finding=found,
        cost=thousand(mean_of(found.cheapest, "cost_usd")) if found else "",
        coverage=f"{mean_of(found.cheapest, 'coverage'):.3f}" if found else "",
        sentence=summary.sentence(comparison, alpha),
        promise=summary.promise(alpha),
        reached=summary.reached(comparison, alpha),
        optimum=summary.optimum_played(comparison),
        everything=bool(promised(comparison, alpha)) and not cheapest_promised(comparison, alpha),
        grids=tuple(tables.grids(comparison, alpha)),
        frontier=_inline(plots.frontier(comparison, alpha), f"Cost and coverage, alpha {shown}"),
        boxes=_inline(plots.boxes(comparison, alpha), f"Spread over splits, alpha {shown}"),
        training=_inline(trained, f"Training curves, alpha {shown}") if trained else "",
    )


def _inline(figure: Figure, title: str) -> str:
    return Markup(plots.svg(figure, title))  # noqa: S704 - matplotlib has escaped every text


def _policies(comparison: Comparison) -> list[str]:
    return [row.policy for row in comparison.rows]
