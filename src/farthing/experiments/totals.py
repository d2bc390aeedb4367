"""Sums over questions, exact as integers: those of chunks add up to those of the whole."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from farthing.environments.replay import Outcome
from farthing.models.money import usd_from_nano


@dataclass(frozen=True)
class Totals:
    """What happened to so many questions, as counts and nano-dollars."""

    questions: int = 0
    cost_nano: int = 0
    covered: int = 0
    in_set: int = 0
    solvable: int = 0
    best_correct: int = 0
    length: int = 0
    set_size: int = 0
    set_size_leaves: int = 0
    empty: int = 0

    @classmethod
    def of(cls, found: Outcome) -> Self:
        """Add up what happened to each question."""
        sums = {name: int(getattr(found, name).sum()) for name in found.__dataclass_fields__}
        empty = int(np.count_nonzero(found.set_size == 0))
        return cls(questions=len(found.cost_nano), empty=empty, **sums)

    def __add__(self, other: Self) -> "Totals":
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return Totals(**{name: sum(pair) for name, pair in pairs.items()})

    def metrics(self) -> dict[str, float]:
        """Return every metric of `METRICS`; NaN where it does not exist."""
        cost, n = usd_from_nano(self.cost_nano), self.questions
        return {
            "cost_usd": cost / n,
            "total_cost_usd": cost,
            "coverage": self.covered / n,
            "coverage_solvable": self.in_set / self.solvable if self.solvable else np.nan,
            "in_set": self.in_set / n,
            "solvable": self.solvable / n,
            "accuracy": self.best_correct / n,
            "avg_len": self.length / n,
            "set_size": self.set_size / n,
            "set_size_leaves": self.set_size_leaves / n,
            "empty": self.empty / n,
        }
