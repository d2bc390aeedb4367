"""The rows of a comparison beside single models alone, on the very splits that they were judged on.

The reference is chosen on the training questions, or by name; figures are of each test part.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from farthing.methods.base import Dataset
from farthing.money import usd_from_nano
from farthing.promises.base import Promise
from farthing.promises.texts import ANSWERED
from farthing.recommendation.base import OPTIMUM, Alone, Difference, Row
from farthing.recommendation.savings import LEVEL, MARGIN, SingleModels, paid_most
from farthing.recommendation.significance import t_quantile
from farthing.traces.arrays import FloatArray, IntArray
from farthing.traces.splits import Division
from farthing_lab.comparison.names import GAINED, SAVED
from farthing_lab.comparison.rows import ranked

METRICS = ("cost_usd", "coverage")
"""What is compared in pairs."""


CLAIM = (("ccpo", "cpo-batch"), ("ccpo", "cpo-online"))
"""The pairs that the paper's claim is about."""


def differences(
    rows: Sequence[Row], test_share: float, promise: Promise | None = None
) -> list[Difference]:
    """Return paired differences in cost and coverage, at each alpha.

    Every row with a threshold is held against the cheapest one with an exact promise, and CCPO
    against those that the paper holds it against. Rows without a threshold are left out: to cost
    less at a lower coverage is no saving. Under another promise than coverage every row is held
    against the winner, in cost and in what counts beside it.

    Args:
        rows: all rows of a comparison, played on the same splits.
        test_share: as in `paired_interval`.
        promise: what they promise; None: coverage.
    """
    found = []
    metrics = METRICS if promise is None else ("cost_usd", promise.beside_metric)
    for alpha in dict.fromkeys(row.alpha for row in rows):
        played = {row.policy: row for row in rows if row.alpha == alpha and row.per_split}
        pairs = _pairs(played)
        if promise is not None:
            winners = ranked(list(played.values()), promise)[:1]
            pairs = ((name, w.policy) for w in winners for name in played if name != w.policy)
        for ours, theirs in pairs:
            for metric in metrics:
                interval = paired_interval(
                    played[ours].per_split[metric], played[theirs].per_split[metric], test_share
                )
                found.append(Difference(alpha, ours, theirs, metric, *interval))
    return found


def _pairs(played: Mapping[str, Row]) -> Iterator[tuple[str, str]]:
    rivals = [r for r in played.values() if r.calibration == "split" and r.policy != OPTIMUM]
    if not rivals:
        return
    cheapest = min(rivals, key=lambda r: (np.mean(r.per_split["cost_usd"]), r.policy)).policy
    thresholded = [name for name, row in played.items() if row.calibration != "none"]
    yield from ((name, cheapest) for name in thresholded if name != cheapest)
    yield from (pair for pair in CLAIM if cheapest not in pair and set(pair) <= set(played))


def paired_interval(
    ours: Sequence[float], theirs: Sequence[float], test_share: float, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of ours - theirs and the ends of its interval.

    Splits redraw the same questions, so their differences are not independent and the usual
    variance / J is far too small. The correction is variance (1 / J + n_test / n_other).

    Args:
        ours: one value a split.
        theirs: the other policy's, on the same splits.
        test_share: the share of the redrawn questions that a split tests on, in (0, 1).
        level: probability that the interval is to hold the true difference with.

    Returns:
        NaN for what too few splits cannot tell: everything of none, the interval of one.

    Source: Nadeau and Bengio 2003, equation 9.

    >>> [round(x, 3) for x in paired_interval([3.0, 2.0, 4.0], [1.0, 1.0, 1.0], 0.5)]
    [2.0, -2.968, 6.968]
    """
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    if n == 0:
        return math.nan, math.nan, math.nan
    mean = float(difference.mean())
    if n == 1:
        return mean, math.nan, math.nan
    variance = float(difference.var(ddof=1)) * (1 / n + test_share / (1 - test_share))
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance)
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class SingleModelBaselines:
    """What each model alone came to on each split."""

    roles: tuple[str, ...]
    reference: str
    cost_usd: FloatArray
    """[J, L] a question, of each test part."""
    accuracy: FloatArray
    """[J, L]; NaN of a model of which some answers are not graded."""
    test_share: float
    """The share of the redrawn questions that a split tests on."""

    @classmethod
    def of(cls, dataset: Dataset, division: Division, tests: Sequence[IntArray]) -> Self | None:
        """Look the single models up; None where none was recorded alone, or nothing was played.

        Args:
            dataset: the questions.
            division: which of them trained.
            tests: the test part of each split, as places within the rest.
        """
        traces = dataset.traces
        reference = dataset.reference or paid_most(traces.take(division.train))
        rest = traces.take(division.rest)
        singles = SingleModels.of(rest)
        if not singles.alone or reference not in singles.roles or not tests:
            return None
        cost = [singles.cost_nano[test].sum(axis=0) / len(test) for test in tests]
        right = np.where(rest.ungraded.any(axis=(0, 1)), np.nan, singles.right)
        return cls(
            singles.roles,
            reference,
            np.array([[usd_from_nano(each) for each in one] for one in cost]),
            np.array([right[test].mean(axis=0) for test in tests]),
            division.n_test / len(division.rest),
        )

    @property
    def today(self) -> Alone:
        place = self.roles.index(self.reference)
        cost, right = self.cost_usd[:, place].mean(), self.accuracy[:, place].mean()
        return Alone(self.reference, float(cost), float(right))

    def row(self, row: Row) -> Row:
        """Return a row with what it saves, and with a single model that dominates it, if any."""
        cost = np.asarray(row.per_split.get("cost_usd", []))
        if not cost.size or not any(row.per_split.get(ANSWERED, [1.0])):
            return row  # who answers nothing saves nothing
        place, seeds = self.roles.index(self.reference), len(cost) // len(self.cost_usd)
        theirs = np.tile(self.cost_usd[:, place], seeds)
        saved = np.where(theirs > 0, 1 - cost / np.where(theirs > 0, theirs, 1), np.nan)
        gained = np.asarray(row.per_split["accuracy"]) - np.tile(self.accuracy[:, place], seeds)
        beside = {SAVED: saved.tolist(), GAINED: gained.tolist()}
        return replace(
            row,
            per_split={**row.per_split, **beside},
            intervals={name: self._interval(values) for name, values in beside.items()},
            instead=self._instead(row, seeds, "in_set") if "in_set" in row.per_split else "",
            for_one_answer=self._instead(row, seeds, "accuracy"),
        )

    def _interval(self, values: list[float]) -> tuple[float, float]:
        _, low, high = paired_interval(values, [0.0] * len(values), self.test_share)
        return low, high

    def _instead(self, row: Row, seeds: int, right: str) -> str:
        """Return the cheapest model that dominates a row, as `savings.dominating_model` does.

        Args:
            row: the row.
            seeds: trainings in it.
            right: the metric that the model's accuracy is held against.
        """
        level = 1 - 2 * LEVEL / len(self.roles)

        def less(metric: str, of: FloatArray) -> tuple[float, float, float]:
            theirs = of.tolist() * seeds
            return paired_interval(row.per_split[metric], theirs, self.test_share, level)

        found = []
        for place in range(len(self.roles)):
            cost = less("cost_usd", self.cost_usd[:, place])
            lost = less(right, self.accuracy[:, place])
            if cost[1] > 0 and lost[0] <= 0 and lost[2] < MARGIN:
                found.append(place)
        mean = self.cost_usd.mean(axis=0)
        return self.roles[min(found, key=lambda place: float(mean[place]))] if found else ""
