"""Budget: the most coverage for an expected cost, and what a further point of it would cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from farthing.errors import CalibrationError, InputError
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.promises import wording
from farthing.promises.base import Layout, Promise
from farthing.promises.certificate import About, BoolArray, Certificate, FloatArray, IntArray
from farthing.promises.figures import Figure
from farthing.promises.levels import Level, exact_level, level_of
from farthing.promises.observed import Acted, Facts, Gradable, PlayedPoints
from farthing.promises.payload import Reads, Recorded
from farthing.promises.statistics.betting import mean_p_value, mean_upper
from farthing.promises.statistics.fixed_sequence import check_shapes, point_kappa, proven
from farthing.promises.texts import ACCURACY, DELTA, Goal, Means, PromiseOption, known

DEAREST = "No question can cost more than the largest cost that was assumed."


@dataclass(frozen=True)
class Budget(Promise):
    """A question costs less than a budget in expectation.

    >>> budget = Budget(usd=0.002, most_usd="0.0200000001")
    >>> budget.nano, budget.most_nano
    (2000000, 20000001)

    Raises:
        InputError: the budget is not above 0 and below the largest possible cost, or delta is no
            probability.
    """

    kind: ClassVar[str] = "budget"
    place: ClassVar[int] = 4
    layout: ClassVar[Layout] = "grid"
    options: ClassVar[tuple[PromiseOption, ...]] = (
        PromiseOption(
            "budget",
            "expected cost of a question.",
            "usd",
            "--budget 0.001, in USD a question",
            commands=("calibrate", "compare"),
        ),
        PromiseOption(
            "most",
            "largest possible cost of a question, from prices and limits.",
            "usd",
            "--most 0.02, the largest possible cost of a question in USD, from prices and limits",
            commands=("calibrate", "compare"),
        ),
        DELTA,
    )
    least_proved: ClassVar[float] = 0.5
    wins: ClassVar[str] = "is right most often of those that kept it"
    at_most: ClassVar[bool] = True
    recommended: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False

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

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for.

        Raises:
            InputError: the budget is not below the largest possible cost.
        """
        del alpha
        budget, most = given["budget"], given["most"]
        if budget >= most:
            ours, largest = (dollars(float(usd * NANO_PER_USD)) for usd in (budget, most))
            raise InputError(
                f"--budget is {ours}; it must be below --most, which is {largest}, or it is kept "
                "without any promise"
            )
        return cls(budget, most, **known(given, "delta"))

    @property
    def line(self) -> float:
        """The budget in dollars."""
        return usd_from_nano(self.nano)

    def reads(self, known: Gradable) -> Reads:
        """Money needs no grades; what is achieved for it is read as it is."""
        del known
        return Reads(ungraded=True)

    def evidence(self, observed: PlayedPoints, questions: Facts) -> "Spending":
        """Take what points cost, and what their sets hold for it."""
        del questions
        return Spending(observed.spent, observed.covered, self.most_nano, observed.kappas)

    def point(self, evidence: "Spending") -> int | None:
        """Return the proved point that achieves most."""
        return budget_point(evidence, self.nano, self.delta)

    def prove(self, evidence: "Spending", **about: Unpack[About]) -> Certificate:
        """Certify that point."""
        return certify(evidence, self.nano, self.delta, **about)

    def figure(
        self, spent_usd: float, right: BoolArray, answered: BoolArray, theirs: BoolArray | None
    ) -> float:
        """Return the mean cost itself."""
        del right, answered, theirs
        return spent_usd

    def merit(self, means: Means) -> tuple[float, ...]:
        """Who is right most often comes first, of equals who costs least."""
        return (-round(means.accuracy, 12), means.cost_usd)

    def goal(self) -> Goal:
        """Return how it is shown."""
        return Goal(
            title=f"Budget: a question costs less than ${significant(float(self.usd))}",
            metric=ACCURACY,
            name="Accuracy",
            line=None,
            level="",
            asked=" asked for",
            worst=-1.0,
            beside_metric=self.beside_metric,
            of_alpha=False,
        )

    def claim(self, *, alone: bool = True) -> str:
        """Say what is promised of a thousand questions."""
        del alone
        usd = significant(1_000 * float(self.usd))
        return (
            f"A thousand questions cost less than ${usd} on average; how many are answered "
            "right is not promised."
        )

    def under(self) -> str:
        """Begin a sentence about who wins."""
        return f"Under ${significant(float(self.usd))} a question,"


def _exactly(value: Level, name: str) -> Fraction:
    """Read a number exactly; a float counts as the decimal that it prints as."""
    try:
        return Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        problem = f"{name} is {value}, which is no amount of US dollars"
        raise InputError(f"{problem}; give a number, such as 0.002") from None


@dataclass(frozen=True)
class Spending:
    """What each operating point costs and achieves."""

    cost_nano: IntArray
    """[n, G] nano-dollars, operating points from the cheapest to the dearest."""
    achieved: BoolArray
    """[n, G] whether the question is covered, or its answer right."""
    most_nano: int
    """The largest possible cost of a question, from prices and limits and not from these costs."""
    kappas: FloatArray | None = None
    """[G] the threshold of each operating point, where they are one policy at several
    thresholds."""
    rule: int | None = None
    """The version of the rule that proves; None: the newest."""

    def __post_init__(self) -> None:
        check_shapes("cost_nano", self.cost_nano, "achieved", self.achieved)
        if self.cost_nano.min() < 0 or self.cost_nano.max() > self.most_nano:
            raise CalibrationError(
                f"costs are {dollars(self.cost_nano.min())} to {dollars(self.cost_nano.max())} a "
                f"question; all must be between $0 and the largest possible cost that was given, "
                f"{dollars(self.most_nano)}: give a larger --most (in Python most_usd)"
            )


class BudgetPromise(Recorded, frozen=True, kw_only=True, tag="budget"):
    """An expected cost below a budget, with confidence 1 - delta over the calibration draw."""

    rule: int = 2  # the first took the largest possible cost for proved without evidence
    evidence: ClassVar[type] = Spending
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"

    budget_nano: int
    """What a question costs at most in expectation, in nano-dollars."""
    most_nano: int
    """The largest possible cost of a question that was assumed, in nano-dollars."""
    delta: Fraction
    """How often the promise may fail over calibration draws."""
    points: int
    """Number of operating points."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        usd = f"${usd_from_nano(self.budget_nano):.3g}"
        if self.point is None:
            claim = f"any setting costs less than {usd} a question, so none is chosen."
            return wording.unproved(self.delta, of, claim)
        claim = f"{wording.chosen()} costs less than {usd} a question in expectation."
        return wording.confident(self.delta, of, claim)

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a thousand questions."""
        del of
        if not self.promises:
            return "No setting is known to be cheap enough, so none is used."
        usd = f"${usd_from_nano(1_000 * self.budget_nano):.3g}"
        return (
            f"A thousand questions cost less than {usd} on average, {wording.how_sure(self.delta)};"
            " how many are answered right is not promised."
        )

    def recompute(self, evidence: Spending, of: Certificate) -> Certificate:
        """Certify again from other costs."""
        return certify(evidence, self.budget_nano, self.delta, **of.about)

    def refuted(self, of: Certificate) -> str:
        """Say that the largest possible cost was taken for proved, or an unknown one for known."""
        if self.budget_nano == self.most_nano:
            return "its budget is the largest possible cost"
        worst = of.asked_of is not None and of.asked_of.missing == "worst"
        return "calls that were not made cost no more than the most that was paid" if worst else ""

    @classmethod
    def asks(cls) -> type[Budget]:
        """Return the record of what is asked for."""
        return Budget

    def asked(self) -> Budget:
        """Return the same budget."""
        nano, most = (Fraction(each, NANO_PER_USD) for each in (self.budget_nano, self.most_nano))
        return Budget(nano, most, self.delta)

    def realised(self, of: Acted, questions: Facts) -> Figure:
        """Measure the mean cost of a question."""
        del questions
        shares = np.clip(of.cost_nano / self.most_nano, 0, 1)
        ends = 1 - mean_upper(1 - shares, 0.025), mean_upper(shares, 0.025)
        low, high = (float(end) * usd_from_nano(self.most_nano) for end in ends)
        mean = usd_from_nano(int(of.cost_nano.sum())) / len(shares)
        limit = usd_from_nano(self.budget_nano)
        return Figure("USD a question", mean, (low, high), limit, at_most=True)


def certify(
    spending: Spending,
    budget_nano: int,
    delta: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
) -> Certificate:
    """Choose the operating point that achieves most of those proved to cost less than the budget.

    Args:
        spending: what the operating points cost and achieve on the calibration questions.
        budget_nano: nano-dollars a question, in expectation.
        delta: how often the promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the costs are from.
        question_budget_nano: the budget that each question was played under; None: without.

    Raises:
        CalibrationError: as `budget_point`.
    """
    point = budget_point(spending, budget_nano, delta)
    n, points = spending.cost_nano.shape
    return Certificate(
        promise=BudgetPromise(
            budget_nano=budget_nano,
            most_nano=spending.most_nano,
            delta=exact_level(delta, "delta"),
            point=point,
            points=points,
        ),
        kappa=point_kappa(spending.kappas, point),
        n=n,
        question_budget_nano=question_budget_nano,
        conditional_on=(*wording.MENU, DEAREST),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )


def budget_point(spending: Spending, budget_nano: int, delta: Level) -> int | None:
    """Return the point that achieves most here among those proved to cost less than the budget.

    With confidence 1 - delta over the draw of independent questions its expected cost a question
    is below the budget. Operating points are tested from the cheapest up until one fails; what they
    achieve is not part of the promise.

    Returns:
        Its index; None where nothing is proved: not even the cheapest fits.

    Raises:
        CalibrationError: delta outside (0, 1), or a budget below 1.

    >>> cost = np.tile([10, 40, 90], (300, 1))
    >>> right = np.tile([False, True, True], (300, 1))
    >>> budget_point(Spending(cost, right, 100), 50, 0.1)
    1
    """
    if budget_nano < 1:
        raise CalibrationError(
            f"the budget is {dollars(budget_nano)} a question; give more than $0 with --budget (in "
            "Python usd)"
        )
    limit = float(exact_level(delta, "delta"))
    shares = spending.cost_nano / spending.most_nano
    target = budget_nano / spending.most_nano
    p_values = np.array([mean_p_value(share, target, limit) for share in shares.T])
    if spending.rule == 1 and target == 1:
        p_values[:] = 0
    found = np.flatnonzero(proven(p_values, limit))
    achieved = spending.achieved.sum(axis=0)
    return int(found[np.argmax(achieved[found])]) if found.size else None
