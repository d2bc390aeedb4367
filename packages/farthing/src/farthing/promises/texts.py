"""How a promise reads: in tables and plots beside money, and on the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

ACCURACY, ANSWERED, REALISED = "accuracy", "answered", "realised"
"""What is measured of a promise: the share of right answers, of questions that are answered, and
the figure that is promised."""
BESIDE = {ACCURACY: "Accuracy", ANSWERED: "Answered", REALISED: "Agreement", "coverage": "Coverage"}
"""What the metric is called that is paired beside cost."""


@dataclass(frozen=True)
class Column:
    """One column of a table: a metric, its heading and how its mean is written."""

    metric: str
    heading: str
    short: str
    """The heading where a terminal of 80 columns must do."""
    write: Callable[[float], str]
    meaning: str


@dataclass(frozen=True)
class Goal:
    """What is promised, and how it is shown beside money."""

    title: str
    """Of tables and sections."""
    metric: str
    """What plots show beside cost."""
    name: str
    """What that is called."""
    line: float | None
    """The figure to keep; None: it is no figure of that metric."""
    level: str
    """That figure, written."""
    asked: str
    """What is written beside the line."""
    worst: float
    """What lies below it is drawn at the edge."""
    beside_metric: str = "coverage"
    """What is paired beside cost."""
    of_alpha: bool = True
    """Whether it differs from alpha to alpha."""

    @property
    def beside(self) -> str:
        """What is paired beside cost, as it is called."""
        return BESIDE[self.beside_metric]


@dataclass(frozen=True)
class Means:
    """What a row of a comparison came to, on average over the splits; NaN where it is not known."""

    cost_usd: float
    accuracy: float
    realised: float
    """The figure that is promised."""
    answered: float
    """The share of questions that got an answer."""


Command = Literal["calibrate", "compare", "grade", "recommend", "certify"]
COMMANDS: tuple[Command, ...] = ("calibrate", "compare", "grade", "recommend", "certify")


@dataclass(frozen=True)
class PromiseOption:
    """A level or a name that a promise takes on the command line."""

    name: str
    """As a flag, without its hyphens."""
    help: str
    """What it is. In lower case: the kinds of promises that it is of are named before it."""
    value: Literal["probability", "margin", "usd", "role", "per", "traces"]
    """What is read: a number between 0 and 1, a difference of shares, dollars, a name, a file."""
    such_as: str = ""
    """An example and what it says, for who left it out; empty where it may be."""
    goes_with: str = ""
    """The other one without which it means nothing, and which needs it."""
    commands: tuple[Command, ...] = COMMANDS
    """Which commands take it."""
    brief: str = ""
    """What `recommend` says of it, which has a default for it; empty: as `help`."""
    plain: str = ""
    """Another flag for it, in plain words, without its hyphens; empty: none."""

    @property
    def key(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")

    @property
    def needed(self) -> bool:
        """Whether a promise cannot do without it."""
        return bool(self.such_as) and not self.goes_with


DELTA = PromiseOption(
    "delta",
    "How often the promise may fail. Default 0.1.",
    "probability",
    brief="How often it may fail. Default 0.1.",
)


def known(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of some options that were given."""
    return {name: given[name] for name in names if given.get(name) is not None}


def signed(value: float) -> str:
    """Write a difference of shares with its sign.

    >>> signed(-0.0312), signed(0.0001)
    ('−0.031', '0.000')
    """
    written = f"{abs(value):.3f}"
    sign = "" if float(written) == 0 else "−" if value < 0 else "+"
    return f"{sign}{written}"


def percent(fraction: Fraction | float) -> str:
    """Write a share as a percentage without needless zeros.

    >>> percent(Fraction(9, 10)), percent(0.995)
    ('90 %', '99.5 %')
    """
    return f"{float(fraction) * 100:.4g} %"


def decimal(alpha: Fraction) -> str:
    """Write an alpha as people do.

    >>> decimal(Fraction(1, 20))
    '0.05'
    """
    return f"{float(alpha):g}"


def share(value: float) -> str:
    """Write a share with three decimals."""
    return f"{value:.3f}"


def hundredths(value: float) -> str:
    """Write a share in whole percent."""
    return f"{100 * value:.0f} %"
