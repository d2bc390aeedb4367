"""Boundary-guided training: boundaries, a warm start on the cheapest successes, then the policy.

1. Always-small and always-large play every task: what it costs at either end, and whether it is
   easy, hard or intractable.
2. Episodes at several shares of large steps are drawn; of each task the cheapest success is
   imitated, and on intractable tasks the small model.
3. The policy is improved by clipped policy gradients on boundary-relative rewards, with the
   reference-guided advantage. Half of the tasks have a random budget, so that it learns what to
   do with less.

Source: Zhang et al. 2026, arXiv:2602.21227. What the abstract leaves open, all numbers here among
it, is ours.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.base import Progress, Silent
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.routers.bopo.episodes import (
    UNLIMITED,
    TaskChain,
    TaskEpisodes,
    always,
    at_random,
    run,
)
from farthing_lab.methods.routers.bopo.policy import (
    CLASSES,
    StepPolicy,
    boundary_reward,
    masked,
    reference_advantage,
    relative_cost,
    taxonomy,
)

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of large steps in the episodes of the warm start."""


@dataclass(frozen=True)
class BopoConfig:
    """How to learn."""

    price: float = 0.3
    """lambda: what all steps large instead of small cost, as a share of a success."""
    boundary: int = 4
    """Episodes of each boundary policy on a task."""
    imitated: int = 200
    """Gradient steps of the warm start."""
    updates: int = 300
    """Updates of the policy."""
    batch: int = 128
    """Tasks of an update."""
    group: int = 8
    """Episodes of a task in an update, all under the same budget."""
    rate: float = 0.1
    """Step of Adam."""
    clip: float = 0.2
    """How far a probability's ratio may move what it gains from."""


SHORT = BopoConfig(boundary=1, updates=150, batch=32)
"""For models that answer alike each time, so that one episode of a boundary tells all."""


@dataclass(frozen=True)
class Boundaries:
    """What the two boundary policies come to on each task."""

    small: FloatArray
    """[tasks] share of always-small's episodes that succeeded."""
    large: FloatArray
    cost_small: FloatArray
    """[tasks] mean nano-dollars of always-small."""
    cost_large: FloatArray

    @property
    def kind(self) -> IntArray:
        """[tasks] index into `CLASSES`."""
        return taxonomy(self.small, self.large)

    def reference(self, price: float) -> FloatArray:
        """Return the mean reward of the better of both, [tasks]."""
        return np.maximum(self.small, self.large * (1.0 - price))

    def reward(self, task: IntArray, done: TaskEpisodes, price: float) -> FloatArray:
        """Return each episode's boundary-relative reward, [n]."""
        cost = done.cost_nano.astype(np.float64)
        relative = relative_cost(cost, self.cost_small[task], self.cost_large[task])
        return boundary_reward(done.success, relative, price)


@dataclass(frozen=True)
class BopoFit:
    """What training leaves behind."""

    policy: StepPolicy
    warm: StepPolicy
    """After the warm start."""
    boundaries: Boundaries
    curve: FloatArray
    """[updates] mean reward of each update's episodes."""


def boundaries(chain: TaskChain, episodes: int, rng: np.random.Generator) -> Boundaries:
    """Play every task so often with each boundary policy, without a budget."""
    task = np.repeat(np.arange(chain.tasks), episodes)
    free = np.full(len(task), UNLIMITED)
    found = [run(chain, task, always(model), free, rng) for model in (0, 1)]
    rate = [one.success.reshape(-1, episodes).mean(axis=1) for one in found]
    cost = [one.cost_nano.reshape(-1, episodes).mean(axis=1) for one in found]
    return Boundaries(rate[0], rate[1], cost[0], cost[1])


def learn(
    chain: TaskChain, config: BopoConfig, rng: np.random.Generator, progress: Progress | None = None
) -> BopoFit:
    """Train on all tasks of a chain."""
    told = progress or Silent()
    known = boundaries(chain, config.boundary, rng)
    warm = _imitate(*_cheapest_successes(chain, known, rng), config)
    weight, adam, curve = warm.weight, _Adam.of(warm.weight, config.rate), []
    for update in range(config.updates):
        task = np.repeat(rng.integers(chain.tasks, size=config.batch), config.group)
        budget = np.repeat(_budgets(known, task[:: config.group], rng), config.group)
        done = run(chain, task, StepPolicy(weight).chances, budget, rng)
        reward = known.reward(task, done, config.price).reshape(-1, config.group)
        reference = known.reference(config.price)[task[:: config.group]]
        advantage = reference_advantage(reward, reference).reshape(-1)
        weight, adam = _improve(weight, adam, done, advantage, config)
        curve.append(float(reward.mean()))
        told.update(update + 1, config.updates, {"reward": curve[-1]})
    return BopoFit(StepPolicy(weight), warm, known, np.array(curve))


def _budgets(known: Boundaries, task: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a budget each, [n]: none for half of them, else between the boundaries' costs."""
    low, high = known.cost_small[task], known.cost_large[task]
    drawn = (low * 1.05 + rng.random(len(task)) * (high - low)).astype(np.int64)
    return np.where(rng.random(len(task)) < 0.5, UNLIMITED, drawn)


def _cheapest_successes(
    chain: TaskChain, known: Boundaries, rng: np.random.Generator
) -> tuple[TaskEpisodes, FloatArray]:
    """Return one episode of each task to imitate, and how much each counts, [tasks].

    Each class that has any counts alike.
    """
    task = np.repeat(np.arange(chain.tasks), len(SHARES))
    share = np.tile(SHARES, chain.tasks)
    done = run(chain, task, at_random(share), np.full(len(task), UNLIMITED), rng)
    cost = np.where(done.success, done.cost_nano, UNLIMITED).reshape(-1, len(SHARES))
    kind = known.kind
    best = np.where(kind == CLASSES.index("intractable"), 0, cost.argmin(axis=1))
    count = np.bincount(kind, minlength=len(CLASSES))
    return done.take(np.arange(chain.tasks) * len(SHARES) + best), 1.0 / count[kind]


def _imitate(shown: TaskEpisodes, weight: FloatArray, config: BopoConfig) -> StepPolicy:
    """Fit the actions of episodes by maximum likelihood, each step as much as its episode."""
    seen, large, counts = _steps(shown, np.broadcast_to(weight[:, None], shown.action.shape))
    found = np.zeros(seen.shape[1])
    adam = _Adam.of(found, config.rate)
    for _ in range(config.imitated):
        p = StepPolicy(found).large(seen)
        gradient = np.einsum("nf,n->f", seen, counts * (large - p)) / counts.sum()
        found, adam = adam.step(found, gradient - 1e-4 * found)
    return StepPolicy(found)


def _improve(
    weight: FloatArray, adam: "_Adam", done: TaskEpisodes, advantage: FloatArray, config: BopoConfig
) -> "tuple[FloatArray, _Adam]":
    spread = max(float(advantage.std()), 1e-8)
    shape = done.action.shape
    seen, large, gain = _steps(done, np.broadcast_to((advantage / spread)[:, None], shape))
    if not len(seen):
        return weight, adam
    old = _chance(weight, seen, large)
    for _ in range(4):
        new = _chance(weight, seen, large)
        ratio = new / old
        inside = np.where(gain > 0, ratio < 1 + config.clip, ratio > 1 - config.clip)
        score = large - StepPolicy(weight).large(seen)
        slope = np.where(inside, gain * ratio, 0.0) * score
        weight, adam = adam.step(weight, np.einsum("nf,n->f", seen, slope) / len(seen))
    return weight, adam


def _chance(weight: FloatArray, seen: FloatArray, large: FloatArray) -> FloatArray:
    both = np.ones((len(seen), 2), dtype=bool)
    p = masked(StepPolicy(weight).large(seen), both)
    return np.maximum(np.where(large > 0, p[:, 1], p[:, 0]), 1e-12)


def _steps(done: TaskEpisodes, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return features [R, F], whether it was large [R] and the value of every free choice."""
    free: BoolArray = np.asarray(done.mask.all(axis=2))
    return done.features[free], (done.action[free] == 1).astype(np.float64), values[free]


@dataclass(frozen=True)
class _Adam:
    """Adam (Kingma and Ba 2015), uphill."""

    mean: FloatArray
    square: FloatArray
    rate: float
    done: int = 0

    @classmethod
    def of(cls, weight: FloatArray, rate: float) -> "_Adam":
        return cls(np.zeros_like(weight), np.zeros_like(weight), rate)

    def step(self, weight: FloatArray, gradient: FloatArray) -> "tuple[FloatArray, _Adam]":
        done = self.done + 1
        mean = 0.9 * self.mean + 0.1 * gradient
        square = 0.999 * self.square + 0.001 * gradient**2
        moved = mean / (1 - 0.9**done) / (np.sqrt(square / (1 - 0.999**done)) + 1e-8)
        return weight + self.rate * moved, _Adam(mean, square, self.rate, done)
