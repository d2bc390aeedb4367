"""What came of promises in `corl_beside.py`, as records and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from corl_recorded import Paid
from rich import box
from rich.table import Table

from farthing.money import significant
from farthing.promises.figures import clopper_pearson
from farthing.traces.arrays import FloatArray
from farthing_lab.comparison.baselines import paired_interval
from farthing_lab.comparison.pools import PER_THOUSAND
from farthing_lab.corl.base import Mode


@dataclass(frozen=True)
class Outcome:
    """What came of a promise on the questions that test."""

    cost: float
    """USD per 1,000 questions."""
    accuracy: float
    saved: float
    """Against always the reference."""
    kept: bool
    """Whether what was promised is true of these questions."""
    fell_back: bool
    """Whether nothing cheaper was proved, so that the reference answered."""


@dataclass
class Found:
    """What came of one promise: an outcome a split, and who could not run."""

    outcomes: dict[str, list[Outcome]]
    equal: dict[str, list[list[float]]]
    """Of each split: what a method costs at the accuracy of each mode; NaN: it reaches none."""
    reverse: dict[str, list[float]]
    """Of each split: what the modes cost at the accuracy that the method is proved at."""
    skipped: dict[str, str]


def fixed_record(paid: Paid, alone: Paid) -> dict[str, Any]:
    """Return what somebody costs and gets right on all fresh questions."""
    cost, right = paid
    return {
        "usd_per_1000": float(cost.mean()) * PER_THOUSAND,
        "accuracy": float(right.mean()),
        "accuracy_interval": clopper_pearson(int(right.sum()), len(right)),
        "saved": 1 - int(cost.sum()) / int(alone[0].sum()),
    }


def record(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return means over splits, with intervals that know that splits share their questions."""
    none = [0.0] * len(outcomes)

    def interval(values: Sequence[float]) -> tuple[float, ...]:
        return paired_interval(values, none, 0.5)

    accuracy = interval([one.accuracy for one in outcomes])
    cost = interval([one.cost for one in outcomes])
    return {
        "usd_per_1000": cost[0],
        "usd_interval": cost[1:],
        "accuracy": accuracy[0],
        "accuracy_interval": accuracy[1:],
        "saved": float(np.mean([one.saved for one in outcomes])),
        "kept": float(np.mean([one.kept for one in outcomes])),
        "fell_back": float(np.mean([one.fell_back for one in outcomes])),
    }


def equal_record(found: Found, label: str) -> dict[str, Any]:
    """Return what a method costs at each mode's accuracy, and the modes at the method's."""
    columns = np.array(found.equal[label]).T
    return {
        "usd_at_modes": [_mean(column) for column in columns],
        "reached": [float(np.mean(~np.isnan(column))) for column in columns],
        "modes_usd_at_its_accuracy": _mean(np.array(found.reverse[label])),
        "modes_reach_it": float(np.mean(~np.isnan(found.reverse[label]))),
    }


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return rows, the cheapest first."""
    drawn = Table(title=title, box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    drawn.add_column("", no_wrap=True)
    for name in ("accuracy", "USD/1,000", "saved, %", "kept", "fell back"):
        drawn.add_column(name, justify="right", no_wrap=True)
    for name, row in sorted(rows.items(), key=lambda item: float(item[1]["usd_per_1000"])):
        low, high = row["accuracy_interval"]
        proof = [f"{row[key]:.2f}" if key in row else "–" for key in ("kept", "fell_back")]
        accuracy = f"{row['accuracy']:.3f} [{low:.2f}, {high:.2f}]"
        usd = significant(row["usd_per_1000"])
        drawn.add_row(name, accuracy, usd, f"{100 * row['saved']:.0f}", *proof)
    return drawn


def equal_table(modes: Sequence[Mode], own: Sequence[float], rows: Mapping[str, Any]) -> Table:
    """Return what methods cost at the accuracy of each mode, and the modes at theirs."""
    drawn = Table(
        title="USD/1,000 at equal accuracy", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    drawn.add_column("", no_wrap=True)
    for mode in modes:
        drawn.add_column(f"as {mode.name}", justify="right")
    drawn.add_column("modes as it", justify="right")
    drawn.add_row("CORL's mode itself", *map(significant, own), "")
    for name, row in rows.items():
        pairs = zip(row["usd_at_modes"], row["reached"], strict=True)
        reverse = said(row["modes_usd_at_its_accuracy"], row["modes_reach_it"])
        drawn.add_row(name, *(said(*pair) for pair in pairs), reverse)
    return drawn


def said(usd: float | None, reached: float) -> str:
    """Write a cost, and in how many of the splits the accuracy is reached where not in all."""
    if usd is None:
        return "not reached"
    return significant(usd) + ("" if reached == 1 else f" ({100 * reached:.0f} %)")
