"""What is saved at each loss, on a few lines."""

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text

from farthing.recommendation.losses import LossTable
from farthing.reports.table import Table


def screen(table: LossTable, source: str) -> Group:
    """Say what is saved at each loss, and how many more questions would probably prove more."""
    return Group(
        Text(f"{source}: saved, by what may be lost", style="bold", overflow="fold"),
        Text(""),
        grid(table),
        Text(""),
        *map(Text, sentences(table)),
    )


def grid(table: LossTable) -> Table:
    """Return what is saved at each loss."""
    rows = []
    for line in table.lines:
        best = table.at(line.loss)
        saved = f"{best.saved:.0%}" if best.proved else "nothing proved"
        rows.append((f"{100 * float(line.loss):g} points", saved, best.found.name))
    return Table.of(("loss at most", "saved", "by"), rows)


def sentences(table: LossTable) -> list[str]:
    """Say how sure all lines are together, and what would probably prove more."""
    sure = 1 - float(table.delta)
    lines = [f"All lines hold together with probability {sure:.3g}.", *_more(table)]
    if table.look > 1:
        lines.append(f"This is proof {table.look} on these questions: it spends less of delta.")
    return lines


def _more(table: LossTable) -> Iterator[str]:
    """Say of the least loss at which nothing is proved what probably would prove it."""
    unproved = [line for line in table.lines if not line.proved and line.found.outlook]
    if unproved:
        line = unproved[-1]
        at = f"At {100 * float(line.loss):g} points, in another proof"
        yield f"{at}, which spends less of delta: {line.found.outlook}"
