"""Batches of recorded questions, and episodes drawn from them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class Questions:
    """The training questions as a learner sees them."""

    observations: FloatArray
    """[n, T, F] features of each round."""
    cost: FloatArray
    """[n, T] cost of each round in units of the mean cost of a round."""
    correct: BoolArray
    """[n, T, L] whether each role's answer is right."""
    answer: IntArray
    """[n, T, L] distinct answers of a question by number; -1 for none."""
    solvable: BoolArray
    """[n] whether any answer is right."""

    @classmethod
    def of(cls, traces: TraceArrays, observations: FloatArray) -> "Questions":
        spent = traces.round_cost_nano.astype(float)
        unit = spent.mean()
        return cls(
            observations,
            spent / (unit if unit > 0 else 1.0),
            traces.correct,
            traces.answer.astype(np.int64),
            traces.solvable,
        )

    def take(self, index: IntArray) -> "Questions":
        return Questions(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    @property
    def answered(self) -> BoolArray:
        """[n, T, L] whether there is an answer."""
        present: BoolArray = self.answer != NO_ANSWER
        return present


@dataclass(frozen=True)
class Episodes:
    """One episode a question, drawn from a stochastic policy."""

    action: IntArray
    """[B, T] action drawn in each round, also beyond the end."""
    taken: BoolArray
    """[B, T] whether the episode got as far as this round."""
    final: BoolArray
    """[B, T] whether an answer was chosen in this round."""
    right: BoolArray
    """[B] whether the chosen answer is right."""

    def of_action(self, values: FloatArray) -> FloatArray:
        """Pick each drawn action's value: [B, T, A] to [B, T]."""
        picked: FloatArray = np.take_along_axis(values, self.action[:, :, None], axis=2)[:, :, 0]
        return picked

    def product(self, factors: FloatArray) -> FloatArray:
        """Multiply factors, [B, T], over the rounds that each episode ran: [B]."""
        products: FloatArray = np.where(self.taken, factors, 1.0).prod(axis=1)
        return products

    def tensor_of_action(self, values: Tensor) -> Tensor:
        """Pick each drawn action's value: [B, T, A] to [B, T]."""
        index = torch.from_numpy(self.action)[:, :, None]
        return values.gather(2, index)[:, :, 0]


def draw(probabilities: FloatArray, correct: BoolArray, rng: np.random.Generator) -> Episodes:
    """Draw one episode a question.

    Args:
        probabilities: [B, T, A], `next` last and 0 in the last round.
        correct: [B, T, L] whether each answer is right.
        rng: the only source of randomness.
    """
    cumulative = probabilities.cumsum(axis=2)
    drawn = rng.random(probabilities.shape[:2])[:, :, None] * cumulative[:, :, -1:]
    action = (drawn >= cumulative[:, :, :-1]).sum(axis=2)
    stops = action < probabilities.shape[2] - 1
    taken = np.ones(action.shape, dtype=bool)
    np.logical_and.accumulate(~stops[:, :-1], axis=1, out=taken[:, 1:])
    final = stops & taken
    padded = np.concatenate([correct, np.zeros_like(correct[:, :, :1])], axis=2)
    right = np.take_along_axis(padded, action[:, :, None], axis=2)[:, :, 0]
    return Episodes(action, taken, final, (right & final).any(axis=1))
