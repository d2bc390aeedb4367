"""How a table and a figure are written for people."""

from dataclasses import dataclass, field

from farthing.money import significant

PER_THOUSAND = 1_000
"""Plots and sentences give dollars per thousand questions: a question costs too little to read."""


@dataclass(frozen=True)
class TableCell:
    """A mean and its standard error, as text."""

    mean: str
    error: str = ""

    def __str__(self) -> str:
        return f"{self.mean}±{self.error}" if self.error else self.mean


@dataclass(frozen=True)
class TableLine:
    """One line of a table: who it is about and its cells."""

    policy: str
    label: str
    cells: tuple[TableCell, ...]
    group: str = ""
    """What kind of promise the policies of this part of the table make."""
    best: bool = False
    """Whether it is the cheapest with an exact promise."""


@dataclass(frozen=True)
class Grid:
    """A table before anything decides how to draw it."""

    title: str
    headings: tuple[str, ...]
    short: tuple[str, ...]
    """The headings where a terminal of 80 columns must do."""
    lines: tuple[TableLine, ...]
    notes: tuple[str, ...] = field(default=())
    key: str = ""
    """What the short headings mean."""


def thousand(usd: float) -> str:
    """Write a cost per question as dollars per thousand questions.

    >>> thousand(0.000235), thousand(-0.0358)
    ('$0.235', '−$35.8')
    """
    sign = "−" if usd < 0 else ""
    return f"{sign}${significant(abs(usd) * PER_THOUSAND)}"
