"""Plans of a workflow as tables, and as JSON."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.workflow_plan import Plans

KEY = (
    "Even share: each part gets its share of money and time. Greedy: what is likeliest right now. "
    "All MODEL x N: the same for every part, again and again. Nothing is started that could cost "
    "more than is left."
)


def screen(found: Plans, source: str) -> Group:
    """Say what the planner starts, and how often each plan is done in time."""
    limit = f" and {found.left.seconds:g} s" if isfinite(found.left.seconds) else ""
    title = f"{source}: {dollars(found.left.nano)}{limit}, {counted(found.executions, 'execution')}"
    parts = _table("Part", "first given to", "so in", "starts", "costs, USD", "done")
    for one in found.parts:
        parts.add_row(
            one.part,
            f"{one.model} x {one.samples}" if one.model else "nobody",
            f"{one.share:.0%}" if one.model else "",
            f"{one.starts:.1f}",
            significant(usd_from_nano(one.expected_nano)),
            f"{one.done:.0%}",
        )
    plans = _table("Plan", "done in time", "95 %", "costs, USD", "seconds")
    for at, row in enumerate(found.rows):
        low, high = row.interval
        plans.add_row(
            row.name,
            f"{row.done:.1%}",
            f"{low:.1%} to {high:.1%}",
            significant(usd_from_nano(row.spent_nano)),
            significant(row.seconds),
            style="bold" if at == 0 else None,
        )
    key = Text(KEY, style="dim", overflow="fold")
    return Group(Text(title, style="bold"), Text(""), parts, Text(""), plans, Text(""), key)


def to_json(found: Plans) -> dict[str, Any]:
    """Return the figures of both tables."""
    return {
        "budget_usd": usd_from_nano(found.left.nano),
        "deadline_s": found.left.seconds if isfinite(found.left.seconds) else None,
        "executions": found.executions,
        "parts": [_in_usd(asdict(one), "expected_nano") for one in found.parts],
        "plans": [_in_usd(asdict(one), "spent_nano") for one in found.rows],
    }


def _in_usd(record: dict[str, Any], nano: str) -> dict[str, Any]:
    return {**record, "cost_usd": usd_from_nano(record.pop(nano))}


def _table(first: str, *others: str) -> Table:
    table = plain_table()
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
