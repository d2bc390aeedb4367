"""BoPO: which model does the next step of a task, by a logistic score behind the budget's mask.

A chain is anything whose tasks have steps that either model can do: the generator's, or live
models. All tasks of a call have the same number of steps and are played side by side.

Training is guided by boundaries: these, a warm start on the cheapest successes, then the policy.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from farthing.methods.base import Method, Progress, Silent, Variant
from farthing.methods.serialization import DataclassState
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.generator.steps import StepsConfig

NOBODY = -1
"""The action where no model can be paid for."""
Class = Literal["easy", "hard", "intractable"]
CLASSES: tuple[Class, ...] = ("easy", "hard", "intractable")
HALF = 0.5
"""A boundary policy solves a task that it succeeds in at least so often."""


@dataclass(frozen=True)
class StepPolicy(DataclassState):
    """The probability that the large model does a step, from F numbers that are seen before it."""

    weight: FloatArray
    """[F]"""

    def large(self, features: FloatArray) -> FloatArray:
        """Return the probability of the large model before the mask, [n].

        Args:
            features: [n, F]
        """
        logit = np.clip(np.einsum("nf,f->n", features, self.weight), -30.0, 30.0)
        p: FloatArray = 1.0 / (1.0 + np.exp(-logit))
        return p

    def chances(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the probability of each model under a mask, [n, 2]; both 0 where none fits."""
        return masked(self.large(features), mask)

    def surely(self, features: FloatArray, mask: BoolArray) -> FloatArray:
        """Return the chances of who chooses the likelier model each time, [n, 2]."""
        chosen: FloatArray = (self.choose(features, mask)[:, None] == np.arange(2)).astype(float)
        return chosen

    def choose(self, features: FloatArray, mask: BoolArray) -> IntArray:
        """Return the likelier model of those that fit, [n], else `NOBODY`; of equals the small."""
        chances = self.chances(features, mask)
        return np.where(mask.any(axis=1), chances.argmax(axis=1), NOBODY)


def masked(large: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the probability of each model, [n, 2], where only some may be asked.

    >>> masked(np.array([0.3, 0.3, 0.3]), np.array([[True, True], [True, False], [False, False]]))
    array([[0.7, 0.3],
           [1. , 0. ],
           [0. , 0. ]])
    """
    either = np.stack([1.0 - large, large], axis=1) * mask
    total = either.sum(axis=1, keepdims=True)
    alone = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, either / np.where(total > 0, total, 1.0), alone)


def relative_cost(cost: FloatArray, small: FloatArray, large: FloatArray) -> FloatArray:
    """Return (c - c_S) / (c_L - c_S): 0 for what always-small costs, 1 for always-large.

    0 where both cost the same.

    >>> relative_cost(np.array([1.0, 4.0, 10.0]), np.full(3, 1.0), np.full(3, 10.0)).round(3)
    array([0.   , 0.333, 1.   ])
    """
    apart = large - small
    share: FloatArray = np.where(apart > 0, (cost - small) / np.where(apart > 0, apart, 1.0), 0.0)
    return share


def boundary_reward(success: BoolArray, relative: FloatArray, price: float) -> FloatArray:
    """Return R; a failure is worth 0, however cheap.

    Args:
        success: whether each episode succeeded.
        relative: what it cost, as `relative_cost` has it.
        price: lambda, at least 0.

    >>> boundary_reward(np.array([True, True, False]), np.array([0.0, 1.0, 0.0]), 0.25)
    array([1.  , 0.75, 0.  ])
    """
    reward: FloatArray = np.where(success, 1.0 - price * relative, 0.0)
    return reward


def taxonomy(small: FloatArray, large: FloatArray) -> IntArray:
    """Return which class each task is of, as an index into `CLASSES`.

    Args:
        small: [n] share of always-small's episodes that succeeded.
        large: [n] the same of always-large.

    >>> [CLASSES[i] for i in taxonomy(np.array([1.0, 0.25, 0.0]), np.array([0.5, 0.75, 0.25]))]
    ['easy', 'hard', 'intractable']
    """
    return np.where(small >= HALF, 0, np.where(large >= HALF, 1, 2))


def reference_advantage(reward: FloatArray, reference: FloatArray) -> FloatArray:
    """Return R minus the mean of its group's mean reward and the reference, [n, G].

    Where all episodes of a group fail, their mean alone would call none better than another, and a
    policy that fails cheaply would stay as it is. Against what the better boundary policy comes to
    on the task, all of them are bad. A baseline that does not depend on the action leaves the
    gradient's mean as it is.

    Args:
        reward: [n, G] of G episodes of each task.
        reference: [n] mean reward of the better boundary policy.
    """
    baseline = (reward.mean(axis=1) + reference) / 2
    advantage: FloatArray = reward - baseline[:, None]
    return advantage


def affordable(left_nano: IntArray, largest_nano: IntArray, rest_nano: IntArray) -> BoolArray:
    """Return which models can be asked within what is left, [n, 2].

    The large one is masked where the small one could not finish the task after it; the small one
    where its largest cost does not fit.

    Args:
        left_nano: [n] of the budget.
        largest_nano: [n, 2] the most that this step can cost with each model.
        rest_nano: [n] the most that the steps after this one cost with the small model.
    """
    small = largest_nano[:, 0] <= left_nano
    large = largest_nano[:, 1] + rest_nano <= left_nano
    return np.stack([small, large & (largest_nano[:, 1] <= left_nano)], axis=1)


BOPO = Method(
    name="bopo",
    label="BoPO",
    meaning="A small or a large model at each step of a task, never over the task's budget",
    policy=StepPolicy,
    paper="2602.21227",
    action_spaces=("steps",),
    replayable=False,
    calibration="none",
    variants=lambda _: [
        Variant(
            "bopo",
            "BoPO",
            None,
            "what a step finds depends on the steps before it: see `farthing study steps`",
        )
    ],
    place=91,
)


UNLIMITED = 2**62
"""The budget of a task that has none, in nano-dollars."""
Chances = Callable[[FloatArray, BoolArray], FloatArray]
"""Features [n, F] and mask [n, 2] to the probability of each model, [n, 2]."""
Where = tuple[IntArray, IntArray]
"""Level and health of each task, [n] each."""


class TaskChain(Protocol):
    """Tasks whose steps two models can do."""

    @property
    def steps(self) -> int:
        """Steps of a task, H."""
        ...

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        ...

    def begin(self, task: IntArray) -> Any:
        """Return the state of some tasks before their first step."""
        ...

    def features(self, state: Any, step: int, spare: FloatArray) -> FloatArray:
        """Return what a policy sees before a step, [n, F].

        Args:
            state: of n tasks.
            step: which step, from 0.
            spare: [n] share of the steps to come that the budget left allows the large model.
        """
        ...

    def largest_nano(self, state: Any, step: int) -> IntArray:
        """Return the most that the step can cost with each model, [n, 2], in nano-dollars."""
        ...

    def rest_nano(self, state: Any, step: int) -> IntArray:
        """Return the most that the steps after this one cost with the small model, [n]."""
        ...

    def act(
        self, state: Any, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[Any, IntArray]:
        """Do a step, and return the state after it and what it cost, [n], in nano-dollars.

        Where the model is `NOBODY` the task has ended, and nothing is asked.
        """
        ...

    def succeeded(self, state: Any, rng: np.random.Generator) -> BoolArray:
        """Return whether each task succeeded, [n]; asked of those that ended early as well."""
        ...


@dataclass(frozen=True)
class TaskEpisodes:
    """What n tasks came to."""

    features: FloatArray
    """[n, H, F]"""
    mask: BoolArray
    """[n, H, 2] which models the budget allowed."""
    action: IntArray
    """[n, H] who did each step; -1 where nobody could be paid."""
    cost_nano: IntArray
    """[n]"""
    success: BoolArray
    """[n]"""

    def take(self, index: IntArray | BoolArray) -> "TaskEpisodes":
        return TaskEpisodes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def run(
    chain: TaskChain,
    task: IntArray,
    chances: Chances,
    budget_nano: IntArray,
    rng: np.random.Generator,
) -> TaskEpisodes:
    """Play tasks; each step is drawn from a policy's chances, and never over the budget.

    Args:
        chain: the tasks.
        task: [n] which of them; one may come several times.
        chances: the policy.
        budget_nano: [n] most that each may cost.
        rng: draws actions, and what the chain leaves to chance.
    """
    n = len(task)
    state, left = chain.begin(task), budget_nano.astype(np.int64)
    running, seen, masks, actions = np.ones(n, dtype=bool), [], [], []
    for step in range(chain.steps):
        largest, rest = chain.largest_nano(state, step), chain.rest_nano(state, step)
        mask = affordable(left, largest, rest) & running[:, None]
        found = chain.features(state, step, spare(left, largest, rest, chain.steps - step))
        drawn = rng.random(n) < chances(found, mask)[:, 1]
        model = np.where(mask.any(axis=1), drawn.astype(np.int64), NOBODY)
        running &= model != NOBODY
        state, cost = chain.act(state, step, model, rng)
        left = left - cost
        seen.append(found)
        masks.append(mask)
        actions.append(model)
    success = chain.succeeded(state, rng) & running
    return TaskEpisodes(
        np.stack(seen, axis=1),
        np.stack(masks, axis=1),
        np.stack(actions, axis=1),
        budget_nano - left,
        success,
    )


def spare(left: IntArray, largest: IntArray, rest: IntArray, steps: int) -> FloatArray:
    """Return the share of so many steps that what is left allows the large model, [n], 0 to 1."""
    beyond = left - largest[:, 0] - rest
    extra = np.maximum(largest[:, 1] - largest[:, 0], 1)
    share: FloatArray = np.clip(np.floor_divide(beyond, extra) / steps, 0.0, 1.0)
    return share


def always(model: int) -> Chances:
    """Return the boundary policy that asks one model, where the mask allows it, else the other."""

    def chances(features: FloatArray, mask: BoolArray) -> FloatArray:
        del features
        wanted = np.zeros(mask.shape)
        wanted[:, model] = mask[:, model]
        wanted[:, 1 - model] = mask[:, 1 - model] & ~mask[:, model]
        return wanted

    return chances


def at_random(large: FloatArray) -> Chances:
    """Return the policy that asks the large model with each task's own probability, [n]."""

    def chances(features: FloatArray, mask: BoolArray) -> FloatArray:
        del features
        wanted = np.stack([1.0 - large, large], axis=1)
        alone = mask.sum(axis=1) == 1
        return np.where(alone[:, None], mask, wanted * mask)

    return chances


@dataclass(frozen=True)
class GeneratedTasks:
    """Tasks whose levels were drawn."""

    config: StepsConfig
    level: IntArray
    """[tasks]"""

    @classmethod
    def draw(cls, config: StepsConfig, tasks: int, rng: np.random.Generator) -> "GeneratedTasks":
        return cls(config, rng.choice(len(config.weight), tasks, p=config.weight))

    @property
    def steps(self) -> int:
        return self.config.steps

    @property
    def tasks(self) -> int:
        return len(self.level)

    def begin(self, task: IntArray) -> Where:
        return self.level[task], np.zeros(len(task), dtype=np.int64)

    def features(self, state: Where, step: int, spare: FloatArray) -> FloatArray:
        levels, healths = self.config.success.shape
        place = (step * levels + state[0]) * healths + state[1]
        one = np.zeros((len(spare), 2, self.steps * levels * healths))
        rows = np.arange(len(spare))
        one[rows, 0, place] = 1.0
        one[rows, 1, place] = spare
        return one.reshape(len(spare), -1)

    def largest_nano(self, state: Where, step: int) -> IntArray:
        del step
        return np.broadcast_to(np.array(self.config.cost_nano), (len(state[0]), 2))

    def rest_nano(self, state: Where, step: int) -> IntArray:
        after = self.steps - step - 1
        return np.full(len(state[0]), after * self.config.cost_nano[0])

    def act(
        self, state: Where, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[Where, IntArray]:
        del step
        level, health = state
        asked = model != NOBODY
        edges = self.config.move[level, np.maximum(model, 0), health].cumsum(axis=1)
        moved = (rng.random(len(level))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        cost = np.where(asked, np.array(self.config.cost_nano)[np.maximum(model, 0)], 0)
        return (level, np.where(asked, moved, health)), cost

    def succeeded(self, state: Where, rng: np.random.Generator) -> BoolArray:
        drawn: BoolArray = rng.random(len(state[0])) < self.config.success[state]
        return drawn


def table(config: StepsConfig, chances: Chances, budget_nano: int) -> FloatArray:
    """Return a policy's chances in every state, behind the mask of a budget, [H, K, S, H + 1, 2].

    `process.generator.steps.evaluate` says exactly what it comes to.
    """
    levels, healths = config.success.shape
    found = np.zeros((config.steps, levels, healths, config.steps + 1, 2))
    level = np.repeat(np.arange(levels), healths)
    health = np.tile(np.arange(healths), levels)
    chain = GeneratedTasks(config, level)
    for step in range(config.steps):
        largest = chain.largest_nano((level, health), step)
        rest = chain.rest_nano((level, health), step)
        for large in range(step + 1):
            spent = config.spent_nano(step, np.full(len(level), large))
            left = budget_nano - spent
            seen = chain.features(
                (level, health), step, spare(left, largest, rest, config.steps - step)
            )
            found[step, level, health, large] = chances(seen, affordable(left, largest, rest))
    return found


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
        one = task[:: config.group]
        low, high = known.cost_small[one], known.cost_large[one]
        drawn = (low * 1.05 + rng.random(len(one)) * (high - low)).astype(np.int64)
        # none for half of the tasks, else between the boundaries' costs
        drawn = np.where(rng.random(len(one)) < 0.5, UNLIMITED, drawn)
        budget = np.repeat(drawn, config.group)
        done = run(chain, task, StepPolicy(weight).chances, budget, rng)
        reward = known.reward(task, done, config.price).reshape(-1, config.group)
        reference = known.reference(config.price)[one]
        advantage = reference_advantage(reward, reference).reshape(-1)
        weight, adam = _improve(weight, adam, done, advantage, config)
        curve.append(float(reward.mean()))
        told.update(update + 1, config.updates, {"reward": curve[-1]})
    return BopoFit(StepPolicy(weight), warm, known, np.array(curve))


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
