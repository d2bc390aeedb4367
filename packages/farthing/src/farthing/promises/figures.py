"""The figure that a promise is about, as measured, with an interval that is valid for any n."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from farthing.promises.certificate import BoolArray, Population
from farthing.promises.statistics.beta import beta_quantile
from farthing.promises.statistics.clusters import Clusters, clustered_interval, mean_loss

if TYPE_CHECKING:
    from farthing.promises.observed import Acted


@dataclass(frozen=True)
class Figure:
    """The figure that a promise is about, as measured."""

    what: str
    """In words."""
    value: float
    interval: tuple[float, float]
    """95 % interval of what is true of a new question, valid at every sample size."""
    promised: float
    at_most: bool = False
    """Whether the figure was promised to stay below, rather than above."""
    besides: "Figure | None" = None
    """The other figure, where two are promised."""

    @property
    def verdict(self) -> str:
        """`kept`, `missed within chance` or `broken` (the whole interval is on the wrong side)."""
        sign = -1.0 if self.at_most else 1.0
        best = self.interval[0] if self.at_most else self.interval[1]
        if sign * self.value >= sign * self.promised:
            return "kept"
        return "missed within chance" if sign * best >= sign * self.promised else "broken"

    def sentence(self) -> str:
        """Say in one sentence what came of it.

        >>> print(Figure("coverage", 0.92, (0.88, 0.95), 0.9).sentence())
        On these test questions: coverage 0.92 (95 % interval 0.88 to 0.95), at least 0.9 was \
promised: kept.
        """
        low, high = self.interval
        limit = "at most" if self.at_most else "at least"
        return (
            f"On these test questions: {self.what} {self.value:.3g} (95 % interval {low:.3g} to "
            f"{high:.3g}), {limit} {self.promised:.3g} was promised: {self.verdict}."
            + ("" if self.besides is None else f" {self.besides.sentence()}")
        )


def share_of(what: str, right: BoolArray, alpha: Fraction) -> Figure | None:
    """Return the share of questions that are as promised, [n], at least 1 - alpha; None of none."""
    if not len(right):
        return None
    interval = clopper_pearson(int(right.sum()), len(right))
    return Figure(what, float(right.mean()), interval, float(1 - alpha))


def coverage_of(of: "Acted", alpha: Fraction, population: Population) -> Figure | None:
    """Return the share of questions that are covered, of all or of the solvable ones."""
    if population == "solvable":
        return share_of("coverage given solvable", of.in_set[of.solvable], alpha)
    return share_of("coverage", of.covered, alpha)


def accuracy_difference(ours: BoolArray, theirs: BoolArray) -> tuple[float, tuple[float, float]]:
    """Return how much more often ours are right, and an interval of at least 95 %, exact.

    The interval joins those of the shares lost and won, at half the error each.

    Args:
        ours: [n] whether one answer a question is right.
        theirs: [n] the same of somebody else, on the same questions.
    """
    n = len(ours)
    lost = clopper_pearson(int((theirs & ~ours).sum()), n, 0.975)
    won = clopper_pearson(int((~theirs & ours).sum()), n, 0.975)
    gained = (int(ours.sum()) - int(theirs.sum())) / n  # of means it would not be exact
    return gained, (won[0] - lost[1], won[1] - lost[0])


def difference_by_request(
    ours: BoolArray, theirs: BoolArray, clusters: Clusters
) -> tuple[float, tuple[float, float]]:
    """Return what `accuracy_difference` does where only distinct questions are independent draws.

    Args:
        ours: [n] whether the answer to each request is right.
        theirs: [n] the same of somebody else, on the same requests.
        clusters: which requests ask the same.
    """
    loss = theirs.astype(np.float64) - ours.astype(np.float64)
    least, most = clustered_interval(loss, clusters, 0.05)
    return 0.0 - mean_loss(loss, clusters), (0.0 - most, 0.0 - least)


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a share.

    Source: Clopper and Pearson 1934.

    >>> [round(end, 4) for end in clopper_pearson(90, 100)]
    [0.8238, 0.951]
    """
    tail = (1 - level) / 2
    low = beta_quantile(tail, successes, n - successes + 1) if successes > 0 else 0.0
    high = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return low, high
