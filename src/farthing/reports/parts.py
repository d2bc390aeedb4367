"""How a task's budget is shared among its parts: tables, money first, and JSON."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.part_tokens import Caps
from farthing.studies.pipeline_parts import EVENLY, Row, Shared

KEY = (
    "USD and right: of tasks that chose nothing. Even shares: each part's best option for an equal "
    "share. A task is right if all its parts are."
)


def screen(found: Shared, source: str) -> Group:
    """Say what a task costs and how often it is right, in each way; then what each part gets."""
    ways = _table("Budget shared by", "USD a task", "right", "95 %")
    for at, row in enumerate(found.rows):
        ways.add_row(row.name, *_cells(row), style="bold" if at == 0 else None)
    first, beside = found.rows[0], next(row for row in found.rows if row.name == EVENLY)
    each = _table("Part", "USD", "gets", "right", "even: USD", "gets", "right")
    for part, name in enumerate(found.measured.parts):
        each.add_row(name, *_part(found, part, first), *_part(found, part, beside))
    said: list[RenderableType] = [
        Text(
            f"{source}: {len(found.measured.parts)} parts, {counted(found.tasks, 'task')} to "
            f"measure on, a budget of {dollars(found.budget_nano)} a task",
            style="bold",
        ),
        Text(""),
        ways,
        Text(""),
        each,
        Text(""),
        Text(KEY, style="dim", overflow="fold"),
    ]
    return Group(*said)


def caps_screen(found: Caps, source: str) -> Group:
    """Say what a task takes and how often it is right, in each way, with the cap of each part."""
    who = ", ".join(f"{p} ({m})" for p, m in zip(found.parts, found.models, strict=True))
    ways = _table("Shared by", "tokens", "right", "95 %", "E3 x 1000", "caps")
    for row in found.rows:
        low, high = max(0.0, row.right - row.half_interval), min(1.0, row.right + row.half_interval)
        ways.add_row(
            row.name,
            f"{row.tokens:.1f}",
            f"{row.right:.1%}",
            f"{low:.1%} to {high:.1%}",
            f"{1000 * row.e3:.2f}",
            " ".join(map(str, row.cap.tolist())),
        )
    title = f"{source}: {len(found.parts)} parts, {counted(found.tasks, 'task')} to measure on, "
    key = "Tokens: what a task really takes. E3: the share of right tasks, squared, a token."
    return Group(
        Text(f"{title}{counted(found.tokens, 'token')} a task", style="bold"),
        Text(""),
        ways,
        Text(""),
        Text(f"Caps are of {who}.", overflow="fold"),
        Text(key, style="dim", overflow="fold"),
    )


def caps_to_json(found: Caps) -> dict[str, Any]:
    """Return the table's figures."""
    return {
        "tokens": found.tokens,
        "tasks": found.tasks,
        "models": dict(zip(found.parts, found.models, strict=True)),
        "rows": [
            {
                "name": row.name,
                "caps": dict(zip(found.parts, row.cap.tolist(), strict=True)),
                "tokens": row.tokens,
                "right": row.right,
                "right_half_interval": row.half_interval,
                "e3": row.e3,
            }
            for row in found.rows
        ],
    }


def to_json(found: Shared) -> dict[str, Any]:
    """Return the tables' figures."""
    return {
        "budget_usd": usd_from_nano(found.budget_nano),
        "tasks": found.tasks,
        "same_tasks_in_all_parts": found.measured.together,
        "rows": [_record(found, row) for row in found.rows],
    }


def _table(first: str, *headings: str) -> Table:
    table = plain_table()
    table.add_column(first, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _cells(row: Row) -> list[str]:
    if row.choice is None:
        return ["none fits", "", ""]
    low, high = max(0.0, row.right - row.half_interval), min(1.0, row.right + row.half_interval)
    usd = significant(usd_from_nano(row.cost_nano), 4)
    return [usd, f"{row.right:.1%}", f"{low:.1%} to {high:.1%}"]


def _part(found: Shared, part: int, row: Row) -> list[str]:
    if row.choice is None:
        return ["", "", ""]
    option = int(row.choice[part])
    nano = int(found.batch.expected_nano[part, option])
    return [
        significant(usd_from_nano(nano), 3),
        found.measured.label(part, option),
        f"{found.batch.value[part, option]:.1%}",
    ]


def _record(found: Shared, row: Row) -> dict[str, Any]:
    if row.choice is None:
        return {"name": row.name, "parts": None}
    measured = found.measured
    return {
        "name": row.name,
        "cost_usd": usd_from_nano(row.cost_nano),
        "expected_cost_usd": usd_from_nano(row.expected_nano),
        "right": row.right,
        "right_half_interval": row.half_interval,
        "parts": {
            name: {
                "model": measured.models[int(measured.model[i, k])],
                "samples": int(measured.samples[i, k]),
                "expected_cost_usd": usd_from_nano(int(found.batch.expected_nano[i, k])),
                "chance": float(found.batch.value[i, k]),
            }
            for i, (name, k) in enumerate(zip(measured.parts, row.choice.tolist(), strict=True))
        },
    }
