"""What a report says of each policy of a comparison."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.errors import InputError
from farthing.recommendation.base import OPTIMUM, TIMES_OPTIMUM, Comparison, Row
from farthing_lab.comparison.ranking import ranked

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
    values = _known(row.per_split.get(metric, []))
    return float(values.mean()) if len(values) else float("nan")


def standard_error_of(row: Row, metric: str) -> float:
    """Return the standard error of the mean over splits; NaN with fewer than two."""
    values = _known(row.per_split.get(metric, []))
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def promised(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return the rows with a promise at one alpha that ran; without the optimum."""
    rows = (row for row in rows_at(comparison, alpha) if row.calibration in ("split", "proved"))
    return [row for row in rows if ran(row) and row.policy != OPTIMUM]


def cheapest_promised(comparison: Comparison, alpha: Fraction) -> list[Row]:
    """Return the rows whose promise took a choice, cheapest first: not those that return all.

    Under another promise than coverage, those that kept it, as `ranking.ranked` orders them.
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


def _known(values: Iterable[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    array = np.asarray(list(values), dtype=np.float64)
    return array[~np.isnan(array)]
