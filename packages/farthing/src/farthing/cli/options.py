"""Options that several subcommands share, and how their values are read."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli.command import BY_NAME, AlsoPositional
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.recommendation.splits import Split


def read_alpha(text: str) -> Fraction:
    """Read an alpha exactly as it is written.

    >>> read_alpha("0.1"), read_alpha("1/20")
    (Fraction(1, 10), Fraction(1, 20))
    """
    return _between_0_and_1(text, "alpha")


def read_delta(text: str) -> Fraction:
    """Read a delta exactly as it is written."""
    return _between_0_and_1(text, "delta")


def read_confidence(text: str) -> Fraction:
    """Read a confidence, 1 - delta, exactly as it is written."""
    return _between_0_and_1(text, "confidence", "0.9")


def read_epsilon(text: str) -> Fraction:
    """Read an epsilon exactly as it is written; of parity it may be 0 or less.

    >>> read_epsilon("-0.01")
    Fraction(-1, 100)
    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"epsilon is {text!r}, which is no number; try 0.02") from None
    if not -1 < value < 1:
        raise typer.BadParameter(
            f"epsilon is {text}; it must be below 1, such as 0.02 (and above -1 for parity, above "
            "0 for agreement)"
        )
    return value


def read_usd(text: str) -> Fraction:
    """Read an amount of US dollars of at least one nano-dollar.

    >>> read_usd("0.0005")
    Fraction(1, 2000)
    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value * 10**9 < 1:
        raise typer.BadParameter(f"{text!r} is no amount of US dollars above 0; try 0.001")
    return value


def read_dollars(text: str) -> Decimal:
    """Read an amount exactly as it is written.

    >>> read_dollars("5.00")
    Decimal('5.00')
    """
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is no amount of dollars; try 5.00") from None
    if not amount.is_finite() or not 0 <= amount <= 1_000_000:
        raise typer.BadParameter(f"{text} must be between 0 and a million dollars")
    return amount


def date_of(text: str | None) -> datetime | None:
    """Read a date, or a moment, of the option `--since`; without a zone it is UTC.

    >>> date_of("2026-11-01").isoformat()
    '2026-11-01T00:00:00+00:00'
    """
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since {text}: is no date; write it as 2026-11-01") from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _between_0_and_1(text: str, name: str, such_as: str = "0.1") -> Fraction:
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{name} is {text!r}, which is no number; try {such_as}") from None
    if not 0 < value < 1:
        said = f"{name} is {text}; it must lie between 0 and 1, such as {such_as}"
        raise typer.BadParameter(said)
    return value


Alpha = Annotated[
    Fraction,
    typer.Option(
        "--alpha",
        parser=read_alpha,
        metavar="DECIMAL",
        show_default="0.1",
        help="Share of questions that may go uncovered.",
    ),
]
Alphas = Annotated[
    list[Fraction],
    typer.Option(
        "--alpha",
        parser=read_alpha,
        metavar="DECIMAL",
        show_default="0.1",
        help="Share of questions that may go uncovered; may be repeated.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of all randomness.")]
MaxCost = Annotated[
    Decimal,
    typer.Option(
        parser=read_dollars,
        metavar="USD",
        help="Cap on what is spent in this store, earlier runs included.",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="Device to run on: cpu, cuda, cuda:1, ...")
]
TracesFiles = Annotated[
    list[Path],
    typer.Option(
        "--traces",
        metavar="FILE",
        help=BY_NAME,
    ),
    AlsoPositional(
        "Traces, a store (.db), or another tool's log or table; several are joined by question.",
        "log.jsonl",
    ),
]
Missing = Annotated[
    Literal["chance", "unknown", "worst"] | None,
    typer.Option(
        "--missing",
        help="Of calls that were not made: chance decided; nobody knows why; or take the worst. By "
        "default what the traces say.",
    ),
]
Job = Annotated[
    Path | None,
    typer.Option(
        "--job", metavar="CONFIG", help="The job that made the traces, if they do not record it."
    ),
]
Bundle = Annotated[Path, typer.Option("--bundle", metavar="FOLDER", help="A policy bundle.")]
Features = Annotated[
    list[str],
    typer.Option(
        "--feature",
        metavar="NAME",
        help="A recorded number to use as a feature; may be repeated.",
    ),
]
Grade = Annotated[
    str,
    typer.Option(
        "--grade",
        metavar="GRADE",
        help="What answers are graded by: `right`, or `same as ROLE`, which needs no gold.",
    ),
]
GradesFile = Annotated[
    Path | None,
    typer.Option("--grades", metavar="FILE", help="Grades file written by `farthing grade`."),
]
Population = Annotated[
    Literal["all", "solvable"],
    typer.Option("--population", help="Promise coverage of all questions, or of solvable ones."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout, everything else on stderr.")
]


@dataclass(frozen=True)
class BundleTraces:
    """A bundle, and the traces that it learned from or is measured on."""

    bundle: Bundle
    traces: TracesFiles


@dataclass(frozen=True)
class SplitOptions:
    """How questions are divided: which of them train, calibrate and test."""

    seed: Seed = 0
    train: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default="60 %", help="Questions to train on."),
    ] = None
    calibrate: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default="20 %", help="Questions to calibrate on."),
    ] = None
    test: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default="20 %", help="Questions to test on."),
    ] = None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that were given, by part."""
        sizes = {"train": self.train, "calibrate": self.calibrate, "test": self.test}
        return {part: size for part, size in sizes.items() if size is not None}

    @property
    def split(self) -> "Split":
        """The division of a bundle's questions."""
        from farthing.recommendation.splits import Split

        return Split(self.seed, self.sizes)
