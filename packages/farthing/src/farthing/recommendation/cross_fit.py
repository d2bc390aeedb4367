"""Rehearse a method on its training questions: each is answered by who was fitted without it."""

from collections.abc import Callable

import numpy as np

from farthing.promises.base import Promise
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.recommendation.played import (
    PlayedPolicy,
    TrainingQuestions,
    grid,
    operating_points_of,
)
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import asked_first, one_of_each

FOLDS = 5


def thresholds_of(plays: PlayedPolicy, train: TrainingQuestions) -> FloatArray:
    """Return the thresholds of a policy's operating points, [G], from the cheapest."""
    own = plays.policy.parameters
    return grid(train.replay(plays)) if own is None else own


def rehearsed(
    fit: Callable[[IntArray], PlayedPolicy],
    thresholds: FloatArray,
    train: TrainingQuestions,
    asked: Promise,
    seed: int,
) -> CrossFitted:
    """Return what a method's operating points come to, by policies fitted to four fifths.

    Policies of different folds have thresholds of their own; points are taken for the same that
    have the same rank between the cheapest and the dearest.

    Args:
        fit: trains on these rows of the training questions.
        thresholds: [G] of the policy that was fitted to all of them.
        train: all of them; those that ask the same are in one fold, and one of them counts.
        asked: the promise, with its reference.
        seed: of the folds.
    """
    fold, shape = _folds(train.recorded, seed), (len(train.recorded), len(thresholds))
    rank = np.linspace(0, 1, len(thresholds))
    cost, correct = np.empty(shape), np.empty(shape, dtype=bool)
    for k in range(FOLDS):
        held, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        plays = fit(others)
        own = thresholds_of(plays, train.take(others))
        same = own[np.rint(rank * (len(own) - 1)).astype(np.int64)]
        points = operating_points_of(train.take(held).replay(plays), same)
        cost[held], correct[held] = points.cost_nano, points.correct
    counted = one_of_each(train.recorded.content)
    right, paid = beside(asked, asked.reference, train.recorded.take(counted))
    theirs, ours = right[:, None], correct[counted]
    return CrossFitted(
        n=len(counted),
        cost=cost[counted].mean(axis=0) / max(float(paid.mean()), 1.0),
        lost=(theirs & ~ours).mean(axis=0),
        won=(~theirs & ours).mean(axis=0),
    )


def beside(
    asked: Promise, reference: str | None, recorded: TraceArrays
) -> tuple[BoolArray, IntArray]:
    """Return which questions are lost where an answer is not as asked, and what they cost, [n].

    Where a call of the reference saw those before it, it costs them as well.
    """
    place = recorded.roles.index(reference or "")
    first = place if recorded.independent.all() else 0
    paid = recorded.cost_nano[:, 0, first : place + 1].sum(axis=1)
    return asked.bars(recorded.correct[:, 0, place]), paid


def _folds(recorded: TraceArrays, seed: int) -> IntArray:
    """Return the fold of each question, [n]; those that ask the same are in one."""
    first = asked_first(recorded.content)
    shuffled = np.random.default_rng(seed).permutation(len(first))
    return shuffled[first] % FOLDS
