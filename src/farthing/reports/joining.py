"""What a model that joins is worth, money first, and as JSON."""

from typing import Any

from rich.console import Group
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.cold_start import Joined

KEY = (
    "Each question goes to one model, by estimated success and price, on average within the "
    "budget. Right: on {} held out, as recorded of the others, as estimated of the "
    "one that joins."
)


def screen(found: Joined, source: str) -> Group:
    """Say what it costs, what it is expected to do, and who would be asked."""
    few, (low, high) = found.few, found.interval
    n, right = len(few.history.right), int(few.history.right.sum())
    beside = plain_table()
    beside.add_column("Model", overflow="fold")
    for heading in ("USD a question", "right"):
        beside.add_column(heading, justify="right", no_wrap=True)
    mine = (few.name, few.cost_nano, found.accuracy)
    for name, cost, share in sorted([*found.others, mine], key=lambda one: (one[1], one[0])):
        joins = name == few.name
        style = "bold" if joins else None
        expected = f"{share:.1%}"
        beside.add_row(f"{name} (joins)" if joins else name, _usd(cost), expected, style=style)
    table = plain_table()
    for heading in ("Budget, USD a question", "right without it", "with it", "asked it"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            _usd(row.budget_nano), _share(row.without), _share(row.joined), f"{row.share:.0%}"
        )
    others = counted(len(found.models), "other model")
    return Group(
        Text(
            f"{source}: {few.name} costs {dollars(few.cost_nano)} a question and is expected right "
            f"on {found.accuracy:.1%} (95 %: {low:.1%} to {high:.1%})",
            style="bold",
            overflow="fold",
        ),
        Text(
            f"From {counted(n, 'outcome')}, {right:,} of them right, and "
            f"{counted(found.questions, 'question')} to {others}; "
            "it was asked nothing more.",
            overflow="fold",
        ),
        Text(""),
        beside,
        Text(""),
        table,
        Text(""),
        Text(KEY.format(counted(found.routed, "question")), style="dim", overflow="fold"),
    )


def to_json(found: Joined) -> dict[str, Any]:
    """Return the same as a record."""
    return {
        "model": found.few.name,
        "outcomes": len(found.few.history.right),
        "right": int(found.few.history.right.sum()),
        "cost_usd": usd_from_nano(found.few.cost_nano),
        "accuracy": found.accuracy,
        "accuracy_interval": list(found.interval),
        "questions": found.questions,
        "routed": found.routed,
        "others": [
            {"model": name, "cost_usd": usd_from_nano(cost), "accuracy": share}
            for name, cost, share in found.others
        ],
        "budgets": [
            {
                "budget_usd": usd_from_nano(row.budget_nano),
                "right_without": row.without,
                "right_with": row.joined,
                "share_asked": row.share,
            }
            for row in found.rows
        ],
    }


def _usd(nano: int) -> str:
    return significant(usd_from_nano(nano), 4)


def _share(value: float | None) -> str:
    return "too dear" if value is None else f"{value:.1%}"
