"""What CPO and CCPO share: the network, the critics, and surrogates estimated from episodes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farthing.rl.critics import Critics
from farthing.rl.networks import multilayer
from farthing.rl.rollout import Episodes, Questions
from farthing.rl.vtrace import importance, vtrace
from farthing.traces.arrays import FloatArray, IntArray

CLIP = 1.0
"""rho_bar: where V-trace truncates importance weights."""


@dataclass(frozen=True)
class SampledSurrogate:
    """Cost and coverage of a new target policy, estimated from one batch of episodes."""

    episodes: Episodes
    behaviour: FloatArray
    """[B, T] probability with which each action was drawn."""
    target: FloatArray
    """[B, T] its probability under the present target policy."""
    cost_advantage: FloatArray
    """[B, T], equation 6."""
    coverage_advantage: FloatArray
    """[B, T], equation 6 with constraint values."""
    level: float
    """The present coverage, as estimated."""

    def cost(self, new: Tensor) -> Tensor:
        """Return sum_t rho_t (S/S_k) A_t, with rho_t truncated at `CLIP` (equation 7)."""
        weight = np.minimum(1.0 / self.behaviour, CLIP / self.target) * self.cost_advantage
        return self._mean(new, weight)

    def coverage(self, new: Tensor) -> Tensor:
        """Return the level plus what the change of policy adds; these weights are not truncated."""
        weight = self.coverage_advantage / self.behaviour
        kept = float((self.target * weight * self.episodes.taken).sum(axis=1).mean())
        return self.level + self._mean(new, weight) - kept

    def _mean(self, new: Tensor, weight: FloatArray) -> Tensor:
        counted = torch.from_numpy(weight * self.episodes.taken)
        return (self.episodes.tensor_of_action(new) * counted).sum(dim=1).mean()


@dataclass(frozen=True)
class RollOut:
    """A batch of episodes, and what they are judged by."""

    batch: Questions
    episodes: Episodes
    """One a question, drawn from `behaviour`."""
    behaviour: FloatArray
    """[B, T, A] probabilities that actions were drawn with."""
    target: FloatArray
    """[B, T, A] probabilities of the present target policy."""
    cost: FloatArray
    """[B, T] what each step costs."""
    coverage: FloatArray
    """[B, T] constraint value of each step."""
    level: float
    """The present coverage, as estimated."""


class ActorCritic:
    """The moving parts of a training: policy network, critics, random numbers."""

    def __init__(self, questions: Questions, batch: int, seed: int) -> None:
        width, roles = questions.observations.shape[2], questions.correct.shape[2]
        self.network = multilayer(width, roles + 1, seed, scale=0.01)
        self.rng = np.random.default_rng([seed, 1])
        self._critics = Critics(width, seed + 1)
        self._batches = question_stream(len(questions.solvable), batch, seed)
        self._questions = questions

    def batch(self) -> Questions:
        """Return the next batch of questions."""
        return self._questions.take(next(self._batches))

    def criticise(self, seen: RollOut) -> SampledSurrogate:
        """Compute V-trace targets, take one gradient step on both critics, return the surrogate."""
        episodes = seen.episodes
        drawn, wanted = episodes.of_action(seen.behaviour), episodes.of_action(seen.target)
        rho = importance(wanted, drawn, CLIP)
        values = self._critics.values(torch.from_numpy(seen.batch.observations))
        cost_value, coverage_value = values.detach().numpy()
        paid, paid_more = vtrace(seen.cost, cost_value, rho, episodes.taken)
        covered, covered_more = vtrace(seen.coverage, coverage_value, rho, episodes.taken)
        self._critics.fit(values, np.stack([paid, covered]), episodes.taken)
        wanted = np.maximum(wanted, np.finfo(float).tiny)
        return SampledSurrogate(episodes, drawn, wanted, paid_more, covered_more, seen.level)


def question_stream(n: int, batch: int, seed: int) -> "QuestionStream":
    """Return the endless stream of batches that every learner sees under one seed."""
    return QuestionStream(n, min(batch, n), np.random.default_rng([seed, 0]))


@dataclass(frozen=True)
class QuestionStream:
    """Draws batches of question indices, without replacement within a batch."""

    n: int
    batch: int
    rng: np.random.Generator

    def __next__(self) -> IntArray:
        return self.rng.choice(self.n, self.batch, replace=False)
