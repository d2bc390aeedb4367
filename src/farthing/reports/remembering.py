"""What to pay for memory, as a table, money first, as JSON, and as contexts to send."""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.memory import Row, Study
from farthing.tasks.base import Question


def screen(found: Study, source: str) -> Group:
    """Say what each way of paying costs and brings."""
    n = len(found.rows[0].remembered)
    table = plain_table()
    table.add_column("Memory", overflow="fold")
    for heading in ("USD in all", "a question", "right, %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(f"{row.name} *" if row.held else row.name, *_cells(row))
    note = (
        "* held to the budget. Fixed: the tiers of search, link, filter, rank and read that were "
        f"best within it on {counted(found.learned, 'question')} to learn from. ± half a 95 % "
        "interval."
    )
    heading = f"{source}: {counted(n, 'question')}, a budget of {dollars(found.budget_nano)}"
    return Group(Text(heading, style="bold"), Text(""), table, Text(note, style="dim"))


def to_json(found: Study) -> dict[str, Any]:
    """Return the table's figures."""
    return {
        "questions": len(found.rows[0].remembered),
        "learned_from": found.learned,
        "budget_usd": usd_from_nano(found.budget_nano),
        "weight": found.weight,
        "rows": [
            {
                "name": row.name,
                "held": row.held,
                "total_cost_usd": usd_from_nano(row.cost_nano),
                "cost_usd": usd_from_nano(row.cost_nano) / len(row.remembered),
                "right": None if row.right is None else float(np.mean(row.right)),
            }
            for row in found.rows
        ],
    }


def contexts(found: Study, asked: Sequence[Question]) -> Iterator[dict[str, Any]]:
    """Yield each question with the tiers paid for, their cost, and what to send with it."""
    for question, one in zip(asked, found.rows[0].remembered, strict=True):
        yield {
            "id": question.id,
            "question": question.text,
            "tiers": one.said,
            "cost_usd": usd_from_nano(one.cost_nano),
            "context": one.context,
        }


def _cells(row: Row) -> list[str]:
    n, total = len(row.remembered), usd_from_nano(row.cost_nano)
    if row.right is None:
        right = "not graded"
    else:
        mean = float(np.mean(row.right))
        right = f"{100 * mean:.1f} ± {196 * sqrt(mean * (1 - mean) / n):.1f}"
    return [significant(total), significant(total / n), right]
