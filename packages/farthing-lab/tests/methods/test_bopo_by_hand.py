"""BoPO's training on chains so small that what it comes to can be worked out by hand."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.routers.bopo.policy import (
    NOBODY,
    UNLIMITED,
    BopoConfig,
    boundaries,
    learn,
    run,
    spare,
)

SMALL, LARGE = 10, 100
"""Nano-dollars of a step."""
ANY, NONE = -1, -2
"""A task that succeeds whoever does it, and one that never does."""


@dataclass(frozen=True)
class Sure:
    """Tasks that succeed where the large model does one step of them; a policy sees which is next.

    A state, [n, steps + 1], is who has done each step, 1 for the large model, and the task.
    """

    needed: tuple[int, ...]
    """Of each task the step that the large model has to do, or `ANY` or `NONE`."""
    steps: int = 1
    spares: list[FloatArray] = field(default_factory=list)
    """What was said before each step of the share that the large model could still do."""

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.needed)

    def begin(self, task: IntArray) -> IntArray:
        """Return that nobody has done anything."""
        return np.hstack([np.zeros((len(task), self.steps), dtype=np.int64), task[:, None]])

    def features(self, state: IntArray, step: int, spare: FloatArray) -> FloatArray:
        """Return which step is next, [n, steps]."""
        self.spares.append(spare)
        return np.tile(np.eye(self.steps)[step], (len(state), 1))

    def largest_nano(self, state: IntArray, step: int) -> IntArray:
        """Return both prices, [n, 2]."""
        del step
        return np.tile([SMALL, LARGE], (len(state), 1))

    def rest_nano(self, state: IntArray, step: int) -> IntArray:
        """Return what the small model needs for the steps after it, [n]."""
        return np.full(len(state), SMALL * (self.steps - 1 - step))

    def act(
        self, state: IntArray, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Note who does it; it costs what it can."""
        del rng
        after = state.copy()
        after[:, step] = model
        cost = np.where(model == NOBODY, 0, np.where(model == 1, LARGE, SMALL))
        return after, cost

    def succeeded(self, state: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return whether the large model has done the step that needs it."""
        del rng
        needed = np.array(self.needed)[state[:, -1]]
        did = state[np.arange(len(state)), np.maximum(needed, 0)] == 1
        return np.asarray(np.where(needed < 0, needed == ANY, did))


ONCE = BopoConfig(boundary=1, imitated=0, updates=1, batch=64, rate=1.0)
WARM = BopoConfig(boundary=1, updates=0)
"""The warm start alone."""


@pytest.mark.parametrize(("needed", "sign"), [(0, 1.0), (ANY, -1.0)])
def test_an_update_ends_where_the_ratio_leaves_its_bounds(needed: int, sign: float) -> None:
    """One step, one weight w, begun at 0: both models have 1/2.

    Where only the large model succeeds its episodes gain and the small model's lose. The first of
    four inner steps is Adam's first, g / |g| = 1 times the rate: w = 1, and p = 0.731. Both ratios
    are then outside, 0.731 / 0.5 = 1.46 above 1.2 and 0.269 / 0.5 = 0.54 below 0.8, so that nothing
    pulls any more. Adam rolls on: with its means 0.1 g 0.9^k over 1 - 0.9^(k + 1), and 0.001 g^2
    0.999^k over 1 - 0.999^(k + 1), the steps are 0.6700, 0.5180 and 0.4243: w = 2.6123. Where the
    small model does as well, its episodes gain 0.3 more, and w is the same below 0.
    """
    found = learn(Sure((needed,) * 3), ONCE, np.random.default_rng(0))
    np.testing.assert_array_equal(found.warm.weight, [0.0])
    assert found.policy.weight[0] == pytest.approx(sign * 2.6123, abs=1e-3)


def test_within_its_bounds_an_episode_counts_by_its_ratio() -> None:
    """With steps of about 0.1 all ratios stay within 0.8 and 1.2.

    Episodes of the large model, of gain A in all, pull with A (p / 0.5) (1 - p), those of the small
    one, of loss B, with B ((1 - p) / 0.5) p: together 2 p (1 - p) (A + B), whatever was drawn. So
    after the first step, where it is (A + B) / 2, the gradient is 4 p (1 - p) times that.
    """
    w, mean, square = 0.0, 0.0, 0.0
    for k in range(1, 5):
        p = 1 / (1 + np.exp(-w))
        gradient = 4 * p * (1 - p)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        w += 0.1 * mean / (1 - 0.9**k) / np.sqrt(square / (1 - 0.999**k))
    found = learn(Sure((0, 0, 0)), replace(ONCE, rate=0.1), np.random.default_rng(0))
    assert found.policy.weight[0] == pytest.approx(w, abs=1e-6)


def test_what_is_imitated_is_the_cheapest_success() -> None:
    """The large model has to do the second of two steps. All large succeeds as well, for more."""
    found = learn(Sure((1,) * 40, 2), WARM, np.random.default_rng(0))
    first, second = found.warm.large(np.eye(2))
    assert first < 0.5 < second
    assert found.boundaries.kind.tolist() == [1] * 40  # hard: the large model alone succeeds


def test_each_class_of_tasks_counts_alike_in_what_is_imitated() -> None:
    """30 easy tasks are shown the small model and 10 hard ones the large: half and half."""
    found = learn(Sure((ANY,) * 30 + (0,) * 10), WARM, np.random.default_rng(0))
    assert found.warm.large(np.ones((1, 1)))[0] == pytest.approx(0.5, abs=0.01)


def test_on_tasks_that_nobody_does_the_small_model_is_imitated() -> None:
    found = learn(Sure((NONE,) * 40, 2), WARM, np.random.default_rng(0))
    assert found.warm.large(np.eye(2)).max() < 0.1
    assert found.boundaries.kind.tolist() == [2] * 40


def test_half_of_the_tasks_have_a_budget_between_the_boundaries() -> None:
    """Of 20 steps always small costs 200 and always large 2,000.

    A budget is evenly 210 to 2,010. One in 180 pays for 20 large steps, like no budget at all: in
    0.5 + 0.5 / 180 = 0.503 of the tasks the large model could do everything.
    """
    chain = Sure((ANY,), 20)
    config = replace(ONCE, batch=4_000, group=1)
    learn(chain, config, np.random.default_rng(0))
    first = chain.spares[-20]
    assert len(first) == 4_000
    assert (first == 1.0).mean() == pytest.approx(0.503, abs=0.025)
    assert first[first < 1.0].mean() == pytest.approx(0.48, abs=0.03)  # in whole steps


def test_what_is_spare_is_what_the_small_model_leaves() -> None:
    """100 less 10 for this step and 20 for the rest pays for 70 / 30 = 2 larger steps of 3."""
    one = np.array([100]), np.array([[10, 40]]), np.array([20])
    assert spare(*one, steps=3).tolist() == [2 / 3]


def test_rewards_are_measured_between_what_both_boundaries_cost() -> None:
    """Two steps: always small costs 20, always large 200, and one large step 110, half of the way.

    With lambda = 0.3 it is worth 1 - 0.3 / 2 = 0.85, all large 0.7, and all small, which fails, 0.
    The better boundary is worth 0.7.
    """
    chain = Sure((1,), 2)
    known = boundaries(chain, 1, np.random.default_rng(0))
    assert (known.cost_small.tolist(), known.cost_large.tolist()) == ([20.0], [200.0])
    np.testing.assert_allclose(known.reference(0.3), 0.7)
    for plan, reward in (((0, 0), 0.0), ((0, 1), 0.85), ((1, 1), 0.7), ((1, 0), 0.0)):

        def chances(seen: FloatArray, mask: BoolArray, plan: tuple[int, int] = plan) -> FloatArray:
            del mask
            large = seen @ np.array(plan, dtype=float)
            return np.stack([1.0 - large, large], axis=1)

        task = np.zeros(1, dtype=np.int64)
        done = run(chain, task, chances, np.full(1, UNLIMITED), np.random.default_rng(0))
        np.testing.assert_allclose(known.reward(task, done, 0.3), reward)
