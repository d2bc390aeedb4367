"""What can be promised of a policy: one record a kind, with its levels, exactly.

Numbers that are floats count as the decimals that they print as, so 0.9 leaves exactly 1/10.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal, get_args

from farthing.errors import CalibrationError, InputError
from farthing.money import NANO_PER_USD, dollars
from farthing.promises.base import Population
from farthing.promises.kinds.agreement import JudgeShare
from farthing.promises.levels import Level, Margin, exact_level, exact_margin
from farthing.traces.arrays import TraceArrays

Per = Literal["question", "request"]
"""Whether a question counts once, however often it was asked, or as often as it was."""


@dataclass(frozen=True)
class Coverage:
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

    level: Level
    delta: Level | None = None
    population: Population = "all"
    """Which questions it is about; of the unsolvable ones nothing can be asked but that."""
    within_groups: bool = False
    online: bool = False

    def __post_init__(self) -> None:
        _level(self.level)
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

    @property
    def alpha(self) -> Fraction:
        """The share of misses, exactly."""
        return 1 - _level(self.level)


@dataclass(frozen=True)
class Selective:
    """Answers that are given are right with probability at least `level`.

    With `escalate`, other questions are passed on to that role, and the whole is promised to be as
    often right as that role alone, minus `epsilon`.

    Raises:
        InputError: a number is no probability.

    >>> Selective(0.95, delta=0.1).alpha
    Fraction(1, 20)
    """

    level: Level
    delta: Level = Fraction(1, 10)
    """How often the promise may fail over calibration draws; with `escalate` half of it is for
    either part."""
    escalate: str | None = None
    """The role that answers where the policy is not sure enough; None: nobody does."""
    epsilon: Level = Fraction(1, 50)
    """Accuracy that the whole may lose against that role."""

    def __post_init__(self) -> None:
        _level(self.level)
        level_of(self.delta, "delta")

    @property
    def alpha(self) -> Fraction:
        """The share of wrong answers among those given, exactly."""
        return 1 - _level(self.level)


@dataclass(frozen=True)
class Parity:
    """The single best answer is as often right as a reference role's first one, minus epsilon.

    Raises:
        InputError: the reference is no name, or a number is no probability.
    """

    reference: str | None = None
    """A role of the traces; None: the one that most is paid for in training."""
    epsilon: Level = Fraction(1, 50)
    """Accuracy that may be lost; 0 or less: it must rise, by more than that."""
    delta: Level = Fraction(1, 10)
    candidates: int = 1
    """How many are proved side by side, each at its share of delta."""
    per: Per = "question"
    """What it is about: distinct questions, or requests, of which some ask the same."""

    def __post_init__(self) -> None:
        _check_reference(self.reference)
        margin_of(self.epsilon)
        level_of(self.delta, "delta")
        _check_per(self.per)


@dataclass(frozen=True)
class Agreement:
    """The single best answer is the one that a reference would have given, minus epsilon.

    It takes no accepted answers: recorded calls of the reference are enough.

    Raises:
        InputError: the reference is no name, or a number is no probability.
    """

    reference: str | None = None
    """A role of the traces; None: the one whose answers the policy was trained to give."""
    epsilon: Level = Fraction(1, 20)
    """The share of questions that may be answered otherwise."""
    delta: Level = Fraction(1, 10)
    judge: JudgeShare | None = None
    """What of both goes to the errors of a judge who says what is the same, where there is one."""
    candidates: int = 1
    """How many are proved side by side, each at its share of delta."""
    per: Per = "question"
    """What it is about: distinct questions, or requests, of which some ask the same."""

    def __post_init__(self) -> None:
        _check_reference(self.reference)
        level_of(self.epsilon, "epsilon", "0.05")
        level_of(self.delta, "delta")
        _check_per(self.per)


@dataclass(frozen=True)
class Budget:
    """A question costs less than a budget in expectation.

    >>> budget = Budget(usd=0.002, most_usd="0.0200000001")
    >>> budget.nano, budget.most_nano
    (2000000, 20000001)

    Raises:
        InputError: the budget is not above 0 and below the largest possible cost, or delta is no
            probability.
    """

    usd: Level
    """In US dollars a question."""
    most_usd: Level
    """The largest possible cost of a question, from prices and limits."""
    delta: Level = Fraction(1, 10)

    def __post_init__(self) -> None:
        level_of(self.delta, "delta")
        usd, most = _exactly(self.usd, "usd"), _exactly(self.most_usd, "most_usd")
        if not 0 < usd < most:
            given, largest = (dollars(float(each * NANO_PER_USD)) for each in (usd, most))
            raise InputError(
                f"usd, the budget, is {given}; it must be above $0 and below most_usd, the largest "
                f"possible cost of a question, {largest}, or it is kept without any promise"
            )

    @property
    def nano(self) -> int:
        """The budget in nano-dollars, rounded down: what is promised is never more."""
        return int(_exactly(self.usd, "usd") * NANO_PER_USD)

    @property
    def most_nano(self) -> int:
        """The largest possible cost in nano-dollars, rounded up: no cost may exceed it."""
        return ceil(_exactly(self.most_usd, "most_usd") * NANO_PER_USD)


@dataclass(frozen=True)
class Shift:
    """Coverage for another mix of questions, where only what round 1 shows is of another mix.

    Raises:
        InputError: the level is no probability.
    """

    level: Level
    target: TraceArrays
    """A sample of that mix, of the kind that trained the policy; its grades are not read."""

    def __post_init__(self) -> None:
        _level(self.level)

    @property
    def alpha(self) -> Fraction:
        """The share of misses, exactly."""
        return 1 - _level(self.level)


Promise = Coverage | Selective | Parity | Agreement | Budget | Shift


def per_request(asked: Promise) -> bool:
    """Return whether a question counts as often as it was asked."""
    return isinstance(asked, Parity | Agreement) and asked.per == "request"


def with_per(asked: Promise, per: Per) -> Promise:
    """Return a promise that counts questions, or requests.

    Raises:
        InputError: only parity and agreement can count requests.
    """
    if isinstance(asked, Parity | Agreement):
        return replace(asked, per=per)
    if per != "question":
        kind = type(asked).__name__.lower()
        raise InputError(
            f"a promise of {kind} counts each question once; ask for parity or agreement per "
            "request"
        )
    return asked


def _exactly(value: Level, name: str) -> Fraction:
    """Read a number exactly; a float counts as the decimal that it prints as."""
    try:
        return Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        problem = f"{name} is {value}, which is no amount of US dollars"
        raise InputError(f"{problem}; give a number, such as 0.002") from None


def level_of(value: Level, name: str, such_as: str = "0.1") -> Fraction:
    """Read a probability strictly between 0 and 1, exactly.

    Raises:
        InputError: it is none.
    """
    try:
        return exact_level(value)
    except CalibrationError:
        raise InputError(
            f"{name} is {value}; give a number between 0 and 1, such as {such_as}"
        ) from None


def margin_of(value: Level) -> Margin:
    """Read how much accuracy may be lost, strictly between -1 and 1, exactly.

    Raises:
        InputError: it is no such number.
    """
    try:
        return exact_margin(value)
    except CalibrationError as problem:
        raise InputError(str(problem)) from None


def _level(value: Level) -> Fraction:
    return level_of(value, "the level of a promise", "0.9")


def _check_reference(reference: object) -> None:
    if reference is not None and not isinstance(reference, str):
        raise InputError(
            f"the reference is {reference!r}; name a role of the traces, or leave it out"
        )


def _check_per(per: object) -> None:
    if per not in get_args(Per):
        raise InputError(f"per is {per!r}; give 'question' or 'request'")
