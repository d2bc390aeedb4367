"""Automatic discount scheduling: what comes early is learned first, and the horizon grows with it.

The discount follows from k, how many of the first steps are mastered:

    gamma = alpha^(1/k)

so that what lies k steps ahead counts alpha of what it is. A *progress recogniser* says when k is:
it compares what was done in the first k steps with demonstrations, and asks for a share of the
agreement that demonstrations have with one another.

Here a step is a round or a turn, and what is decided in it. The demonstrations are the cheapest
successes, which recorded rounds give exactly (`cheapest_success`), and episodes of one question
among themselves. Ours besides: steps are compared place by place, by means over a batch (the
authors look for the longest run in the demonstration's order, in pixels, and take percentiles of a
few episodes); k begins at 1 and rises by one an update at most; and where all steps are mastered
gamma is 1, since money has no discount.

Source: Liu et al. 2024, "Imitation Learning from Observation with Automatic Discount Scheduling"
(arXiv 2310.07433); alpha and the threshold are those of the authors' code (dwjshift/IL_ADS).
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from farthing.traces.arrays import BoolArray, IntArray

Decisions = IntArray | BoolArray
"""[n, T] what was decided in each step of an episode; equal where it was the same."""
Discount = Literal["fixed", "automatic"]
"""How a training discounts: as it is set, or by `Horizon`."""


def discount(mastered: int, alpha: float = 0.2) -> float:
    """Return gamma = alpha^(1/k).

    Args:
        mastered: k, the first steps that are mastered, from 1.
        alpha: what is left of a cost k steps ahead, in (0, 1].

    Raises:
        ValueError: one of them is outside.

    >>> discount(1), round(discount(4), 4), round(discount(4) ** 4, 4)
    (0.2, 0.6687, 0.2)
    """
    if mastered < 1 or not 0.0 < alpha <= 1.0:
        raise ValueError(
            f"{mastered} mastered steps must be 1 or more, and alpha {alpha} in (0, 1]"
        )
    return float(alpha ** (1.0 / mastered))


@dataclass(frozen=True)
class Horizon:
    """How far ahead a training looks."""

    steps: int
    """T: the most steps of an episode."""
    mastered: int
    """k: how many of the first are mastered, from 1; T: gamma is 1."""
    alpha: float = 0.2
    threshold: float = 0.9
    """Share of the demonstrations' agreement with one another that is enough."""

    @classmethod
    def of(cls, kind: Discount, steps: int) -> Self:
        """Return where a training begins: at its first step, or with all of them in view."""
        return cls(steps, 1 if kind == "automatic" else steps)

    @property
    def gamma(self) -> float:
        return 1.0 if self.mastered >= self.steps else discount(self.mastered, self.alpha)

    def after(self, done: Decisions, shown: Decisions, of: IntArray | None = None) -> "Horizon":
        """Return the horizon after a batch: one step further where the first k are mastered.

        They are where episodes agree with their demonstrations at least `threshold` times as often
        as two demonstrations do; fewer than two tell nothing.

        Args:
            done: [n, T] of episodes.
            shown: [m, T] of demonstrations.
            of: [n] the row of each episode's demonstration; None: its own.
        """
        k = self.mastered
        if k >= self.steps or len(shown) < 2:
            return self
        first = shown[:, :k]
        agreed = float((done[:, :k] == (first if of is None else first[of])).mean())
        pairs = (first[:, None] == first[None, :]).mean(axis=2)
        usual = (pairs.sum() - len(first)) / (len(first) * (len(first) - 1))
        return replace(self, mastered=k + 1) if agreed >= self.threshold * usual else self


def cheapest_success(correct: BoolArray) -> BoolArray:
    """Return after which rounds to go on, so that the first right answer is reached, [n, T].

    Where no answer is right, after none: nothing is to be had.

    Args:
        correct: [n, T, L] whether each role's answer is right.

    >>> cheapest_success(np.array([[[False], [True], [True]], [[False], [False], [False]]]))
    array([[ True, False, False],
           [False, False, False]])
    """
    found = np.logical_or.accumulate(correct.any(axis=2), axis=1)
    waits: BoolArray = found[:, -1:] & ~found
    return waits
