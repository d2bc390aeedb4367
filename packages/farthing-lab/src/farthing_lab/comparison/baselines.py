"""The rows of a comparison beside single models alone, on the very splits that they were judged on.

The reference is chosen on the training questions, or by name; figures are of each test part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from farthing.methods.base import Dataset
from farthing.money import usd_from_nano
from farthing.promises.texts import ANSWERED
from farthing.recommendation.base import GAINED, SAVED, Alone, Row
from farthing.recommendation.savings import LEVEL, MARGIN, SingleModels, paid_most
from farthing.traces.arrays import FloatArray, IntArray
from farthing.traces.splits import Division
from farthing_lab.comparison.paired_differences import paired_interval


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
