"""A comparison as a folder: `results.json`, `table.md` and the self-contained `report.html`."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from farthing.comparison.results import results_json
from farthing.errors import MissingExtraError
from farthing.promises.texts import decimal
from farthing.recommendation.base import Comparison
from farthing.reports import payer, promises, saved, summary, tables
from farthing.reports.base import Grid, alphas, cheapest_promised, promised, rows_at, write_all
from farthing.reports.glossary import columns, explained
from farthing.reports.promises import goal_of
from farthing.reports.rendering import render
from farthing.reports.style import looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawings:
    """The plots of one alpha as inline SVG, each empty where there is nothing to draw."""

    saved: str = ""
    """What is saved against what is lost; empty where no reference is known."""
    frontier: str = ""
    boxes: str = ""
    training: str = ""
    missing: str = ""
    """Why nothing is drawn: what must be installed."""


@dataclass(frozen=True)
class AlphaSection:
    """What the page says about one alpha."""

    anchor: str
    offer: payer.Offer
    """What the first screen says."""
    reading: str
    """How to read its figure."""
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
    drawings: Drawings


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
    return render(
        "page.html",
        comparison.source,
        comparison=comparison,
        sections=[_section(comparison, alpha) for alpha in alphas(comparison)],
        setting=summary.setting(comparison),
        doubts=summary.doubts(comparison),
        words=explained(comparison),
        columns=columns(comparison),
        no_certificate=promises.NO_CERTIFICATE,
        colours={
            name: look[0] for name, look in looks(row.policy for row in comparison.rows).items()
        },
    )


def _section(comparison: Comparison, alpha: Fraction) -> AlphaSection:
    shown = decimal(alpha)
    goal = goal_of(comparison, alpha)
    beside = saved.of_comparison(comparison, alpha)
    return AlphaSection(
        anchor=f"alpha-{shown}",
        offer=payer.offer(comparison, alpha),
        reading=beside.sentence() if beside else "",
        sets=comparison.promise is None,
        what=goal.name,
        promise=summary.promise(comparison, alpha),
        reached=summary.reached(comparison, alpha),
        optimum=summary.optimum_played(comparison),
        everything=comparison.promise is None
        and bool(promised(comparison, alpha))
        and not cheapest_promised(comparison, alpha),
        grids=tuple(tables.written_grids(comparison, alpha)),
        drawings=_drawings(comparison, alpha, beside),
    )


def _drawings(
    comparison: Comparison, alpha: Fraction, beside: saved.SavedAgainstLost | None
) -> Drawings:
    try:
        from farthing.reports import plots, saved_figure  # noqa: PLC0415 - an extra, as is the next
        from farthing.reports.training import TrainingCurves, training  # noqa: PLC0415
    except MissingExtraError as error:
        return Drawings(missing=str(error))

    def inline(figure: "Figure", title: str) -> str:
        drawn = saved_figure.svg(figure, f"{title}, alpha {decimal(alpha)}")
        return Markup(drawn)  # noqa: S704 - matplotlib has escaped every text

    rows = rows_at(comparison, alpha)
    trained = training(
        [TrainingCurves(r.policy, r.label, r.curves) for r in rows if r.curves], alpha
    )
    frontier = ""
    if comparison.promise is None or any(len(row.frontier) > 1 for row in rows):
        name = goal_of(comparison, alpha).name.lower()
        frontier = inline(plots.frontier(comparison, alpha), f"Cost and {name}")
    return Drawings(
        saved=inline(saved_figure.figure(beside), "Saved and lost") if beside else "",
        frontier=frontier,
        boxes=inline(plots.boxes(comparison, alpha), "Spread over splits"),
        training=inline(trained, "Training curves") if trained else "",
    )
