"""Pools of a few questions, written out, for decisions that are worked out by hand."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from farthing.methods.base import Learner, Silent
from farthing.methods.pool import PoolPolicy
from farthing.process.operating_points import OperatingPoints
from farthing.traces.arrays import TraceArrays

CENT = 10**7
"""In nano-dollars."""


def small_pool(
    answers: Sequence[Sequence[int]],
    cents: Sequence[float],
    confidence: Sequence[Sequence[float]] | None = None,
    question: Sequence[str] | None = None,
) -> TraceArrays:
    """Return questions for models a, b, ... that were all asked; the right answer is 0.

    Args:
        answers: of each question, what each model says; -1 for nothing.
        cents: what a call of each model costs.
        confidence: of each question, how sure each model is; None: nothing was recorded.
        question: their texts; None: not recorded.
    """
    said = np.array(answers, dtype=np.int16)[:, None]
    n, models = len(answers), len(cents)
    price = np.rint(np.array(cents) * CENT).astype(np.int64)
    sure = {} if confidence is None else {"confidence": np.array(confidence)[:, None]}
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=tuple("abcdef"[:models]),
        models=tuple("abcdef"[:models]),
        answer=said,
        correct=said == 0,
        cost_nano=np.tile(price, (n, 1))[:, None],
        signals={name: values.astype(np.float32) for name, values in sure.items()},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        question=None if question is None else np.array(question, dtype=object),
    )


def taught(learner: Learner, train: TraceArrays) -> PoolPolicy:
    """Return the policy that a learner makes of some questions."""
    policy = learner.fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, PoolPolicy)
    return policy


def paid(points: OperatingPoints, at: int) -> list[float]:
    """Return what each question costs at an operating point, in cents."""
    found: list[float] = (points.cost_nano[:, at] / CENT).round(9).tolist()
    return found
