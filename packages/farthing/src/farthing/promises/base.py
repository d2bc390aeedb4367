"""What can be promised of a policy, and what every kind of promise can be asked.

A kind is one file in `kinds`: what is asked for, the evidence that proves it, the proof, what its
certificate keeps (`payload`), how it is measured, and how it reads. This room sees no model and no
policy: who plays fills records of plain arrays in (`observed`).
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from farthing.errors import InputError
from farthing.promises.certificate import About, BoolArray, Certificate, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level
from farthing.promises.observed import Facts, Gradable, PlayedPoints
from farthing.promises.payload import Reads
from farthing.promises.statistics.expected_cost import Allowed
from farthing.promises.statistics.label_selection import SequenceTest
from farthing.promises.texts import (
    ACCURACY,
    COMMANDS,
    Column,
    Command,
    Goal,
    Means,
    PromiseOption,
)

Per = Literal["question", "request"]
"""Whether a question counts once, however often it was asked, or as often as it was."""
Layout = Literal["critical", "descending", "grid", "sure"]
"""What a proof is taken from. `critical`: the critical threshold of each question. Operating points
else: `descending` from a point that is likely to be proved; a `grid` of all thresholds;
`sure`: thresholds of how sure candidates are of their answers."""
ROUNDING = 1e-12
"""What a mean of floats may differ by from the same figure, exactly."""


class Promise:
    """What can be promised of a policy: a frozen record of its levels, one class a kind.

    A kind says only what is not as here.
    """

    kind: ClassVar[str]
    """What the command line calls it."""
    place: ClassVar[int] = 100
    """Where it stands among all kinds."""
    layout: ClassVar[Layout] = "descending"
    gives: ClassVar[Literal["one", "set"]] = "one"
    """Whether a single answer is promised, or a set of them."""
    weighed_by: ClassVar[str] = ""
    """Where the function is, `module:name`, that weighs the proving questions; empty: all count
    alike. It takes the promise, the bundle, training and proving questions as they are played, and
    critical thresholds, and returns the evidence."""
    options: ClassVar[tuple[PromiseOption, ...]] = ()
    """What it takes on the command line, beside --alpha."""
    of_alpha: ClassVar[bool] = False
    """Whether its level is the share of misses that policies are trained for."""
    stands: ClassVar[bool] = False
    """Whether a policy keeps it by returning everything where nothing tighter is proved."""
    least_proved: ClassVar[float] = 0.0
    """Who wins a comparison proved something on a larger share of splits than this."""
    wins: ClassVar[str] = "is the cheapest that kept the promise"
    """What is said of the winner."""
    otherwise: ClassVar[str] = "record more questions, or ask for less"
    """What to do where nobody wins."""
    at_most: ClassVar[bool] = False
    """Whether the figure is promised to stay below the line, rather than above."""
    beside_metric: ClassVar[str] = ACCURACY
    """The metric that counts beside money."""
    compared: ClassVar[bool] = True
    """Whether methods can be compared under it."""
    recommended: ClassVar[bool] = True
    """Whether `recommend` can choose a method for it."""
    held_to_reference: ClassVar[bool] = False
    """Whether it is about a reference, which answers where nothing is proved. Then questions that
    lack calls may prove it, weighed or by the worst case."""
    graded_by: ClassVar[Literal["lot", "judge"] | None] = None
    """What persons may grade of it: answers that chance drew, or what a judge calls the same."""
    needs_gold: ClassVar[bool] = True
    """Whether it is about right answers, which somebody has to know."""
    reference: str | None = None
    """The role that answers are held against; None: none is, or none was named."""
    per: Per = "question"
    """What it counts: distinct questions, or requests, of which some ask the same."""
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side each has."""

    @classmethod
    def commands(cls) -> tuple[Command, ...]:
        """Return the commands that can be asked for it."""
        grade, beside = cls.graded_by is not None, cls.held_to_reference
        able = (True, cls.compared, grade, cls.recommended, beside)
        return tuple(name for name, can in zip(COMMANDS, able, strict=True) if can)

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for.

        Args:
            alpha: the share of misses.
            given: its `options` by their keys; those that were left out are None or not there.

        Raises:
            InputError: they do not go together.
        """
        raise NotImplementedError

    @classmethod
    def check_method(cls, given: Mapping[str, Any]) -> None:
        """Refuse a method to calibrate, or a population, that this kind has not.

        Raises:
            InputError: that is so.
        """
        if given.get("method", "split") != "split" or given.get("population", "all") != "all":
            raise InputError(
                f"--method and --population are for --promise coverage, not {cls.kind}"
            )

    @property
    def alpha(self) -> Fraction:
        """The share of misses that policies are trained for."""
        return Fraction(1, 10)

    @property
    def passes_to(self) -> str | None:
        """The role that answers where the policy is not sure enough; None: nobody does."""
        return None

    @property
    def withholds(self) -> bool:
        """Whether a policy that keeps it may give no answer."""
        return False

    @property
    def every_request(self) -> bool:
        """Whether each question counts, also where another one asks the same."""
        return False

    @property
    def sure(self) -> Fraction | None:
        """How often it may fail over calibration draws; None: it holds on average over them."""
        delta: Level | None = getattr(self, "delta", None)
        return None if delta is None else exact_level(delta, "delta")

    def comparable(self) -> None:
        """Refuse to be compared under.

        Raises:
            InputError: why, and what to give.
        """
        if not self.compared:
            raise InputError(
                f"methods cannot be compared under a promise of {self.kind}; ask for coverage, "
                "parity, agreement, selective or budget"
            )

    def beside(self, role: str | None) -> Self:
        """Return the promise with its reference named; one that has none stays as it is."""
        del role
        return self

    def sharing(self, share: Fraction) -> Self:
        """Return the promise at a share of delta, so that all that are proved hold together."""
        del share
        return self

    def counting(self, per: Per) -> Self:
        """Return a promise that counts questions, or requests.

        Raises:
            InputError: this kind cannot count requests.
        """
        if per != "question":
            raise InputError(
                f"a promise of {self.kind} counts each question once; ask for parity or agreement "
                "per request"
            )
        return self

    def at(self, alpha: Fraction) -> Self:
        """Return what is promised where policies are trained for a share of misses."""
        del alpha
        return self

    def reads(self, known: Gradable) -> Reads:
        """Return by which grades it is proved.

        Raises:
            InputError: no reference is named, and it cannot be guessed.
        """
        del known
        return Reads()

    def whose(self, known: Gradable) -> str | None:
        """Return the reference of questions that are graded; None: nobody named it.

        Raises:
            InputError: their grade is not what is promised.
        """
        del known
        return self.reference

    def evidence(self, observed: Any, questions: Facts) -> Any:
        """Return what proves it, of `PlayedPoints`; of a `critical` layout of those thresholds."""
        raise NotImplementedError

    def point(self, evidence: Any) -> int | None:
        """Return the operating point that is proved; None: none is."""
        raise NotImplementedError

    def prove(self, evidence: Any, **about: Unpack[About]) -> Certificate:
        """Return the certificate of what is proved, or of that nothing is."""
        raise NotImplementedError

    def prover(
        self, points: PlayedPoints, questions: Facts, n: int
    ) -> Callable[[IntArray], int | None]:
        """Return what proves a point by n of the questions, many times over.

        Each call takes the rows that prove, and returns the point, None where none is proved.
        """
        del questions, n
        return lambda rows: self.point(self.evidence(points.take(rows), Facts()))

    def allows(self, n: int) -> Allowed:
        """Return how many losses against the reference n questions allow, by the wins."""
        raise NotImplementedError

    def bars(self, right: BoolArray) -> BoolArray:
        """Return which questions are lost where an answer is not as asked, [n].

        Args:
            right: [n] whether the reference's answer is right.
        """
        return right

    @property
    def margin(self) -> Fraction:
        """What may be lost against the reference, as a share of the questions."""
        raise NotImplementedError

    @property
    def may_cost_more(self) -> bool:
        """Whether a point that costs more than the reference may still be what is wanted."""
        return False

    @property
    def checked_pairs(self) -> int | None:
        """How many answers that a judge calls the same persons have to check; None: no judge."""
        return None

    @property
    def must_gain(self) -> bool:
        """Whether the policy must be better than the reference, so that it may cost more."""
        return False

    def proved(self, evidence: Any) -> BoolArray | None:
        """Return which points are proved, [G]; where all are, its share of delta may pass on."""
        del evidence
        return None

    def testing(self, evidence: Any) -> SequenceTest:
        """Return how its points were tested, for who looks which grades to get next."""
        raise NotImplementedError

    def worth(self, evidence: Any, point: int | None) -> float:
        """Return what a proved point is worth, to choose which candidates to test."""
        raise NotImplementedError

    def figure(
        self, spent_usd: float, right: BoolArray, answered: BoolArray, theirs: BoolArray | None
    ) -> float:
        """Return the figure that is promised, as it came out on some questions.

        Args:
            spent_usd: mean cost of a question.
            right: [n] whether the answer is as the grade asks.
            answered: [n] whether there is one.
            theirs: [n] whether the reference's is; None: there is none.
        """
        del spent_usd, answered, theirs
        return float(right.mean())

    def swept(self, correct: BoolArray, theirs: BoolArray | None) -> FloatArray | None:
        """Return the figure of each operating point, [G], of [n, G]; None: cost sets none apart."""
        del theirs
        shares: FloatArray = correct.mean(axis=0)
        return shares

    @property
    def line(self) -> float | None:
        """The figure that is promised; None: it is no single one."""
        return None

    def falls_short(self, figure: float) -> bool:
        """Return whether a figure is worse than what was promised."""
        if self.line is None:
            return False
        sign = -1 if self.at_most else 1
        return sign * figure < sign * self.line - ROUNDING

    def merit(self, means: Means) -> tuple[float, ...]:
        """Return what of two that keep it puts the better one first: the smaller."""
        return (means.cost_usd, 0.0)

    def goal(self) -> Goal:
        """Return how it is shown in tables and plots, of rows at one alpha."""
        raise NotImplementedError

    def claim(self, *, alone: bool = True) -> str:
        """Say in one plain sentence what is promised of new questions.

        Args:
            alpha: what policies were trained for.
            alone: whether the reference was recorded alone.
        """
        raise NotImplementedError

    def under(self) -> str:
        """Begin a sentence about who wins."""
        raise NotImplementedError

    def result(self, means: Means) -> str:
        """Say what the winner came to."""
        return "" if np.isnan(means.accuracy) else f"accuracy {means.accuracy:.3f}"

    def columns(self) -> list[Column]:
        """Return the columns of a comparison's table beside cost and accuracy."""
        return []
