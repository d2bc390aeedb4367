"""One table for the terminal, JSON and HTML: records, and how each column reads a record."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter
from typing import Any, Literal

from rich import box
from rich import table as drawn
from rich.text import Text

Record = Mapping[str, Any]
"""What JSON says of a line."""
Heading = tuple[str, Callable[[Any], str]]
"""The heading of a column, and how its cell is written from a record."""

Layout = Literal["text", "word", "prose", "figure", "figures"]
LOOKS: Mapping[str, Any] = {
    "text": {"overflow": "fold"},
    "word": {"no_wrap": True},
    "prose": {"overflow": "fold", "ratio": 1},
    "figure": {"justify": "right", "no_wrap": True},
    "figures": {"justify": "right", "overflow": "fold"},
}
"""Text wraps, a word does not, prose takes the width that is left, figures stand at the right."""


@dataclass(frozen=True)
class Table:
    """Records in columns.

    >>> table = Table((("Model", lambda r: r["name"]), ("USD", lambda r: f"{r['usd']:.2f}")),
    ...               ({"name": "small", "usd": 0.5},))
    >>> table.cells
    [['small', '0.50']]
    >>> print(table.html)
    <table><thead><tr><th>Model</th><th>USD</th></tr></thead>
    <tbody><tr><td>small</td><td>0.50</td></tr></tbody></table>
    """

    columns: Sequence[Heading]
    records: Sequence[Any]
    """The lines; of a study each is a `Record`."""
    bold: Collection[int] = ()
    """The lines that the others stand beside."""
    layout: Sequence[Layout] = ("text",)
    """How the first columns are drawn; the others are figures."""
    rules: Collection[int] = ()
    """The lines that a rule is drawn above."""

    @classmethod
    def of(cls, headings: Sequence[str], lines: Iterable[Sequence[str]], **drawn: Any) -> "Table":
        """Return a table of cells that are written already.

        >>> Table.of(["Model", "USD"], [("small", "0.50")]).cells
        [['small', '0.50']]
        """
        return cls([(name, itemgetter(at)) for at, name in enumerate(headings)], [*lines], **drawn)

    @property
    def cells(self) -> list[list[str]]:
        """What is written, line by line."""
        return [[write(record) for _, write in self.columns] for record in self.records]

    def __rich__(self) -> drawn.Table:
        """Draw it for a terminal: a line under the headings, and nothing else."""
        made = drawn.Table(
            box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False
        )
        layouts = [*self.layout, *["figure"] * (len(self.columns) - len(self.layout))]
        for (heading, _), layout in zip(self.columns, layouts, strict=True):
            made.add_column(Text(heading), **LOOKS[layout])
        for at, line in enumerate(self.cells):
            if at in self.rules:
                made.add_section()
            made.add_row(*map(Text, line), style="bold" if at in self.bold else None)
        return made

    @property
    def html(self) -> str:
        """The table as HTML; whatever stands in it is text."""
        heads = "".join(f"<th>{escape(heading)}</th>" for heading, _ in self.columns)
        lines = "\n".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>"
            for line in self.cells
        )
        return f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{lines}</tbody></table>"


def counted(n: int, thing: str) -> str:
    """Say how many there are of a thing.

    >>> counted(1, "question"), counted(1400, "question")
    ('1 question', '1,400 questions')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def share_interval(ends: Sequence[float] | None) -> str:
    """Write the ends of an interval of a share; nothing where there is none.

    >>> share_interval((0.25, 0.5)), share_interval(None)
    ('25.0% to 50.0%', '')
    """
    return "" if ends is None else f"{ends[0]:.1%} to {ends[1]:.1%}"
