"""What can be promised of a policy: one record a kind, with its levels, exactly.

Numbers that are floats count as the decimals that they print as, so 0.9 leaves exactly 1/10.
"""

from dataclasses import dataclass
from fractions import Fraction

from farthing.calibration.base import Given, Level, exact_level
from farthing.money import NANO_PER_USD
from farthing.traces.arrays import TraceArrays


@dataclass(frozen=True)
class Coverage:
    """A right answer is in the set, or no model had one, with probability at least `level`.

    On average over calibration draws; with a `delta`, with confidence 1 - delta over the draw;
    `within_groups`, within each group of questions; `online`, along the stream of its questions.

    >>> Coverage(0.9).alpha
    Fraction(1, 10)
    """

    level: Level
    delta: Level | None = None
    given: Given = "all"
    """Which questions it is about; of the unsolvable ones nothing can be asked but that."""
    within_groups: bool = False
    online: bool = False

    @property
    def alpha(self) -> Fraction:
        """The share of misses, exactly."""
        return _alpha(self.level)


@dataclass(frozen=True)
class Selective:
    """Answers that are given are right with probability at least `level`.

    >>> Selective(0.95, delta=0.1).alpha
    Fraction(1, 20)
    """

    level: Level
    delta: Level = Fraction(1, 10)
    """How often the promise may fail over calibration draws."""

    @property
    def alpha(self) -> Fraction:
        """The share of wrong answers among those given, exactly."""
        return _alpha(self.level)


@dataclass(frozen=True)
class Parity:
    """The single best answer is as often right as a reference role's first one, minus epsilon."""

    reference: str | None = None
    """A role of the traces; None: the one that is right most often in training."""
    epsilon: Level = Fraction(1, 50)
    """Accuracy that may be lost."""
    delta: Level = Fraction(1, 10)


@dataclass(frozen=True)
class Budget:
    """A question costs less than a budget in expectation.

    >>> Budget(usd=0.002, most_usd=0.02).nano
    2000000
    """

    usd: Level
    """In US dollars a question."""
    most_usd: Level
    """The largest possible cost of a question, from prices and limits."""
    delta: Level = Fraction(1, 10)

    @property
    def nano(self) -> int:
        """The budget in nano-dollars."""
        return int(_exactly(self.usd) * NANO_PER_USD)

    @property
    def most_nano(self) -> int:
        """The largest possible cost in nano-dollars."""
        return int(_exactly(self.most_usd) * NANO_PER_USD)


@dataclass(frozen=True)
class Shift:
    """Coverage for another mix of questions, where only what round 1 shows is of another mix."""

    level: Level
    target: TraceArrays
    """A sample of that mix, of the kind that trained the policy; its grades are not read."""

    @property
    def alpha(self) -> Fraction:
        """The share of misses, exactly."""
        return _alpha(self.level)


Promise = Coverage | Selective | Parity | Budget | Shift


def _exactly(value: Level) -> Fraction:
    """Read a number exactly; a float counts as the decimal that it prints as."""
    return Fraction(repr(value) if isinstance(value, float) else value)


def _alpha(level: Level) -> Fraction:
    return 1 - exact_level(level, "the level of a promise")
