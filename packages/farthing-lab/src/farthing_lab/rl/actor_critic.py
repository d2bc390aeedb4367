"""What CPO and CCPO share: episodes drawn from recorded questions, V-trace, critics, surrogates."""

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.rl.networks import HIDDEN, multilayer


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


def importance(target: FloatArray, behaviour: FloatArray, clip: float = np.inf) -> FloatArray:
    """Return the truncated importance weights min(clip, target / behaviour).

    >>> importance(np.array([0.5, 0.1]), np.array([0.1, 0.5]), clip=1.0)
    array([1. , 0.2])
    """
    return np.minimum(clip, target / behaviour)


def vtrace(
    rewards: FloatArray,
    values: FloatArray,
    rho: FloatArray,
    taken: BoolArray,
    gamma: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Compute V-trace targets and advantages of a batch of episodes.

    Off-policy value targets (Espeholt et al. 2018; CCPO equation 4) with c_bar = rho_bar and value
    0 after the last step of an episode, which with gamma = 1 are
    v_t = V_t + rho_t (r_t + V_{t+1} - V_t) + rho_t (v_{t+1} - V_{t+1}), and the advantage of
    IMPALA's policy gradient is r_t + v_{t+1} - V_t (equation 6).

    Args:
        rewards: [B, T] reward, cost or constraint value of each step.
        values: [B, T] the critic's V(o_t).
        rho: [B, T] importance weights, truncated as the caller sees fit.
        taken: [B, T] whether the step was taken; an episode is a prefix of its row.
        gamma: discount of one step, of V_{t+1} and v_{t+1} wherever they stand.

    Returns:
        Targets and advantages, [B, T] each; 0 where no step was taken.
    """
    next_value = np.zeros(len(values))
    next_target = np.zeros(len(values))
    targets, advantages = np.zeros_like(values), np.zeros_like(values)
    for t in reversed(range(values.shape[1])):
        value = np.where(taken[:, t], values[:, t], 0.0)
        advantage = np.where(taken[:, t], rewards[:, t] + gamma * next_target - value, 0.0)
        delta = rho[:, t] * (rewards[:, t] + gamma * next_value - value)
        target = value + delta + rho[:, t] * gamma * (next_target - next_value)
        targets[:, t] = np.where(taken[:, t], target, 0.0)
        advantages[:, t] = advantage
        next_value, next_target = value, targets[:, t]
    return targets, advantages


class Critics:
    """Two value networks of three hidden layers, trained side by side in one set of tensors."""

    def __init__(self, inputs: int, seed: int, learning_rate: float = 1e-3) -> None:
        self._rate = learning_rate
        generator = torch.Generator().manual_seed(seed)
        widths = (inputs, *HIDDEN, 1)
        self._weights: list[Tensor] = []
        self._biases: list[Tensor] = []
        for fan_in, fan_out in itertools.pairwise(widths):
            weight = torch.empty(2, fan_in, fan_out, dtype=torch.float64)
            for half in weight:
                torch.nn.init.orthogonal_(half, generator=generator)
            self._weights.append(weight.requires_grad_())
            self._biases.append(torch.zeros(2, 1, fan_out, dtype=torch.float64, requires_grad=True))
        self._optimiser = torch.optim.Adam(
            [*self._weights, *self._biases], lr=learning_rate, foreach=True
        )

    def values(self, observations: Tensor) -> Tensor:
        """Return (cost, constraint) values of [B, T, F] observations: [2, B, T]."""
        batch, rounds, width = observations.shape
        hidden = observations.reshape(1, batch * rounds, width).expand(2, -1, -1)
        for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
            hidden = torch.tanh(torch.baddbmm(bias, hidden, weight))
        out = torch.baddbmm(self._biases[-1], hidden, self._weights[-1])
        return out.reshape(2, batch, rounds)

    def fit(
        self, values: Tensor, targets: FloatArray, taken: BoolArray, share: float = 1.0
    ) -> None:
        """Take one gradient step on sum_t (v_t - V(o_t))^2 (equation 5, descended).

        Args:
            values: [2, B, T] as `values` returned them.
            targets: [2, B, T] V-trace targets.
            taken: [B, T] which steps count.
            share: of the learning rate.
        """
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * share
        error = (values - torch.from_numpy(targets)) * torch.from_numpy(taken)
        loss = 0.5 * (error * error).sum() / values.shape[1]
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()


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
    gamma: float = 1.0
    """Discount of a round's cost; coverage has none."""
    share: float = 1.0
    """Of the critics' learning rate."""


class ActorCritic:
    """The moving parts of a training: policy network, critics, random numbers."""

    def __init__(self, questions: Questions, batch: int, seed: int) -> None:
        width, roles = questions.observations.shape[2], questions.correct.shape[2]
        self.network = multilayer(width, roles + 1, seed, scale=0.01)
        self.rng = np.random.default_rng([seed, 1])
        self._critics = Critics(width, seed + 1)
        self._batches = QuestionStream(len(questions.solvable), batch, seed)
        self._questions = questions

    def batch(self) -> Questions:
        return self._questions.take(next(self._batches))

    def criticise(self, seen: RollOut) -> SampledSurrogate:
        """Compute V-trace targets, take one gradient step on both critics, return the surrogate."""
        episodes = seen.episodes
        drawn, wanted = episodes.of_action(seen.behaviour), episodes.of_action(seen.target)
        rho = importance(wanted, drawn, CLIP)
        values = self._critics.values(torch.from_numpy(seen.batch.observations))
        cost_value, coverage_value = values.detach().numpy()
        paid, paid_more = vtrace(seen.cost, cost_value, rho, episodes.taken, seen.gamma)
        covered, covered_more = vtrace(seen.coverage, coverage_value, rho, episodes.taken)
        self._critics.fit(values, np.stack([paid, covered]), episodes.taken, seen.share)
        wanted = np.maximum(wanted, np.finfo(float).tiny)
        return SampledSurrogate(episodes, drawn, wanted, paid_more, covered_more, seen.level)


class QuestionStream:
    """The endless batches of question indices that every learner sees under one seed.

    They are drawn without replacement within a batch.
    """

    def __init__(self, n: int, batch: int, seed: int) -> None:
        self.n, self.batch = n, min(batch, n)
        self.rng = np.random.default_rng([seed, 0])

    def __next__(self) -> IntArray:
        return self.rng.choice(self.n, self.batch, replace=False)
