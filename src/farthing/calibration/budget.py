"""Budget: the most coverage for an expected cost, and what a further point of it would cost."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from farthing.calibration.base import BoolArray, IntArray, Level, exact_level
from farthing.calibration.betting import mean_p_value
from farthing.calibration.sequence import proven
from farthing.errors import CalibrationError


@dataclass(frozen=True)
class Spending:
    """What each setting costs and achieves."""

    cost_nano: IntArray
    """[n, G] nano-dollars, settings from the cheapest to the dearest."""
    achieved: BoolArray
    """[n, G] whether the question is covered, or its answer right."""
    most_nano: int
    """The largest possible cost of a question, from prices and limits and not from these costs."""

    def __post_init__(self) -> None:
        shape = self.cost_nano.shape
        if len(shape) != 2 or not shape[0] or self.achieved.shape != shape:
            raise CalibrationError(
                f"cost_nano has shape {shape} and achieved {self.achieved.shape}; give both one "
                "row a question and one column a setting"
            )
        if self.cost_nano.min() < 0 or self.cost_nano.max() > self.most_nano:
            raise CalibrationError(
                f"costs are {self.cost_nano.min()} to {self.cost_nano.max()} nano-dollars; all "
                f"must be between 0 and the largest possible, {self.most_nano}"
            )


def budget_setting(spending: Spending, budget_nano: int, delta: Level) -> int | None:
    """Return the setting that achieves most here among those proved to cost less than the budget.

    With confidence 1 - delta over the draw of independent questions its expected cost a question
    is below the budget. Settings are tested from the cheapest up until one fails; what they achieve
    is not part of the promise.

    Returns:
        Its index; None where nothing is proved: not even the cheapest fits.

    Raises:
        CalibrationError: delta outside (0, 1), or a budget below 1.

    >>> cost = np.tile([10, 40, 90], (300, 1))
    >>> right = np.tile([False, True, True], (300, 1))
    >>> budget_setting(Spending(cost, right, 100), 50, 0.1)
    1
    """
    if budget_nano < 1:
        raise CalibrationError(f"the budget is {budget_nano} nano-dollars; give 1 or more")
    limit = float(exact_level(delta, "delta"))
    shares = spending.cost_nano / spending.most_nano
    target = budget_nano / spending.most_nano
    p_values = np.array([mean_p_value(share, target, limit) for share in shares.T])
    found = np.flatnonzero(proven(p_values, limit))
    achieved = spending.achieved.sum(axis=0)
    return int(found[np.argmax(achieved[found])]) if found.size else None


@dataclass(frozen=True)
class Price:
    """One setting on the frontier of cost and coverage."""

    setting: int
    """Index in the menu."""
    cost_nano: Fraction
    """Mean nano-dollars a question, exactly."""
    coverage: Fraction
    """Share of the questions that it achieves, exactly."""
    point_nano: Fraction | None
    """Nano-dollars a question for one more point (1 %) of coverage from the setting before it on
    the frontier; None for the first."""


def price_of_coverage(spending: Spending) -> tuple[Price, ...]:
    """Return the frontier of the menu and the price of a point of coverage along it.

    The frontier is the upper concave hull of (mean cost, coverage): a setting below it is beaten by
    a mixture of two others. So the price rises from setting to setting. An estimate, no promise.

    >>> cost = np.tile([10, 60, 90], (4, 1))
    >>> right = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]], bool)
    >>> [(at.setting, float(at.coverage), at.point_nano) for at in price_of_coverage(
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
