"""Budget: the most coverage for an expected cost, and what a further point of it would cost."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.money import dollars, usd_from_nano
from farthing.promises import wording
from farthing.promises.base import BoolArray, Certificate, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level
from farthing.promises.statistics.betting import mean_p_value
from farthing.promises.statistics.fixed_sequence import check_shapes, point_kappa, proven

DEAREST = "No question can cost more than the largest cost that was assumed."


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

    def __post_init__(self) -> None:
        check_shapes("cost_nano", self.cost_nano, "achieved", self.achieved)
        if self.cost_nano.min() < 0 or self.cost_nano.max() > self.most_nano:
            raise CalibrationError(
                f"costs are {dollars(self.cost_nano.min())} to {dollars(self.cost_nano.max())} a "
                f"question; all must be between $0 and the largest possible cost that was given, "
                f"{dollars(self.most_nano)}: give a larger --most (in Python most_usd)"
            )


class BudgetPromise(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="budget",
):
    """An expected cost below a budget, with confidence 1 - delta over the calibration draw."""

    evidence: ClassVar[type] = Spending

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

    @property
    def promises(self) -> bool:
        """Whether an operating point is proved."""
        return self.point is not None

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        usd = f"${usd_from_nano(self.budget_nano):.3g}"
        if self.point is None:
            claim = f"any operating point costs less than {usd} a question, so none is chosen."
            return wording.unproved(self.delta, of, claim)
        chosen = wording.chosen(self.point, self.points)
        claim = f"{chosen} costs less than {usd} a question in expectation."
        return wording.confident(self.delta, of, claim)

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a thousand questions."""
        del of
        if not self.promises:
            return "No operating point is known to be cheap enough, so none is used."
        usd = f"${usd_from_nano(1_000 * self.budget_nano):.3g}"
        return (
            f"A thousand questions cost less than {usd} on average, {wording.how_sure(self.delta)};"
            " how many are answered right is not promised."
        )

    def recompute(self, evidence: Spending, of: Certificate) -> Certificate:
        """Certify again from other costs."""
        return certify(
            evidence,
            self.budget_nano,
            self.delta,
            **of.about,
        )


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
    found = np.flatnonzero(proven(p_values, limit))
    achieved = spending.achieved.sum(axis=0)
    return int(found[np.argmax(achieved[found])]) if found.size else None


@dataclass(frozen=True)
class Price:
    """One operating point on the frontier of cost and coverage."""

    point: int
    """Index among the operating points."""
    cost_nano: Fraction
    """Mean nano-dollars a question, exactly."""
    coverage: Fraction
    """Share of the questions that it achieves, exactly."""
    point_nano: Fraction | None
    """Nano-dollars a question for 1 % more coverage from the operating point before it on the
    frontier; None for the first."""


def price_of_coverage(spending: Spending) -> tuple[Price, ...]:
    """Return the frontier of operating points and the price of a point of coverage along it.

    The frontier is the upper concave hull of (mean cost, coverage): an operating point below it is
    beaten by a mixture of two others. So the price rises from one to the next. An estimate, no
    promise.

    >>> cost = np.tile([10, 60, 90], (4, 1))
    >>> right = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]], bool)
    >>> [(at.point, float(at.coverage), at.point_nano) for at in price_of_coverage(
    ...     Spending(cost, right, 100))]
    [(0, 0.25, None), (2, 1.0, Fraction(16, 15))]
    """
    n = len(spending.cost_nano)
    points = [
        (int(cost), int(right), index)
        for index, (cost, right) in enumerate(
            zip(spending.cost_nano.sum(axis=0), spending.achieved.sum(axis=0), strict=True)
        )
    ]
    hull = _hull(points)
    slopes = [
        Fraction(dearer[0] - cheaper[0], 100 * (dearer[1] - cheaper[1]))
        for cheaper, dearer in pairwise(hull)
    ]
    return tuple(
        Price(index, Fraction(cost, n), Fraction(right, n), slope)
        for (cost, right, index), slope in zip(hull, [None, *slopes], strict=True)
    )


def _hull(points: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the upper concave hull of (cost, gain, index), rising in both."""
    hull: list[tuple[int, int, int]] = []
    for cost, gain, index in sorted(points, key=lambda point: (point[0], -point[1])):
        if hull and gain <= hull[-1][1]:
            continue
        while len(hull) > 1 and _below(hull[-2], hull[-1], (cost, gain)):
            hull.pop()
        hull.append((cost, gain, index))
    return hull


def _below(
    first: tuple[int, int, int], middle: tuple[int, int, int], last: tuple[int, int]
) -> bool:
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise <= (last[1] - first[1]) * (middle[0] - first[0])
