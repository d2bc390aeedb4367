"""Options of the promises that `farthing calibrate` can make, and which of them go together."""

from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli import files
from farthing.cli.options import read_delta, read_epsilon, read_usd
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.experiments.promises import Asked

Promise = Literal["coverage", "selective", "parity", "budget", "shift"]

NEEDS: dict[str, tuple[str, ...]] = {
    "coverage": (),
    "selective": ("delta",),
    "parity": ("epsilon", "delta"),
    "budget": ("budget", "most", "delta"),
    "shift": ("target",),
}
"""The options that a promise cannot do without."""
TAKES = NEEDS | {"coverage": ("delta",), "parity": ("epsilon", "delta", "reference")}
"""The options that mean something to a promise, beside --alpha."""
SUCH_AS = {
    "delta": "--delta 0.1, how often the promise may fail",
    "epsilon": "--epsilon 0.02, the accuracy that may be lost",
    "budget": "--budget 0.001, in USD a question",
    "most": "--most 0.02, the largest possible cost of a question in USD, from prices and limits",
    "target": "--target FILE, traces of the questions that are to come",
}

Delta = Annotated[
    Fraction | None,
    typer.Option(parser=read_delta, metavar="DECIMAL", help="How often the promise may fail."),
]
Epsilon = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_epsilon, metavar="DECIMAL", help="Parity: the accuracy that may be lost."
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE", help="Parity: with whom; by default the role right most often in training."
    ),
]
Budget = Annotated[
    Fraction | None,
    typer.Option(parser=read_usd, metavar="USD", help="Budget: expected cost of a question."),
]
Most = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_usd,
        metavar="USD",
        help="Budget: largest possible cost of a question, from prices and limits.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Shift: traces of the mix of questions that is to come."),
]


@dataclass(frozen=True)
class Options:
    """The options beside --alpha; None where one was not given."""

    delta: Fraction | None
    epsilon: Fraction | None
    reference: str | None
    budget: Fraction | None
    most: Fraction | None
    target: Path | None

    def check(self, promise: Promise, *, coverage_only: bool) -> None:
        """Refuse options that the promise lacks, or that mean nothing to it.

        Raises:
            InputError: which, and what to do.
        """
        given = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        for name in NEEDS[promise]:
            if name not in given:
                raise InputError(f"--promise {promise} needs {SUCH_AS[name]}")
        for name in given:
            if name not in TAKES[promise]:
                whose = " or ".join(kind for kind, takes in TAKES.items() if name in takes)
                raise InputError(f"--{name} means nothing to --promise {promise}, only to {whose}")
        if coverage_only and promise != "coverage":
            raise InputError(f"--method and --given are for --promise coverage, not {promise}")

    def asked(self, promise: Promise, alpha: Fraction) -> "Asked":
        """Return the promise that is asked for, once `check` has passed.

        Raises:
            InputError: the budget is not below the largest possible cost.
        """
        from farthing.experiments import promises

        delta = self.delta or Fraction(0)
        if promise == "selective":
            return promises.Selective(alpha, delta)
        if promise == "parity":
            return promises.Parity(self.epsilon or Fraction(0), delta, self.reference)
        if self.target is not None:
            return promises.Shift(alpha, files.read_arrays(self.target))
        budget, most = self.budget or Fraction(0), self.most or Fraction(0)
        if budget >= most:
            raise InputError("--budget must be below --most, or it is kept without any promise")
        return promises.Budget(int(budget * 10**9), int(most * 10**9), delta)
