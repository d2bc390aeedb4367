"""Which candidates before a reference are proved for a selective promise, and what each may cost.

One of each family (`methods.selective.rows`), by training questions alone; each of these is judged
by who was fitted without it. What counts is the cost of a question with the reference's price for
what is not answered: else who answers least costs least.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.selective.learner import PassedTo, SelectiveFit
from farthing.methods.selective.rows import families
from farthing.promises.base import Promise
from farthing.promises.statistics.cross_fitted import CAUTIONS, UNSEEN, Z
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.played import TrainingQuestions
from farthing.recommendation.prove_selective import laid_out
from farthing.traces.arrays import BoolArray, FloatArray

LONGER = 0.05
"""What each further model of a row must save, as longer rows are fitted to more."""


@dataclass(frozen=True)
class Prospect:
    """A candidate, its thresholds, and what is to be expected of it."""

    fit: SelectiveFit
    row: FloatArray
    """The thresholds to prove, falling."""
    share: Fraction
    """Of delta, that of its family."""
    expected_nano: float
    """What a question costs once so many questions have proved a threshold of it, or none."""
    likely: int
    """The threshold that is proved if new questions are like these."""

    @property
    def accuracy(self) -> float:
        """At that threshold, of all questions; what is not answered is not right."""
        return float((self.fit.right & (self.fit.sure >= self.row[self.likely])).mean())


def prospects(
    asked: Promise, reference: str, train: TrainingQuestions, n: int
) -> Iterator[list[Prospect]]:
    """Yield the candidates of each family, the cheapest expected first.

    Args:
        asked: the promise.
        reference: who answers what is not answered.
        train: the questions that train.
        n: how many will prove.
    """
    theirs = EscalationModel.of(train, reference)
    passed = PassedTo(theirs.place, theirs.cost_nano)
    for family in families(train.played, asked.alpha, passed):
        found = [_prospect(fit, asked, theirs, n, family.share) for fit in family.candidates]
        yield sorted(found, key=lambda one: (float(f"{one.expected_nano:.9g}"), one.fit.name))


def _prospect(
    fit: SelectiveFit, asked: Promise, theirs: EscalationModel, n: int, share: Fraction
) -> Prospect:
    row = laid_out(fit, asked.alpha)
    answered = fit.sure[:, None] >= row
    extra = np.zeros_like(fit.cost_nano) if fit.passing_nano is None else fit.passing_nano
    cost = (fit.cost_nano[:, None] + np.where(answered, 0, extra[:, None])).mean(axis=0)
    models = 1 if fit.policy.row is None else len(fit.policy.row.lines)
    trained, longer = len(answered), 1 + LONGER * (models - 1)
    bounds = [_Bound.of_given(answered, fit.right, float(asked.alpha))]
    if asked.passes_to is not None:
        bounds.append(_Bound.of_whole(answered, fit.right, theirs.right, float(asked.margin)))
    alone, costs = float(theirs.cost_nano.mean()), []
    for caution in CAUTIONS:
        kept = _kept(bounds, trained, n, caution)
        costs.append(min(float(cost[kept].min()) if kept.any() else alone, alone))
    likely = np.flatnonzero(_kept(bounds, trained, n, 0.0))
    place = int(likely[np.argmin(cost[likely])]) if likely.size else 0
    return Prospect(fit, row, share, float(np.mean(costs)) * longer, place)


@dataclass(frozen=True)
class _Bound:
    """What is promised to be 0 or less, at each threshold."""

    mean: FloatArray
    """[G]"""
    spread: FloatArray
    """[G] variance of one question's, at most."""
    unseen: float
    """What a wrong answer that was not met yet adds to the variance."""

    @classmethod
    def of_given(cls, answered: BoolArray, right: BoolArray, alpha: float) -> "_Bound":
        given, wrong = answered.mean(axis=0), (answered & ~right[:, None]).mean(axis=0)
        spread = wrong * (1 - alpha) ** 2 + (given - wrong) * alpha**2
        return cls(wrong - alpha * given, spread, alpha)

    @classmethod
    def of_whole(
        cls, answered: BoolArray, right: BoolArray, theirs: BoolArray, margin: float
    ) -> "_Bound":
        lost = (answered & (theirs & ~right)[:, None]).mean(axis=0)
        won = (answered & (right & ~theirs)[:, None]).mean(axis=0)
        return cls(lost - won - margin, lost + won, 1.0)


def _kept(bounds: list[_Bound], trained: int, proving: int, caution: float) -> BoolArray:
    """Return which thresholds are likely to be proved, from the most cautious on to the first not.

    Args:
        bounds: what has to be proved.
        trained: questions that say so.
        proving: questions that will prove it.
        caution: what is added as the mean is not known, in standard errors of those that trained.
    """
    kept = np.ones(len(bounds[0].mean), dtype=bool)
    for one in bounds:
        spread = one.spread + UNSEEN * one.unseen / trained
        above = Z * np.sqrt(spread / proving) + caution * np.sqrt(spread / trained)
        kept &= one.mean + above <= 0
    return np.logical_and.accumulate(kept)
