"""A comparison as a folder: `results.json`, `table.md` and the self-contained `report.html`."""

from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from farthing import __version__
from farthing.comparison.results import results_json
from farthing.errors import MissingExtraError
from farthing.promises.texts import decimal
from farthing.recommendation.base import Comparison
from farthing.reports import payer, plots, promises, summary, tables
from farthing.reports.base import Grid, alphas, cheapest_promised, promised, rows_at, write_all
from farthing.reports.glossary import columns, explained
from farthing.reports.promises import goal_of
from farthing.reports.style import looks
from farthing.reports.training import TrainingCurves, training

try:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("writing a report", "report") from error


@dataclass(frozen=True)
class AlphaSection:
    """What the page says about one alpha."""

    anchor: str
    offer: payer.Offer
    """What the first screen says."""
    sets: bool
    """Whether a set of answers is promised, rather than a single one."""
    what: str
    """What is drawn beside cost."""
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
    """Write the three files of a comparison into a folder, which is made if need be."""
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
        words=explained(comparison),
        columns=columns(comparison),
        no_certificate=promises.NO_CERTIFICATE,
        not_alone=payer.NOT_ALONE,
        colours={
            name: look[0] for name, look in looks(row.policy for row in comparison.rows).items()
        },
    )


def _section(comparison: Comparison, alpha: Fraction) -> AlphaSection:
    shown = decimal(alpha)
    goal = goal_of(comparison, alpha)
    runs = [
        TrainingCurves(r.policy, r.label, r.curves) for r in rows_at(comparison, alpha) if r.curves
    ]
    trained = training(runs, alpha)
    swept = any(len(row.frontier) > 1 for row in rows_at(comparison, alpha))
    return AlphaSection(
        anchor=f"alpha-{shown}",
        offer=payer.offer(comparison, alpha),
        sets=comparison.promise is None,
        what=goal.name,
        promise=summary.promise(comparison, alpha),
        reached=summary.reached(comparison, alpha),
        optimum=summary.optimum_played(comparison),
        everything=comparison.promise is None
        and bool(promised(comparison, alpha))
        and not cheapest_promised(comparison, alpha),
        grids=tuple(tables.written_grids(comparison, alpha)),
        frontier=_inline(
            plots.frontier(comparison, alpha), f"Cost and {goal.name.lower()}, alpha {shown}"
        )
        if swept or comparison.promise is None
        else "",
        boxes=_inline(plots.boxes(comparison, alpha), f"Spread over splits, alpha {shown}"),
        training=_inline(trained, f"Training curves, alpha {shown}") if trained else "",
    )


def _inline(figure: Figure, title: str) -> str:
    return Markup(plots.svg(figure, title))  # noqa: S704 - matplotlib has escaped every text
