"""What an estimator of success is: it learns from a pool, then reads histories of any model.

Learning is done once, on models whose outcomes are many. A model that joins later brings a history:
questions, and whether it was right. From it `success` says how likely the model is right on other
questions, without anything being trained again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import is_pool
from farthing_lab.features.question import QuestionFeatures


@dataclass(frozen=True)
class OutcomeHistory:
    """What one model did on some questions."""

    asked: QuestionFeatures
    right: BoolArray
    """[h] whether it was right."""

    def __post_init__(self) -> None:
        if self.right.shape != (len(self.asked),):
            raise InputError(f"{len(self.asked)} questions have {self.right.size} outcomes")

    @classmethod
    def of(cls, traces: TraceArrays, model: int = 0) -> "OutcomeHistory":
        """Return the graded calls of one model of recorded questions, by its place.

        Raises:
            InputError: the traces are not of models that were called once a question.
        """
        refuse_rounds(traces)
        graded = traces.made[:, 0][:, model] & ~traces.ungraded[:, 0, model]
        kept = traces.take(graded)
        return cls(QuestionFeatures.of(kept), kept.correct[:, 0, model])

    def take(self, index: IntArray) -> "OutcomeHistory":
        return OutcomeHistory(taken(self.asked, index.tolist()), self.right[index])


class Success(Protocol):
    """What was learned."""

    def success(self, history: OutcomeHistory, asked: QuestionFeatures) -> FloatArray:
        """Return the probability that the model with this history is right on each, [n].

        Between 0 and 1 and never on the edge. The order of the history does not matter, and a
        question's number does not depend on what else is asked. An empty history is allowed.
        """
        ...


class Estimator(Protocol):
    """Learns what questions have in common, from many outcomes of several models."""

    def fit(self, train: TraceArrays, seed: int) -> Success:
        """Learn from the graded calls of a pool; the same seed gives the same result.

        Raises:
            InputError: the questions are no pool, have no text, or none of a model is graded.
        """
        ...


def refuse_rounds(traces: TraceArrays) -> None:
    """Refuse what has rounds.

    Raises:
        InputError: the traces are no pool.
    """
    if not is_pool(traces):
        raise InputError(
            "these traces are no pool of models, one call of each model a question; success is "
            "estimated of one call"
        )


def taken(asked: QuestionFeatures, index: Sequence[int]) -> QuestionFeatures:
    """Return the questions at an index."""
    return QuestionFeatures(
        tuple(asked.text[i] for i in index), tuple(asked.group[i] for i in index)
    )


def log_loss(chance: FloatArray, right: BoolArray) -> float:
    """Return the mean of minus log of what was given to what came, in nats.

    >>> round(log_loss(np.array([0.5, 0.9]), np.array([True, True])), 4)
    0.3993
    """
    return float(-np.log(np.where(right, chance, 1.0 - chance)).mean())
