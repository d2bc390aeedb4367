"""What a row of operating points is likely to cost once it is proved, by cross-fitted figures.

Each training question is answered by a policy that was fitted without it, so that nothing flatters
the points. Which row of points is worth proving, and where its test begins, is decided by these.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from farthing.promises.certificate import BoolArray, FloatArray

Z = NormalDist().inv_cdf(0.9)
"""What a proof adds to the loss that it bounds, in standard errors of the proving questions."""
CAUTIONS = (0.5, 1.0, 1.5)
"""What is added because the loss is not known, in standard errors of the training questions."""
MARGINS = np.linspace(0.5, 2.5, 9)
"""Margins around the one that is asked for, as multiples of it; the score is the mean over both."""
LEAST_MARGIN = 0.01
"""A margin of less, or of a gain, is scored like this one."""
UNSEEN = 2
"""Losses and wins that may not have been met yet."""


@dataclass(frozen=True)
class CrossFitted:
    """G operating points on n questions that none of them was fitted to, from the cheapest."""

    n: int
    cost: FloatArray
    """[G] mean cost, as a multiple of the reference's."""
    lost: FloatArray
    """[G] share of the questions that only the reference has right."""
    won: FloatArray
    """[G] share that only the point has right."""
    expected: FloatArray | None = None
    """[G] mean net loss as the policy itself expects it; None: it expects nothing."""
    surcharge: float = 1.0
    """What the score is multiplied by, where more was fitted than with others."""

    @property
    def net(self) -> FloatArray:
        """[G] losses less wins: the mean of those seen and those expected, which vary less."""
        seen = self.lost - self.won
        return seen if self.expected is None else (seen + self.expected) / 2

    @property
    def spread(self) -> FloatArray:
        """[G] variance of one question's loss, at most."""
        return self.lost + self.won + UNSEEN / self.n

    def bound(self, proving: int, caution: float) -> FloatArray:
        """Return the loss that so many new questions would probably rule out, [G].

        Points are tested from the dearest on, so none is proved that loses less than a dearer one.
        """
        proof = Z * np.sqrt(self.spread / proving)
        above = self.net + proof + caution * np.sqrt(self.spread / self.n)
        bound: FloatArray = np.maximum.accumulate(above[::-1])[::-1]
        return bound

    def score(self, margin: float, proving: int) -> float:
        """Return the cost to expect once so many questions have proved it; 1: the reference's.

        >>> row = CrossFitted(300, np.array([0.1, 0.5]), np.array([0.2, 0.0]), np.zeros(2))
        >>> round(row.score(0.02, 700), 2), round(row.score(0.2, 700), 2)
        (0.52, 0.25)
        """
        margins = max(margin, LEAST_MARGIN) * MARGINS
        costs = [
            np.where(self.bound(proving, caution)[:, None] <= margins, self.cost[:, None], 1.0)
            for caution in CAUTIONS
        ]
        reached = np.minimum(np.stack(costs).min(axis=1), 1.0)
        return float(reached.mean()) * self.surcharge

    def start(self, margin: float, useful: BoolArray, proving: int) -> int:
        """Return the point at which testing begins.

        It is the dearest useful one where something may be lost. Else a point that loses and wins
        nothing proves nothing: it is the one likeliest to be proved; of equals the dearest.

        Args:
            margin: what may be lost.
            useful: [G] which points are worth proving; with none the cheapest one is tested.
            proving: questions that will prove.
        """
        if not useful.any():
            return 0
        if margin > 0:
            return int(np.flatnonzero(useful)[-1])
        likely = (margin - self.net) / np.sqrt(self.spread / proving)
        likely = np.where(useful, likely, -np.inf)
        return int(np.flatnonzero(likely >= likely.max())[-1])

    def likely_point(self, start: int, margin: float, proving: int) -> int:
        """Return the cheapest point that testing from the start on would probably reach."""
        within = self.bound(proving, 0.0)[: start + 1] <= margin
        points = np.append(np.flatnonzero(within), start)
        return int(points[np.argmin(self.cost[points])])
