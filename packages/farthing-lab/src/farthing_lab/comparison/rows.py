"""What a comparison says of each policy: who wins, its means, and the JSON list of all rows."""

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.errors import InputError
from farthing.promises.base import Promise
from farthing.promises.texts import ACCURACY, ANSWERED, REALISED, Means
from farthing.recommendation.base import FELL_BACK, METRICS, OPTIMUM, TIMES_OPTIMUM, Comparison, Row
from farthing.traces.arrays import FloatArray
from farthing_lab.comparison.names import GAINED, PROMISE_METRICS, ROUTER_FIGURES, SAVED

Value = float | str | None
GROUPS = {
    "none": "No promise",
    "online": "Threshold tracked during training",
    "split": "Exact promise (split conformal)",
    "proved": "Proved on each calibration part",
}
"""What to call the rows of each way to calibrate, in the order of the table."""


def alphas(comparison: Comparison) -> list[Fraction]:
    """Return the alphas of a comparison, in their order of appearance."""
    return list(dict.fromkeys(row.alpha for row in comparison.rows))


def rows_at(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return the rows of one alpha: those without a promise first, as in the paper's tables."""
    order = list(GROUPS)
    rows = [row for row in comparison.rows if row.alpha == alpha]
    return sorted(rows, key=lambda row: order.index(row.calibration))


def mean_of(row: Row, metric: str) -> float:
    """Return the mean over splits; NaN where the policy could not run.

    Splits in which the metric does not exist (no solvable question) are left out.
    """
    values = _known(row, metric)
    return float(values.mean()) if len(values) else float("nan")


def standard_error_of(row: Row, metric: str) -> float:
    """Return the standard error of the mean over splits; NaN with fewer than two."""
    values = _known(row, metric)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def means_of(row: Row) -> Means:
    """Return what a row came to, on average over the splits."""
    return Means(*(mean_of(row, metric) for metric in ("cost_usd", ACCURACY, REALISED, ANSWERED)))


def ranked(rows: Sequence[Row], promise: Promise) -> list[Row]:
    """Return the rows whose figure is as promised, on average over the splits, the best first.

    Of equals the first in the table. Who never proved anything has won nothing, nor has who proved
    something on too few of the splits (`Promise.least_proved`).
    """
    proved = [
        row for row in rows if ran(row) and mean_of(row, FELL_BACK) < 1 - promise.least_proved
    ]
    kept = [row for row in proved if not promise.at(row.alpha).falls_short(mean_of(row, REALISED))]
    return sorted(kept, key=lambda row: promise.merit(means_of(row)))


def promised(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return the rows with a promise at one alpha that ran; without the optimum."""
    rows = (row for row in rows_at(comparison, alpha) if row.calibration in ("split", "proved"))
    return [row for row in rows if ran(row) and row.policy != OPTIMUM]


def cheapest_promised(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return the rows whose promise took a choice, cheapest first: not those that return all.

    Under another promise than coverage, those that kept it, as `ranked` orders them.
    """
    if comparison.promise is not None:
        return ranked(promised(comparison, alpha), comparison.promise)
    return sorted(
        (row for row in promised(comparison, alpha) if not returns_everything(row)),
        key=lambda row: (mean_of(row, "cost_usd"), row.policy),
    )


def recommended(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return those of them that no single model dominates, cheapest first."""
    return [row for row in cheapest_promised(comparison, alpha) if not row.instead]


def best(comparison: Comparison, alpha: Fraction) -> Row | None:
    """Return the cheapest row to recommend; None where there is none, or more than one."""
    rows = recommended(comparison, alpha)
    if not rows:
        return None
    if comparison.promise is not None:
        return rows[0]
    least = mean_of(rows[0], "cost_usd")
    return rows[0] if sum(mean_of(row, "cost_usd") == least for row in rows) == 1 else None


def returns_everything(row: Row) -> bool:
    """Say whether no split had questions enough to promise anything tighter than every answer."""
    return row.calibration == "split" and bool(row.kappa) and not any(row.kappa)


def knows_optimum(comparison: Comparison) -> bool:
    """Say whether any row is held against a known optimum."""
    return any(TIMES_OPTIMUM in row.per_split for row in comparison.rows)


def ran(row: Row) -> bool:
    """Say whether a row has results."""
    return bool(row.per_split.get("cost_usd"))


def write_all(folder: Path, contents: Mapping[str, str], what: str) -> list[Path]:
    """Write files into a folder, which is made where there is none; return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the {what} to {folder}: {error.strerror}") from error
    return [folder / name for name in contents]


def _known(row: Row, metric: str) -> FloatArray:
    values = np.asarray(row.per_split.get(metric, []), dtype=np.float64)
    return values[~np.isnan(values)]


def results(comparison: Comparison) -> list[dict[str, Value]]:
    """Return one record a row: what the questions are, who, at which alpha, and each metric.

    Metrics are means over the splits. The standard error of metric `m` is `m_se`; what does not
    exist (the policy could not run, a split has no solvable question) is None. It is the spread
    over splits that share questions; `saved_low` and `saved_high` are a 95 % interval that is
    corrected for that, and so are those of `gained`. `ROUTER_FIGURES` are of all questions outside
    training at once and have no error.
    """
    measured = METRICS if comparison.promise is None else PROMISE_METRICS
    metrics = (*measured, TIMES_OPTIMUM, SAVED, GAINED)
    return [{"source": comparison.origin, **_record(row, metrics)} for row in comparison.rows]


def results_json(comparison: Comparison) -> str:
    """Return `results` as JSON; the same comparison gives the same text."""
    return json.dumps(results(comparison), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _record(row: Row, metrics: Sequence[str]) -> dict[str, Value]:
    record: dict[str, Value] = {
        "policy": row.policy,
        "label": row.label,
        "alpha": float(row.alpha),
        "calibration": row.calibration,
        "splits": len(row.per_split.get("cost_usd", [])),
        "note": row.note,
        "instead": row.instead,
        "for_one_answer": row.for_one_answer,
    }
    figures: dict[str, float] = {}
    for metric in metrics:
        figures |= {metric: mean_of(row, metric), f"{metric}_se": standard_error_of(row, metric)}
    for metric in (SAVED, GAINED):
        low, high = row.intervals.get(metric, (math.nan, math.nan))
        figures |= {f"{metric}_low": low, f"{metric}_high": high}
    record |= {name: None if math.isnan(value) else value for name, value in figures.items()}
    return record | {name: row.router_figures.get(name) for name in ROUTER_FIGURES}
