"""A comparison as a folder: `results.json`, `table.md` and the self-contained `report.html`."""

from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from farthing.errors import MissingExtraError
from farthing.promises.base import Promise
from farthing.promises.texts import REALISED, decimal
from farthing.recommendation.base import Comparison, Row
from farthing.reports.payer import Offer
from farthing.reports.rendering import render
from farthing.reports.saved import Mark, SavedAgainstLost, Sweep
from farthing.reports.style import looks
from farthing_lab.comparison.names import GAINED, SAVED
from farthing_lab.comparison.rows import (
    alphas,
    best,
    cheapest_promised,
    mean_of,
    promised,
    ran,
    results_json,
    rows_at,
    write_all,
)
from farthing_lab.reports import summary, tables
from farthing_lab.reports.glossary import columns, explained
from farthing_lab.reports.summary import goal_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from farthing.promises import wording
from farthing.promises.texts import signed
from farthing.reports.payer import NOT_ALONE, in_percent, paid, within_ends


def offer(comparison: Comparison, alpha: Fraction) -> Offer:
    """Return what the first screen of a report says about one alpha."""
    row, today = best(comparison, alpha), comparison.today
    saved, within = _saved(row)
    ours = theirs = None
    if today is not None:
        theirs = paid(f"Always {today.role}", today.cost_usd, today.accuracy)
    if row is not None:
        ours = paid(row.label, mean_of(row, "cost_usd"), mean_of(row, "accuracy"))
    return Offer(
        title=goal_of(comparison, alpha).title,
        today=theirs,
        tomorrow=ours,
        saved=saved,
        saved_within=within,
        gained="" if row is None else _gained(row),
        promise=summary.claim(comparison, alpha),
        sure=summary.how_sure(comparison, row),
        until=wording.ends(None),
        finding=summary.sentence(comparison, alpha),
    )


def _saved(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "–", "nobody wins"
    if SAVED not in row.intervals:
        return "–", f"the models were {NOT_ALONE}"
    return in_percent(mean_of(row, SAVED)), within_ends(row.intervals[SAVED], in_percent)


def _gained(row: Row) -> str:
    gained = mean_of(row, GAINED)
    if isnan(gained):
        return ""
    return f"accuracy {signed(gained)} ({within_ends(row.intervals[GAINED], signed)})"


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
        package="farthing_lab",
        comparison=comparison,
        sections=[_section(comparison, alpha) for alpha in alphas(comparison)],
        setting=summary.setting(comparison),
        doubts=summary.doubts(comparison),
        words=explained(comparison),
        columns=columns(comparison),
        no_certificate=summary.NO_CERTIFICATE,
        colours={
            name: look[0] for name, look in looks(row.policy for row in comparison.rows).items()
        },
    )


def _section(comparison: Comparison, alpha: Fraction) -> dict[str, Any]:
    """Return what the page says about one alpha, by the names that its template has for it."""
    beside, sets = of_comparison(comparison, alpha), comparison.promise is None
    kept = promised(comparison, alpha)
    return {
        "anchor": f"alpha-{decimal(alpha)}",
        "offer": offer(comparison, alpha),
        "reading": beside.sentence() if beside else "",
        "sets": sets,
        "what": goal_of(comparison, alpha).name,
        "promise": summary.promise(comparison, alpha),
        "reached": summary.reached(comparison, alpha),
        "optimum": summary.optimum_played(comparison),
        "everything": sets and bool(kept) and not cheapest_promised(comparison, alpha),
        "grids": tables.written_grids(comparison, alpha),
        "drawings": _drawings(comparison, alpha, beside),
    }


def _drawings(
    comparison: Comparison, alpha: Fraction, beside: SavedAgainstLost | None
) -> dict[str, str]:
    """Return the plots of one alpha as inline SVG, each empty where there is nothing to draw."""
    drawn = dict.fromkeys(("saved", "frontier", "boxes", "training", "missing"), "")
    try:
        from farthing.reports import saved_figure  # noqa: PLC0415 - an extra, as is the next
        from farthing_lab.reports import plots  # noqa: PLC0415 - an extra, as is the next
        from farthing_lab.reports.training import training  # noqa: PLC0415
    except MissingExtraError as error:
        return drawn | {"missing": str(error)}

    def inline(figure: "Figure", title: str) -> str:
        svg = saved_figure.svg(figure, f"{title}, alpha {decimal(alpha)}")
        return Markup(svg)  # noqa: S704 - matplotlib has escaped every text

    rows = rows_at(comparison, alpha)
    if beside:
        drawn["saved"] = inline(saved_figure.figure(beside), "Saved and lost")
    if comparison.promise is None or any(len(row.frontier) > 1 for row in rows):
        name = goal_of(comparison, alpha).name.lower()
        drawn["frontier"] = inline(plots.frontier(comparison, alpha), f"Cost and {name}")
    drawn["boxes"] = inline(plots.boxes(comparison, alpha), "Spread over splits")
    if trained := training(rows, alpha):
        drawn["training"] = inline(trained, "Training curves")
    return drawn


def of_comparison(comparison: Comparison, alpha: Fraction) -> SavedAgainstLost | None:
    """Return what was compared at one alpha; None where the reference was not recorded alone."""
    today, promise = comparison.today, comparison.promise
    if today is None or not today.cost_usd:
        return None
    held = promise if promise is not None and promise.held_to_reference else None
    winner = best(comparison, alpha)
    marks, sweeps = [], []
    for row in rows_at(comparison, alpha):
        lost = -mean_of(row, GAINED) if held is None else _top(held) - mean_of(row, REALISED)
        if not ran(row) or SAVED not in row.per_split or isnan(lost):
            continue
        saved, chosen = mean_of(row, SAVED), row is winner
        if not saved and not lost and not chosen:  # the reference, or what proved nothing
            continue
        within = None
        if row is winner and GAINED in row.intervals and (held is None or held.needs_gold):
            low, high = row.intervals[GAINED]
            within = None if isnan(low) else (-high, -low)  # of a loss; None of a single split
        single = row.policy.startswith("always-") and not chosen
        marks.append(Mark(row.policy, row.label, saved, lost, within, single, chosen))
        reached = today.accuracy if held is None else _top(held)
        swept = sorted(row.curve if held is None else row.frontier)
        if len(swept) > 1:
            points = tuple((reached - right, 1 - cost / today.cost_usd) for cost, right in swept)
            sweeps.append(Sweep(row.policy, row.label, points))
    measure = "accuracy" if held is None or held.needs_gold else "agreement"
    allowed = None if held is None else float(held.margin)
    return SavedAgainstLost(today.role, measure, allowed, tuple(marks), tuple(sweeps))


def _top(held: Promise) -> float:
    """Return the figure of the reference itself: no difference, or all answers its own."""
    return (held.line or 0.0) + float(held.margin)
