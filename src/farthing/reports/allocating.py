"""An allocation as a table, money first, and as JSON."""

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.batch_allocation import Allocated, Row

KEY = (
    "By price alone: the same, but without reading the questions. Drawn at random: each model that "
    "leaves enough for the other questions is as likely."
)


def screen(found: Allocated, source: str) -> Group:
    """Say what the batch costs and brings, beside what is done without looking."""
    n, measured = len(found.batch), found.rows[0].real is not None
    table = plain_table()
    table.add_column("Who answers", overflow="fold")
    for heading in (
        "at most, USD" if found.budget.at_most else "costs, USD",
        "right",
        *(["really, USD", "right", "95 %"] * measured),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for at, row in enumerate(found.rows):
        table.add_row(*_cells(row, found, measured=measured), style="bold" if at == 0 else None)
    title = f"{source}: {counted(n, 'question')}, a budget of {dollars(found.budget.nano)}"
    drawn: list[RenderableType] = [
        Text(title, style="bold"),
        Text(""),
        table,
        Text(""),
        Text(_shares(found), overflow="fold"),
        Text(
            f"{_right(found.allocation.value)} right answers expected, at most "
            f"{_right(found.allocation.bound)} by any choice within the budget; the batch can "
            f"cost up to {dollars(found.allocation.largest_nano)}.",
            overflow="fold",
        ),
    ]
    drawn.append(Text(KEY, style="dim", overflow="fold"))
    if any(not row.within for row in found.rows):
        drawn.append(Text("* costs more than the budget", style="dim"))
    return Group(*drawn)


def to_json(found: Allocated) -> dict[str, Any]:
    """Return the table's figures."""
    return {
        "questions": len(found.batch),
        "budget_usd": usd_from_nano(found.budget.nano),
        "bound": found.allocation.bound,
        "largest_cost_usd": usd_from_nano(found.allocation.largest_nano),
        "asked": dict(zip(found.models, _counts(found), strict=True)),
        "rows": [_record(row) for row in found.rows],
    }


def assignments(found: Allocated, ids: list[str]) -> list[dict[str, Any]]:
    """Return a record for each question: who answers it."""
    batch, choice = found.batch, found.allocation.choice
    return [
        {
            "id": ids[i],
            "model": found.models[k],
            "chance": round(float(batch.value[i, k]), 6),
            "expected_cost_usd": usd_from_nano(int(batch.expected_nano[i, k])),
            "largest_cost_usd": usd_from_nano(int(batch.largest_nano[i, k])),
        }
        for i, k in enumerate(choice.tolist())
    ]


def _cells(row: Row, found: Allocated, *, measured: bool) -> list[str]:
    if row.allocation is None:
        return [row.name, "none fits", *[""] * (4 if measured else 1)]
    star = "" if row.within else " *"
    spent = row.allocation
    nano = spent.largest_nano if found.budget.at_most else spent.expected_nano
    cells = [row.name + star, _usd(nano), f"{spent.value / len(found.batch):.1%}"]
    if row.real is not None:
        low, high = row.real.interval
        share = row.real.right / row.real.questions
        cells += [_usd(row.real.cost_nano), f"{share:.1%}", f"{low:.1%} to {high:.1%}"]
    return cells


def _record(row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {"name": row.name, "within_budget": row.within}
    if row.allocation is not None:
        record["expected_cost_usd"] = usd_from_nano(row.allocation.expected_nano)
        record["largest_cost_usd"] = usd_from_nano(row.allocation.largest_nano)
        record["expected_right"] = row.allocation.value
    if row.real is not None:
        record["cost_usd"] = usd_from_nano(row.real.cost_nano)
        record["right"] = row.real.right
        record["right_interval"] = list(row.real.interval)
    return record


def _counts(found: Allocated) -> list[int]:
    counts: list[int] = np.bincount(found.allocation.choice, minlength=len(found.models)).tolist()
    return counts


def _shares(found: Allocated) -> str:
    asked = sorted(zip(_counts(found), found.models, strict=True), reverse=True)
    return "Asked: " + ", ".join(f"{name} {n:,}" for n, name in asked if n) + "."


def _usd(nano: int) -> str:
    return significant(usd_from_nano(nano), 4)


def _right(value: float) -> str:
    return f"{value:,.1f}"
