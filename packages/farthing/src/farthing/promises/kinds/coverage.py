"""Coverage: a right answer is in the set, or no model had one. What is asked for, of four kinds.

On average over calibration draws (`split`), with confidence (`pac`), within groups (`groups`), or
along a stream (`online`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, Unpack, get_args

from farthing.errors import InputError
from farthing.promises import wording
from farthing.promises.base import Layout, Promise
from farthing.promises.certificate import (
    About,
    Certificate,
    FloatArray,
    Population,
    registered,
)
from farthing.promises.kinds import groups, pac, split
from farthing.promises.kinds.groups import Grouped
from farthing.promises.levels import LEVEL, Level, level_of
from farthing.promises.observed import Facts
from farthing.promises.texts import DELTA, Goal, PromiseOption, decimal, percent

Method = Literal["split", "pac", "groups", "online"]
"""On average over draws; with confidence; in each group; along a stream."""


@dataclass(frozen=True)
class Coverage(Promise):
    """A right answer is in the set, or no model had one, with probability at least `level`.

    On average over calibration draws; with a `delta`, with confidence 1 - delta over the draw;
    `within_groups`, within each group of questions; `online`, along the stream of its questions.
    It is one of these at most.

    Raises:
        InputError: it is two of these, online and not about all questions, or a number is no
            probability.

    >>> Coverage(0.9).alpha
    Fraction(1, 10)
    """

    kind: ClassVar[str] = "coverage"
    place: ClassVar[int] = 0
    layout: ClassVar[Layout] = "critical"
    gives: ClassVar[Literal["one", "set"]] = "set"
    options: ClassVar[tuple[PromiseOption, ...]] = (replace(DELTA, such_as=""),)
    of_alpha: ClassVar[bool] = True
    stands: ClassVar[bool] = True

    level: Level
    delta: Level | None = None
    population: Population = "all"
    """Which questions it is about; of the unsolvable ones nothing can be asked but that."""
    within_groups: bool = False
    online: bool = False

    def __post_init__(self) -> None:
        level_of(self.level, LEVEL, "0.9")
        if self.delta is not None:
            level_of(self.delta, "delta")
        if self.population not in get_args(Population):
            raise InputError(f"population is {self.population!r}; give 'all' or 'solvable'")
        kinds = [self.delta is not None, self.within_groups, self.online]
        if sum(map(bool, kinds)) > 1:
            raise InputError("coverage is promised with a delta, within_groups or online; give one")
        if self.online and self.population != "all":
            raise InputError(
                f"online is about all questions; leave population={self.population!r} out"
            )

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for."""
        delta, method = given.get("delta"), given.get("method", "split")
        population: Population = given.get("population", "all")
        return cls(1 - alpha, delta, population, method == "groups", method == "online")

    @classmethod
    def check_method(cls, given: Mapping[str, Any]) -> None:
        """Refuse a method that lacks its delta, or that has no use for what is given."""
        delta, method = given.get("delta"), given.get("method")
        if method is None and delta is not None:
            raise InputError(
                "a comparison promises coverage on average over calibration draws; leave --delta "
                "out"
            )
        if method == "pac" and delta is None:
            raise InputError("a PAC promise needs a delta, the share of failures allowed; try 0.1")
        if delta is not None and method not in (None, "pac"):
            raise InputError(f"--delta goes with --method pac, and not with {method}")
        if method == "online" and given.get("population", "all") != "all":
            raise InputError("an online promise is about all questions; leave `solvable` out")

    @property
    def alpha(self) -> Fraction:
        """The share of misses, exactly."""
        return 1 - level_of(self.level, LEVEL, "0.9")

    def at(self, alpha: Fraction) -> Self:
        """Return the same at another share of misses."""
        return replace(self, level=1 - alpha)

    @property
    def every_request(self) -> bool:
        """Whether it is about a stream, and so about each of its questions."""
        return self.online

    def comparable(self) -> None:
        """Refuse what is no average over calibration draws."""
        if self.delta is not None or self.within_groups or self.online:
            raise InputError(
                "a comparison promises coverage on average over calibration draws; leave delta, "
                "within_groups and online out"
            )

    def evidence(self, observed: FloatArray, questions: Facts) -> Any:
        """Take the critical thresholds, with their groups, or as a stream."""
        if self.within_groups and questions.group is not None:
            return Grouped(observed, questions.group, questions.group_names)
        if self.online:
            online: Any = registered("online")
            return online.tracked(observed, self.alpha)
        return observed

    def prove(self, evidence: Any, **about: Unpack[About]) -> Certificate:
        """Certify the threshold that these give."""
        if self.within_groups:
            return groups.certify(evidence, self.alpha, population=self.population, **about)
        if self.online:
            online: Any = registered("online")
            made: Certificate = online.certified(evidence, self.alpha, **about)
            return made
        if self.delta is not None:
            return pac.certify(
                evidence, self.alpha, self.delta, population=self.population, **about
            )
        return split.certify(evidence, self.alpha, population=self.population, **about)

    def goal(self) -> Goal:
        """Return how it is shown."""
        level = percent(1 - self.alpha)
        return Goal(
            title=f"alpha = {decimal(self.alpha)}: coverage of at least {level} is asked for",
            metric="coverage",
            name="Coverage",
            line=float(1 - self.alpha),
            level=level,
            asked=f"{level} asked for",
            worst=float(1 - 3 * self.alpha),
        )

    def claim(self, *, alone: bool = True) -> str:
        """Say what is promised of a hundred questions."""
        del alone
        covered = wording.of_hundred_covered(self.alpha, self.population)
        return covered.replace(f", {wording.ON_AVERAGE}", "")
