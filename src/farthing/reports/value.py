"""What a policy costs and how often it is right, beside each single model, for a terminal."""

from collections.abc import Mapping

from rich.console import Group
from rich.text import Text

from farthing.methods.baselines.models import NOT_ALONE
from farthing.money import significant
from farthing.process.value import Figures, Value
from farthing.reports.table import Table


def beside(value: Value, alone: Mapping[str, Figures | None]) -> Group:
    """Show the policy, each single model, and what is saved against the reference.

    Args:
        value: the statement.
        alone: role to what it came to by itself; None where it was not recorded alone.
    """
    timed = any(one and one.latency_s for one in (value.yours, *alone.values()))
    headings = (
        f"{value.yours.questions:,} {value.part} questions",
        "USD a question",
        value.measure.capitalize(),
        *(("Median", "95th") if timed else ()),
    )
    unanswered = value.yours.unanswered
    you = f"You, {unanswered:,} unanswered" if unanswered else "You"
    lines = [[you, *_cells(value.yours)]]
    lines += [
        [f"Always {role}", *(_cells(figures) if figures else [NOT_ALONE])]
        for role, figures in alone.items()
    ]
    lines = [line + [""] * (len(headings) - len(line)) for line in lines]
    return Group(Table.of(headings, lines, bold=(0,)), *map(Text, value.findings()))


def _cells(figures: Figures) -> list[str]:
    seconds = figures.latency_s or ()
    times = [f"{significant(each)} s" for each in seconds]
    return [significant(figures.cost_usd), f"{figures.accuracy:.3f}", *times]
