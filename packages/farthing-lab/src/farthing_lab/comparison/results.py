"""A comparison as the JSON list that other programs read."""

import json
import math
from collections.abc import Sequence

from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Comparison, Row
from farthing_lab.comparison.names import GAINED, PROMISE_METRICS, ROUTER_FIGURES, SAVED
from farthing_lab.comparison.rows import mean_of, standard_error_of

Value = float | str | None


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
