"""What a policy costs and how often it is right, beside each single model, for a terminal."""

from collections.abc import Mapping

from rich.console import Group
from rich.markup import escape
from rich.text import Text

from farthing.methods.baselines.models import NOT_ALONE
from farthing.money import significant
from farthing.process.value import Figures, Value
from farthing.reports.plain_table import plain_table


def beside(value: Value, alone: Mapping[str, Figures | None]) -> Group:
    """Show the policy, each single model, and what is saved against the reference.

    Args:
        value: the statement.
        alone: role to what it came to by itself; None where it was not recorded alone.
    """
    table = plain_table()
    table.add_column(f"{value.yours.questions:,} {value.part} questions", overflow="fold")
    timed = any(one and one.latency_s for one in (value.yours, *alone.values()))
    for heading in (
        "USD a question",
        value.measure.capitalize(),
        *(("Median", "95th") if timed else ()),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    unanswered = value.yours.unanswered
    you = f"You, {unanswered:,} unanswered" if unanswered else "You"
    table.add_row(you, *_cells(value.yours), style="bold")
    for role, figures in alone.items():
        cells = _cells(figures) if figures else [NOT_ALONE]
        table.add_row(f"Always {escape(role)}", *cells)
    return Group(table, *map(Text, value.findings()))


def _cells(figures: Figures) -> list[str]:
    seconds = figures.latency_s or ()
    times = [f"{significant(each)} s" for each in seconds]
    return [significant(figures.cost_usd), f"{figures.accuracy:.3f}", *times]
