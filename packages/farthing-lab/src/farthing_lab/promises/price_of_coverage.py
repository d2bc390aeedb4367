"""What a further point of coverage costs: the frontier of operating points."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from farthing.promises.kinds.budget import Spending


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

    >>> import numpy as np
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
