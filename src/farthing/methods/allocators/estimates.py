"""What each model of a pool is likely to make of a question that nobody asked yet.

The chance of being right is one logistic regression a model on the question's words and, where
questions have one, its group: RouteLLM's linear score of the text with a constant, for each model
by itself. The expected cost is a line in the length of the text, a model each, within what was
recorded. Both read nothing but the question.

Source: the features and the strength of the penalty are those that `route-llm` and the scorers of
cascades have; that models are fitted one by one, and the line, are ours.
"""

from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError, MissingExtraError
from farthing.features.question import QuestionFeatures, groups_of, seen_of
from farthing.methods.allocators.base import Batch
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import is_pool

__all__ = ["Estimates", "QuestionFeatures", "fit_estimates"]


@dataclass(frozen=True)
class Estimates:
    """What was learned of each of L models."""

    models: tuple[str, ...]
    groups: tuple[str, ...]
    weight: FloatArray
    """[L, F + 1] of words and groups in log-odds, the constant last."""
    line: FloatArray
    """[L, 2] nano-dollars of a question, and of a letter of it."""
    range_nano: IntArray
    """[L, 2] the least and the most that a question cost in training."""
    mean: FloatArray
    """[L] the share of right answers in training."""

    def chance(self, asked: QuestionFeatures) -> FloatArray:
        """Return the chance that each model is right, [n, L]."""
        seen = seen_of(asked, self.groups)
        odds: FloatArray = seen @ self.weight[:, :-1].T + self.weight[:, -1]
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def cost_nano(self, asked: QuestionFeatures) -> IntArray:
        """Return what each model is expected to cost, [n, L]."""
        letters = np.array([len(text) for text in asked.text], dtype=np.float64)
        raw = self.line[:, 0] + letters[:, None] * self.line[:, 1]
        return np.ceil(np.clip(raw, *self.range_nano.T)).astype(np.int64)

    def batch(self, asked: QuestionFeatures, offered: BoolArray | None = None) -> Batch:
        """Return the questions as items, and the models as their options.

        The most that an answer can cost is the most that one of this model cost in training.
        """
        expected = self.cost_nano(asked)
        largest = np.maximum(expected, self.range_nano[:, 1])
        every = np.ones(expected.shape, dtype=bool)
        return Batch(self.chance(asked), expected, largest, every if offered is None else offered)


def fit_estimates(train: TraceArrays) -> Estimates:
    """Learn from recorded questions of a pool.

    Raises:
        InputError: the questions are no pool, or no answer of a model is graded.
        MissingExtraError: scikit-learn is not installed.
    """
    if not is_pool(train):
        raise InputError(
            "these traces are no pool of models, one call of each model a question; collect one "
            "with `farthing collect`, or import one with `farthing traces import`"
        )
    try:
        from farthing.methods.scorer import STRENGTH, logistic  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("Learning who is right on which question", "train") from error
    asked, made = QuestionFeatures.of(train), train.made[:, 0]
    graded, right = made & ~train.ungraded[:, 0], train.correct[:, 0]
    lacking = [name for name, n in zip(train.roles, graded.sum(axis=0), strict=True) if n < 1]
    if lacking:
        raise InputError(f"no answer of {lacking[0]} is graded; record `gold` or `correct`")
    groups = groups_of(asked.group)
    seen, cost = seen_of(asked, groups), train.cost_nano[:, 0]
    letters = np.array([len(text) for text in asked.text], dtype=np.float64)
    models = range(train.n_roles)
    return Estimates(
        train.roles,
        groups,
        np.array([logistic(seen[graded[:, m]], right[graded[:, m], m], STRENGTH) for m in models]),
        np.array([_line(letters[made[:, m]], cost[made[:, m], m]) for m in models]),
        np.array([[cost[made[:, m], m].min(), cost[made[:, m], m].max()] for m in models]),
        np.array([right[graded[:, m], m].mean() for m in models]),
    )


def _line(letters: FloatArray, cost: IntArray) -> FloatArray:
    """Return the line of least squares that does not fall, [2]."""
    spread = letters - letters.mean()
    total = float((spread**2).sum())
    slope = max(0.0, float((spread * cost).sum()) / total) if total > 0.0 else 0.0
    return np.array([float(cost.mean()) - slope * float(letters.mean()), slope])
