"""A sweep as a table on the terminal, and as the files that other programs read."""

import csv
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from math import isnan
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.comparison.results import results
from farthing.money import significant
from farthing.promises.texts import decimal, percent
from farthing.recommendation.base import METRICS
from farthing.reports.base import PER_THOUSAND, Cell, Grid, Line, thousand
from farthing.reports.folder import write_all
from farthing.reports.tables import Fitted
from farthing.studies.settings import written
from farthing.studies.tuning import Sweep, Tried

SHOWN = 20
"""Settings that the table has room for; the files have all of them."""
KEY = "Change: in cost, against the unchanged policy; Len: rounds; Set: answers"


def render_sweep(sweep: Sweep) -> Group:
    """Draw the settings, the cheapest first, and what came of the winner."""
    drawn: list[RenderableType] = []
    if sweep.ranked:
        grid = _grid(sweep)
        notes = [KEY, *grid.notes]
        drawn += [Fitted(grid), *(Text(note, style="dim") for note in notes), Text("")]
    return Group(*drawn, Text(verdict(sweep)))


def verdict(sweep: Sweep) -> str:
    """Say in a sentence or two what won, and how it does on the test questions."""
    if sweep.test is None:
        done = sum(len(one.figures) for one in sweep.tried)
        return f"{done} of {len(sweep.tried) * sweep.trainings} trainings are done."
    figures = {row["policy"]: row for row in results(sweep.test)}
    before, *after = figures.values()
    on = f"On {before['splits']} splits of questions that took no part in the choice"
    if not after:
        return (
            f"Nothing tried is cheaper than {sweep.search.policy} unchanged. {on}: "
            f"{_judged(before)}."
        )
    return (
        f"Best: {written(sweep.ranked[0].changed)}. {on}: {_judged(after[0])}, and unchanged "
        f"{_judged(before)}{_difference(sweep)}"
    )


def _judged(row: Mapping[str, float | str | None]) -> str:
    cost, coverage = row["cost_usd"], row["coverage"]
    if not isinstance(cost, float) or not isinstance(coverage, float):
        return "interrupted"
    return f"{thousand(cost)} per 1,000 at a coverage of {coverage:.3f}"


def _difference(sweep: Sweep) -> str:
    """Return by how much the winner is dearer, with its interval, for the end of the sentence."""
    found = [d for d in sweep.test.differences if d.metric == "cost_usd"] if sweep.test else []
    if not found:
        return "."
    (one,) = found  # the dearer one less the cheaper one
    sign = -1 if one.policy == sweep.search.policy else 1
    mean, low, high = (sign * value for value in (one.mean, one.low, one.high))
    low, high = min(low, high), max(low, high)
    return (
        f": {thousand(abs(mean))} {'more' if mean > 0 else 'less'} (95 % interval of the "
        f"difference {thousand(low)} to {thousand(high)})."
    )


def _grid(sweep: Sweep) -> Grid:
    headings = ("Parameters", "$/1,000", "Change", "Coverage", "Len", "Set")
    asked = f"at least {percent(1 - sweep.alpha)} of each fold covered"
    return Grid(
        f"{sweep.search.policy}, alpha = {decimal(sweep.alpha)}: {asked}, {sweep.trainings} "
        "trainings each",
        headings,
        headings,
        tuple(_line(sweep, one) for one in sweep.ranked[:SHOWN]),
        _left_out(sweep),
    )


def _left_out(sweep: Sweep) -> tuple[str, ...]:
    more = len(sweep.ranked) - SHOWN
    return (f"and {more} dearer ones: see results.csv",) if more > 0 else ()


def _line(sweep: Sweep, one: Tried) -> Line:
    cells = (
        Cell(significant(one.mean("cost_usd") * PER_THOUSAND)),
        _change(sweep.tried[0], one),
        Cell(f"{one.mean('coverage'):.3f}"),
        Cell(f"{one.mean('avg_len'):.2f}"),
        Cell(f"{one.mean('set_size'):.2f}"),
    )
    label = written(one.changed)
    return Line(sweep.search.policy, label, cells, best=one is sweep.ranked[0])


def _change(before: Tried, one: Tried) -> Cell:
    """Return by how much it is dearer on the same folds, relative, with its standard error."""
    if one is before or len(one.figures) != len(before.figures):
        return Cell("–")
    base = before.mean("cost_usd")
    pairs = zip(one.figures, before.figures, strict=True)
    change = np.array([ours["cost_usd"] - theirs["cost_usd"] for ours, theirs in pairs])
    if base <= 0:
        return Cell("–")
    error = change.std(ddof=1) / len(change) ** 0.5 / base
    return Cell(f"{change.mean() / base:+.1%}", f"{error:.1%}")


def write_sweep(sweep: Sweep, folder: Path) -> list[Path]:
    """Write `results.json` and `results.csv`; the same sweep gives the same bytes.

    Raises:
        InputError: the folder cannot be made or written.
    """
    contents = {"results.json": sweep_json(sweep), "results.csv": sweep_csv(sweep)}
    return write_all(folder, contents, "results")


def sweep_json(sweep: Sweep) -> str:
    """Return what was asked, every setting with its figures, the winner and its test figures."""
    whole = sweep.ranked
    best = whole[0] if sweep.test else None
    record = {
        "source": sweep.source,
        "fingerprint": sweep.fingerprint,
        "policy": sweep.search.policy,
        "tried": list(sweep.search.choices),
        "draw": sweep.search.draw,
        "folds": sweep.search.folds,
        "alpha": str(sweep.alpha),
        "population": sweep.plan.population,
        "seed": sweep.plan.seed,
        "seeds": sweep.plan.seeds,
        "sizes": dict(sweep.sizes),
        "features": list(sweep.features),
        "winner": None if best is None else dict(best.settings),
        "test": [] if sweep.test is None else results(sweep.test),
        "settings": [
            {
                "changed": dict(one.changed),
                "settings": dict(one.settings),
                "trainings": [_known(figures) for figures in one.figures],
            }
            for one in sweep.tried
        ],
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sweep_csv(sweep: Sweep) -> str:
    """Return one line a setting, the cheapest first: every setting, and the mean of each metric."""
    out = io.StringIO()
    names = list(sweep.tried[0].settings)
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["policy", "alpha", *names, "trainings", *METRICS])
    for one in sweep.ranked:
        means = ["" if isnan(mean := one.mean(name)) else repr(mean) for name in METRICS]
        values = [one.settings[name] for name in names]
        alpha = float(Fraction(sweep.alpha))
        table.writerow([sweep.search.policy, alpha, *values, len(one.figures), *means])
    return out.getvalue()


def _known(figures: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if isnan(value) else value for name, value in figures.items()}
