"""What methods came to in `recommend.py`, as figures of a cell and as tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from farthing_lab.comparison.pools import Outcome, summary

OURS = "recommend"
ROUNDING = 1e-9
"""A margin that is 0 may come out below it by so much."""
T = TypeVar("T")

Row = dict[str, float]
"""A method's figures in a cell, which is a pool, an epsilon and a table."""
Cell = dict[str, Row]
"""By method."""


def figures(
    outcomes: Mapping[str, Sequence[Outcome]], reference: Sequence[Outcome], overlap: float
) -> Cell:
    """Return a cell's figures: those of `Summary`, and what each method costs beside others.

    `ratio` is to the rival that is cheapest in hindsight, by the mean over draws; its error is
    paired over draws. The error of `kept` is that of a mean of draws which correlate by `overlap`,
    with two draws added, one of which was kept, so that few draws that agree do not look certain.

    Args:
        outcomes: of each method, one a draw.
        reference: what asking the reference came to, one a draw.
        overlap: share of a test part that another has in common with it, on average.
    """
    costs = {label: np.array([one.cost for one in each]) for label, each in outcomes.items()}
    best = min(_rivals(costs), key=lambda each: float(each.mean()))
    strong = float(np.mean([one.cost for one in reference]))
    n, rows = len(best), {}
    for label, each in outcomes.items():
        ratio = float(costs[label].mean() / best.mean())
        apart = (costs[label] - ratio * best).std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
        true = sum(one.margin >= -ROUNDING or one.fell_back for one in each)
        share = (true + 1) / (n + 2)
        rows[label] = vars(replace(summary(list(each)), kept=true / n)) | {
            "kept_error": float(np.sqrt(share * (1 - share) * (overlap + (1 - overlap) / n))),
            "ratio": ratio,
            "ratio_error": float(apart / best.mean()),
            "of_reference": float(costs[label].mean()) / strong,
        }
    return rows


def show(title: str, rows: Cell) -> None:
    """Print a cell's table, the cheapest first."""
    print(
        f"\n{title}\n\n"
        "| | $ per 1,000 | of the cheapest rival | of the reference | kept | fell back |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for name, row in sorted(rows.items(), key=lambda item: item[1]["cost"]):
        print(
            f"| {name} | {row['cost']:.3f} ± {row['cost_error']:.3f} "
            f"| {row['ratio']:.2f} ± {row['ratio_error']:.2f} | {row['of_reference']:.2f} "
            f"| {row['kept']:.2f} ± {row['kept_error']:.2f} | {row['fell_back']:.2f} |",
            flush=True,
        )


def show_groups(title: str, groups: Mapping[str, Mapping[str, Cell]]) -> None:
    """Print what groups of cells come to: the ratio to the cheapest rivals, and how it falls back.

    Args:
        title: of the table.
        groups: by name, the cells by their titles.
    """
    print(
        f"\n{title}\n\n"
        "| | cells | geometric mean | worst | of the reference, worst | fell back more, worst |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for group, cells in groups.items():
        if cells:
            worst, ratio = _worst({of: rows[OURS]["ratio"] for of, rows in cells.items()})
            mean = _geometric_mean(rows[OURS]["ratio"] for rows in cells.values())
            strong = max(rows[OURS]["of_reference"] for rows in cells.values())
            more = max(
                rows[OURS]["fell_back"] - min(_rivals(rows), key=_cost)["fell_back"]
                for rows in cells.values()
            )
            print(
                f"| {group} | {len(cells)} | {mean:.2f} | {ratio:.2f} ({worst}) "
                f"| {strong:.2f} | {more:+.2f} |",
                flush=True,
            )


def show_fixed(cells: Mapping[str, Cell]) -> None:
    """Print what `recommend` costs beside the one rival that is best over all these cells.

    That is what a user could pick who has no hindsight about a cell.
    """
    if not cells:
        return
    labels = [label for label in next(iter(cells.values())) if label != OURS]
    means = {
        label: _geometric_mean(rows[label]["ratio"] for rows in cells.values()) for label in labels
    }
    fixed = min(labels, key=lambda label: means[label])
    ratios = {of: rows[OURS]["cost"] / rows[fixed]["cost"] for of, rows in cells.items()}
    worst, ratio = _worst(ratios)
    print(
        f"\nThe best fixed rival is {fixed}, at {means[fixed]:.2f} of the cheapest; recommend "
        f"costs {_geometric_mean(ratios.values()):.2f} of it, at worst {ratio:.2f} ({worst})",
        flush=True,
    )


def _rivals(rows: Mapping[str, T]) -> list[T]:
    return [row for label, row in rows.items() if label != OURS]


def _cost(row: Row) -> float:
    return row["cost"]


def _worst(ratios: Mapping[str, float]) -> tuple[str, float]:
    title = max(ratios, key=lambda of: ratios[of])
    return title, ratios[title]


def _geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))
