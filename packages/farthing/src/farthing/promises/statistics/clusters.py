"""Test a mean loss per request, where one question is asked several times.

Requests that ask the same are no independent draws; the questions are, each with the number of its
requests. So a question is one bet: on the sum X of the losses of its S requests. The loss of a
request is E[X] / E[S] in expectation, and it is `mean` or more where X - mean S has an expectation
of at least 0. A gambler who bets on less then cannot expect to win.
"""

import math
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.statistics.sampled_mean import log_fortunes

INDEPENDENT = (
    "Distinct questions are independent draws, each with the number of times that it is asked."
)
_STEPS = 40


@dataclass(frozen=True)
class Clusters:
    """Which requests ask the same question."""

    question: IntArray
    """[n] the question of each request, as any number."""
    most: int
    """How often a question counts at most, which these requests have not chosen. Of one that was
    asked more often each request counts for less."""

    def __post_init__(self) -> None:
        if self.question.ndim != 1 or not len(self.question) or self.most < 1:
            raise CalibrationError("give the question of each request, and a largest count above 0")

    def __len__(self) -> int:
        return len(np.unique(self.question))

    def sums(self, values: IntArray) -> FloatArray:
        """Return the sum of each question's requests, [G], of [n]; every request counts in full.

        >>> Clusters(np.array([5, 5, 5, 2]), most=2).sums(np.array([1, 2, 3, 4])).tolist()
        [4.0, 6.0]
        """
        which = np.unique(self.question, return_inverse=True)[1]
        found = np.zeros(len(self))
        np.add.at(found, which, values)
        return found

    def of(self, rows: BoolArray) -> "Clusters":
        """Return which of some requests ask the same."""
        return Clusters(self.question[rows], self.most)

    def totals(self, values: FloatArray | BoolArray) -> FloatArray:
        """Return the sum of each question's requests, [m, G], of [n, G].

        >>> Clusters(np.array([5, 5, 5, 2]), most=2).totals(np.ones((4, 1))).ravel().tolist()
        [1.0, 2.0]
        """
        _, which, size = np.unique(self.question, return_inverse=True, return_counts=True)
        weight = np.minimum(1.0, self.most / size)
        sums = np.zeros((len(size), values.shape[1]))
        np.add.at(sums, which, values)
        found: FloatArray = sums * weight[:, None]
        return found


def check(clusters: Clusters | None, n: int, partly: object) -> None:
    """Refuse clusters of other requests, and those of which some are graded alone.

    Raises:
        CalibrationError: as said.
    """
    if clusters is None:
        return
    if len(clusters.question) != n:
        raise CalibrationError(f"{n} requests but questions of {len(clusters.question)}")
    if partly is not None:
        raise CalibrationError(
            "a promise per request is proved from the grades of the traces alone; leave --per "
            "request or the other grades out"
        )


class Counts(TypedDict):
    """The numbers that a certificate comes from."""

    n: int
    requests: int | None


def counts(clusters: Clusters | None, n: int) -> Counts:
    """Return what a certificate says of n rows."""
    if clusters is None:
        return Counts(n=n, requests=None)
    return Counts(n=len(clusters), requests=n)


def conditions(clusters: Clusters | None) -> tuple[str, ...]:
    """Return what a promise per request rests on beside; nothing where there is none."""
    return () if clusters is None else (INDEPENDENT,)


class PerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a certificate keeps of a promise per request."""

    most: int
    """How often a question counts at most."""

    @classmethod
    def of(cls, clusters: Clusters | None) -> "PerRequest | None":
        """Return what is kept; None where a promise counts each question once."""
        return None if clusters is None else cls(clusters.most)

    def sentence(self, requests: int | None) -> str:
        """Say how questions count.

        >>> print(PerRequest(12).sentence(2_000))
        It is about requests, here 2,000: a question counts as often as it is asked, 12 times at \
most.
        """
        here = "" if requests is None else f", here {requests:,}"
        times = "once" if self.most == 1 else f"{self.most:,} times"
        return (
            f"It is about requests{here}: a question counts as often as it is asked, {times} at "
            "most."
        )


def clustered_p_values(loss: FloatArray, clusters: Clusters, mean: float) -> FloatArray:
    """Return a p-value of each operating point's losing `mean` or more a request, [G].

    Valid where questions are independent draws, however alike the requests of one are.

    Args:
        loss: [n, G] of each request, in [-1, 1].
        clusters: which of them ask the same question.
        mean: the hypothesis, in (-1, 1).

    Source: betting, Waudby-Smith and Ramdas 2024; a mean of ratios as a mean of differences,
    Fieller 1954.

    >>> five = Clusters(np.repeat(np.arange(100), 5), most=5)
    >>> small, large = (np.full((500, 1), lost) for lost in (0.0, 0.2))
    >>> float(clustered_p_values(small, five, 0.1)[0]) < 0.01
    True
    >>> float(clustered_p_values(large, five, 0.1)[0])
    1.0
    """
    terms = (
        clusters.totals(loss) - mean * clusters.totals(np.ones((len(loss), 1)))
    ) / clusters.most
    shuffled = terms[np.random.default_rng(0).permutation(len(terms))]  # a file may be sorted
    return np.array(
        [math.exp(-log_fortunes(column, 0.0, 1 - mean).max(initial=0.0)) for column in shuffled.T]
    )


def mean_loss(loss: FloatArray, clusters: Clusters) -> float:
    """Return the mean loss a request, of [n].

    >>> mean_loss(np.array([1.0, 1.0, 0.0]), Clusters(np.array([0, 0, 1]), most=1))
    0.5
    """
    totals = clusters.totals(np.stack([loss, np.ones_like(loss)], axis=1)).sum(axis=0)
    return float(totals[0] / totals[1])


def clustered_interval(loss: FloatArray, clusters: Clusters, delta: float) -> tuple[float, float]:
    """Return an interval of the mean loss a request, at confidence 1 - delta.

    Args:
        loss: [n] of each request, in [-1, 1].
        clusters: which of them ask the same question.
        delta: half of it is the error at either end.
    """
    ends = [_upper(sign * loss[:, None], clusters, delta / 2) for sign in (-1, 1)]
    return -ends[0], ends[1]


def clustered_share(
    right: BoolArray, clusters: Clusters, delta: float
) -> tuple[float, tuple[float, float]]:
    """Return the share of requests that are right, of [n], and its interval within [0, 1].

    Its confidence is 1 - delta. Both ends bound a share from above, of those that are right and of
    those that are not, as a gambler's largest loss is known best there.

    >>> share, (low, high) = clustered_share(np.ones(60, bool), Clusters(np.arange(60), 1), 0.05)
    >>> share, round(low, 2), high
    (1.0, 0.91, 1.0)
    """
    yes, no = right.astype(np.float64), (~right).astype(np.float64)
    most_yes, most_no = (_upper(share[:, None], clusters, delta / 2) for share in (yes, no))
    return mean_loss(yes, clusters), (1 - most_no, most_yes)


def _upper(loss: FloatArray, clusters: Clusters, delta: float) -> float:
    """Return the smallest mean that is refuted, by bisection: the fortune grows with the mean."""
    low, high = -1.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        refuted = float(clustered_p_values(loss, clusters, middle)[0]) <= delta
        low, high = (low, middle) if refuted else (middle, high)
    return high
