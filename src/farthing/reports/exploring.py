"""What came of a cold start as a table, money first, and as JSON."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from farthing.money import dollars, significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.online_learning import Explored, Judged, Row

KEY = (
    "In hindsight: models mixed as a linear program would, knowing all grades. Of all: what is not "
    "answered counts as not right."
)


def screen(found: Explored, judged: Judged | None, source: str) -> Group:
    """Say what the stream cost and brought, beside other ways to spend as much."""
    table = plain_table()
    table.add_column("Who answers", overflow="fold")
    for heading in ("spent, USD", "answered", "right", "of all", "95 % of right"):
        table.add_column(heading, justify="right", no_wrap=True)
    for at, row in enumerate(found.rows):
        table.add_row(*_cells(row, found.questions), style="bold" if at == 0 else None)
    asked = counted(found.questions, "question")
    said = f"{source}: {asked}, a budget of {dollars(found.budget_nano)}"
    drawn: list[RenderableType] = [Text(said, style="bold"), Text(""), table, Text("")]
    drawn.append(Text(_shares(found), overflow="fold"))
    if judged is not None:
        drawn.append(Text(_told(judged), overflow="fold"))
    drawn.append(Text(KEY, style="dim", overflow="fold"))
    return Group(*drawn)


def to_json(found: Explored, judged: Judged | None) -> dict[str, Any]:
    """Return the table's figures."""
    record: dict[str, Any] = {
        "questions": found.questions,
        "budget_usd": usd_from_nano(found.budget_nano),
        "asked": dict(zip(found.models, _calls(found), strict=True)),
        "rows": [_record(row) for row in found.rows],
    }
    if judged is not None:
        value = judged.value
        record["value_of"] = {
            "model": judged.model,
            "estimate": value.estimate,
            "interval": [value.low, value.high],
            "agreed": value.agreed,
            "questions": value.questions,
            "really": judged.really,
        }
    return record


def _cells(row: Row, questions: int) -> list[str]:
    spent = significant(usd_from_nano(row.spent_nano), 4)
    if row.interval is None:
        return [row.name, spent, "0", "", "", ""]
    low, high = row.interval
    share = f"{row.right / row.answered:.1%}"
    of_all = f"{row.right / questions:.1%}"
    return [row.name, spent, f"{row.answered:,}", share, of_all, f"{low:.1%} to {high:.1%}"]


def _record(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "spent_usd": usd_from_nano(row.spent_nano),
        "answered": row.answered,
        "right": row.right,
        "right_interval": None if row.interval is None else list(row.interval),
    }


def _calls(found: Explored) -> list[int]:
    calls: list[int] = found.session.calls.tolist()
    return calls


def _shares(found: Explored) -> str:
    asked = sorted(zip(_calls(found), found.models, strict=True), reverse=True)
    return "Asked: " + ", ".join(f"{name} {n:,}" for n, name in asked if n) + "."


def _told(judged: Judged) -> str:
    value = judged.value
    if value.estimate is None:
        return f"{judged.model} was never drawn while the budget allowed it; nothing is known."
    return (
        f"By this record alone {judged.model}, asked for everything, is right on "
        f"{value.estimate:.1%} (95 %: {value.low:.1%} to {value.high:.1%}); it was drawn on "
        f"{value.agreed:,} of {counted(value.questions, 'question')}. "
        f"Really it is {judged.really:.1%}."
    )
