"""BAVT: who is next, what is pruned, that an answer is forced, and the bound on reaching an end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from planner_worlds import EndingWorld, Trap
from scipy.stats import binom, binomtest, chisquare

from farthing_lab.methods.planners.base import PricedAction, Remaining, Transition
from farthing_lab.methods.planners.bavt import ValueTree, chances, steps_needed

VALUES = (0.001, 0.002, 0.004)


@dataclass(frozen=True)
class Planted:
    """A root with three children of known values; who was gone on from is written down."""

    root_cost: int = 0
    seen: list[str] = field(default_factory=list, compare=False)

    def actions(self, state: str) -> Sequence[PricedAction]:
        cost = 0 if state else self.root_cost
        return [PricedAction(name, cost, cost) for name in "abc"]

    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        self.seen.append(state)
        return Transition(state + "abc"[action], 0 if state else self.root_cost)

    def value(self, state: str) -> float:
        return 0.0


def gain(parent: str, child: str) -> float:
    """The root is worth 1, so that it is gone on from first; then its children are as planted."""
    return VALUES["abc".index(child[-1])] - 1.0 if not parent else 0.0


def fourth(budget: int, runs: int) -> list[int]:
    """Return how often each child of the root is drawn once the root is used up."""
    tree = ValueTree(critic=gain, drafts=1, root=1.0, least_gain=-1.0, most_steps=4)
    counts: Counter[str] = Counter()
    for i in range(runs):
        planted = Planted(root_cost=100)
        tree.search(planted, "", Remaining(budget), np.random.default_rng(i))
        if planted.seen[:3] == ["", "", ""]:
            counts[planted.seen[3]] += 1
    assert counts.total() > 0.97 * runs
    return [counts[name] for name in "abc"]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "ratio"), [(3_000_000, 0.9999), (600, 0.5), (400, 0.25)])
def test_nodes_are_drawn_by_the_power_of_what_is_left(budget: int, ratio: float) -> None:
    counts = fourth(budget, 1_500)
    wanted = np.array(VALUES) ** (1 / ratio)
    assert chisquare(counts, wanted / wanted.sum() * sum(counts)).pvalue > 0.001
    assert chisquare(counts).pvalue < 1e-6


def test_with_all_that_is_left_it_is_proportional_and_with_nothing_it_is_the_best() -> None:
    assert chances(VALUES, 1.0) == pytest.approx(np.array(VALUES) / sum(VALUES))
    assert chances(VALUES, 1e-6).tolist() == [0.0, 0.0, 1.0]
    assert chances(VALUES, 0.0).tolist() == [0.0, 0.0, 1.0]
    counts = fourth(301, 300)
    assert counts[:2] == [0, 0]


def test_a_child_that_gains_too_little_is_not_gone_on_from() -> None:
    tree = ValueTree(critic=gain, drafts=1, root=1.0, least_gain=-0.998, most_steps=40)
    planted = Planted()
    tree.search(planted, "", Remaining(0), np.random.default_rng(0))
    assert {state[:1] for state in planted.seen} == {"", "b", "c"}


@dataclass(frozen=True)
class Goal(Trap):
    """A trap whose critic knows better than its score."""

    def score(self, state: str) -> float:
        return 0.2 + 0.8 * state.count("r") / self.depth


def test_it_finds_what_is_planted_and_follows_a_critic_that_lies() -> None:
    tree = ValueTree(drafts=1)
    for i in range(20):
        rng = np.random.default_rng(i)
        assert tree.search(Goal(6), "", Remaining(600), rng).state.count("r") >= 5
    low = [
        ValueTree(drafts=1).search(Trap(6), "", Remaining(90), np.random.default_rng(i))
        for i in range(20)
    ]
    assert all(one.state != "rrrrrr" for one in low)


def test_an_answer_is_forced_where_none_was_found() -> None:
    forced = 0
    for i in range(200):
        rng = np.random.default_rng(i)
        world, budget = EndingWorld(i, depth=8), int(rng.integers(50, 700))
        found = ValueTree().search(world, (0, 0), Remaining(budget), rng)
        assert found.spent_nano <= budget
        assert found.ends
        assert not world.actions(found.state)
        forced += found.state[1] == -1
        assert found.value <= 1.0
    assert forced > 100
    broke = ValueTree().search(EndingWorld(1), (0, 0), Remaining(49), np.random.default_rng(0))
    assert not broke.ends


@dataclass(frozen=True)
class Climb:
    """Each step rises by a level with probability q, else falls; the top level is the end."""

    q: float
    top: int

    def actions(self, state: tuple[int, float]) -> Sequence[PricedAction]:
        return [] if state[0] == self.top else [PricedAction("go", 7, 10)]

    def step(
        self, state: tuple[int, float], action: int, rng: np.random.Generator
    ) -> Transition[Any]:
        rise = 1 if rng.random() < self.q else -1
        return Transition((state[0] + rise, float(rng.random())), 10)

    def value(self, state: tuple[int, float]) -> float:
        return float(state[0] == self.top)


def climbs(most_open: int, steps: int, runs: int, climb: Climb) -> int:
    tree = ValueTree(
        critic=lambda parent, child: 0.8 * (child[0] - parent[0]) / climb.top,
        drafts=10**6,
        least_gain=-1.0,
        most_open=most_open,
        most_steps=10**6,
    )
    ends = 0
    for i in range(runs):
        found = tree.search(climb, (0, 0.0), Remaining(10 * steps), np.random.default_rng([3, i]))
        assert found.spent_nano <= 10 * steps
        ends += bool(found.ends)
    return ends


@pytest.mark.slow
def test_with_one_open_node_the_chance_of_an_end_is_exactly_the_bounds() -> None:
    climb, steps = Climb(0.4, 5), 14
    chance = float(binom.sf(4, steps, 0.4))
    assert binomtest(climbs(1, steps, 600, climb), 600, chance).pvalue > 0.01


@pytest.mark.slow
def test_the_bound_holds_with_many_open_nodes() -> None:
    climb, epsilon = Climb(0.5, 3), 0.1
    steps = steps_needed(0.5, 3, 3, epsilon)
    runs = 300
    ends = climbs(3, steps, runs, climb)
    assert binomtest(ends, runs, 1 - epsilon, alternative="less").pvalue > 0.05
    assert climbs(3, 2, 50, climb) == 0


def test_steps_needed_inverts_the_binomial_tail() -> None:
    for q, m, k, epsilon in ((0.5, 1, 1, 0.05), (0.7, 4, 6, 0.01), (0.3, 16, 9, 0.1)):
        n = steps_needed(q, m, k, epsilon)
        assert binom.cdf(k - 1, n, q / m) <= epsilon * (1 + 1e-9)
        if n <= 512:
            assert binom.cdf(k - 1, n - 1, q / m) > epsilon


@dataclass(frozen=True)
class Half:
    """Two drafts, worth 0.6 and 0.3 as they are, and an end from anywhere."""

    def actions(self, state: str) -> Sequence[PricedAction]:
        drafts = [PricedAction("a", 10, 10), PricedAction("b", 10, 10)] if not state else []
        return [] if state.endswith("!") else [*drafts, PricedAction("end", 5, 5)]

    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        del rng
        done = self.actions(state)[action]
        return Transition(state + ("!" if done.name == "end" else done.name), done.expected_nano)

    def value(self, state: str) -> float:
        return {"a": 0.6, "b": 0.3}.get(state[:1], 0.0)

    def ending(self, state: str) -> int:
        return len(self.actions(state)) - 1


def test_the_end_is_forced_from_the_best_node() -> None:
    """25 pay for both drafts and an end: from a, at 0.2 + 0.6, and not from b or the root."""
    found = ValueTree(drafts=1).search(Half(), "", Remaining(25), np.random.default_rng(0))
    assert (found.state, found.path, found.spent_nano) == ("a!", (0, 0), 25)
    assert found.value == pytest.approx(0.8)
