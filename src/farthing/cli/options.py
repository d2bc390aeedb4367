"""Options that several subcommands share, and how their values are read."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import typer


def read_alpha(text: str) -> Fraction:
    """Read an alpha exactly as it is written.

    >>> read_alpha("0.1"), read_alpha("1/20")
    (Fraction(1, 10), Fraction(1, 20))
    """
    return _between_0_and_1(text, "alpha")


def read_delta(text: str) -> Fraction:
    """Read a delta exactly as it is written."""
    return _between_0_and_1(text, "delta")


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


def _between_0_and_1(text: str, name: str) -> Fraction:
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{name} is {text!r}, which is no number; try 0.1") from None
    if not 0 < value < 1:
        raise typer.BadParameter(f"{name} is {text}; it must lie between 0 and 1, such as 0.1")
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
        help="Share of questions that may go uncovered; give it again for several.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of all randomness.")]
TracesFiles = Annotated[
    list[Path],
    typer.Option(
        "--traces",
        metavar="FILE",
        help="Traces, a store (.db), or another tool's log or table; give it again for several, "
        "which are joined by question.",
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
        "--job", metavar="CONFIG", help="The job that made the traces, where they do not say."
    ),
]
Bundle = Annotated[Path, typer.Option("--bundle", metavar="FOLDER", help="A policy bundle.")]
TrainSize = Annotated[
    int | None,
    typer.Option("--train", min=1, metavar="N", show_default="60 %", help="Questions to train on."),
]
CalibrateSize = Annotated[
    int | None,
    typer.Option(
        "--calibrate", min=1, metavar="N", show_default="20 %", help="Questions to calibrate on."
    ),
]
TestSize = Annotated[
    int | None,
    typer.Option("--test", min=1, metavar="N", show_default="20 %", help="Questions to judge on."),
]
Features = Annotated[
    list[str],
    typer.Option(
        "--feature",
        metavar="NAME",
        help="A number of the calls that policies are to see; give it again for several.",
    ),
]
Grade = Annotated[
    str,
    typer.Option(
        "--grade",
        metavar="GRADE",
        help="What answers are judged by: `right`, or `same as ROLE`, which takes no gold.",
    ),
]
GradesFile = Annotated[
    Path | None,
    typer.Option(
        "--grades", metavar="FILE", help="Grades beside the traces, as `farthing grade` keeps them."
    ),
]
Population = Annotated[
    Literal["all", "solvable"],
    typer.Option("--population", help="Promise it for all questions, or for the solvable ones."),
]


Json = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout, and all remarks on stderr.")
]


def sizes_of(train: int | None, calibrate: int | None, test: int | None) -> dict[str, int]:
    """Return the sizes that were given, by part."""
    asked = {"train": train, "calibrate": calibrate, "test": test}
    return {part: size for part, size in asked.items() if size is not None}
