"""Small worlds with a known best plan: random ones, traps, planted trees, a process to iterate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing_lab.methods.planners.base import PricedAction, Transition
from farthing_lab.methods.simulators.workflow import PartChoice, Workflow, WorkflowPart


@lru_cache(maxsize=100_000)
def _some_actions(*seed: int) -> tuple[PricedAction, ...]:
    rng = np.random.default_rng(seed)
    largest = rng.integers(0, 1_000, size=int(rng.integers(1, 4))).tolist()
    return tuple(
        PricedAction(f"a{i}", int(most * rng.random()), most) for i, most in enumerate(largest)
    )


@dataclass(frozen=True)
class RandomWorld:
    """States are (depth, number); costs, times and outcomes are made of the number."""

    seed: int
    depth: int = 4
    late: bool = False
    ends: bool = False
    """Whether every state can be ended at once."""

    def actions(self, state: tuple[int, int]) -> Sequence[PricedAction]:
        if state[0] >= self.depth or state[1] < 0:
            return []
        found = _some_actions(self.seed, *state)
        return [*found, PricedAction("end", 50, 50)] if self.ends else found

    def step(
        self, state: tuple[int, int], action: int, rng: np.random.Generator
    ) -> Transition[tuple[int, int]]:
        actions = self.actions(state)
        cost = int(rng.integers(0, actions[action].largest_nano + 1))
        if actions[action].name == "end":
            return Transition((self.depth, -1), 50)
        drawn = 3 * state[1] + int(rng.integers(0, 3))
        return Transition((state[0] + 1, drawn), cost, float(rng.random()) if self.late else 0.0)

    def value(self, state: tuple[int, int]) -> float:
        return float(state[1] % 7) / 6.0 if state[0] >= self.depth else 0.0


@dataclass(frozen=True)
class EndingWorld(RandomWorld):
    ends: bool = True

    def ending(self, state: tuple[int, int]) -> int:
        return len(self.actions(state)) - 1


@dataclass(frozen=True)
class Trap:
    """Every step to the left looks better at once, and all of those ways end in nothing."""

    depth: int = 5
    cost: int = 10

    def actions(self, state: str) -> Sequence[PricedAction]:
        both = [
            PricedAction("left", self.cost, self.cost),
            PricedAction("right", self.cost, self.cost),
        ]
        return [] if len(state) == self.depth else both

    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        return Transition(state + "lr"[action], self.cost)

    def value(self, state: str) -> float:
        return float(state == "r" * self.depth)

    def score(self, state: str) -> float:
        """Half of the share of steps to the left, but for the goal, which is known at the end."""
        return (
            self.value(state) if len(state) == self.depth else state.count("l") / (2 * self.depth)
        )


@dataclass(frozen=True)
class Chain:
    """Hurry or take care, `length` times; care costs more, hurry fails more often."""

    length: int
    hurry: tuple[float, int]
    care: tuple[float, int]

    def actions(self, state: int) -> Sequence[PricedAction]:
        if state < 0 or state == self.length:
            return []
        both = ("hurry", self.hurry[1]), ("care", self.care[1])
        return [PricedAction(name, cost, cost) for name, cost in both]

    def step(self, state: int, action: int, rng: np.random.Generator) -> Transition[int]:
        chance, cost = (self.hurry, self.care)[action]
        return Transition(state + 1 if rng.random() < chance else -1, cost)

    def value(self, state: int) -> float:
        return float(state == self.length)

    def best(self, state: int, nano: int) -> tuple[float, dict[int, float]]:
        """Return the exact value by dynamic programming, and that of each action."""
        if state == self.length:
            return 1.0, {}
        of = {
            at: chance * self.best(state + 1, nano - cost)[0]
            for at, (chance, cost) in enumerate((self.hurry, self.care))
            if cost <= nano
        }
        return max(of.values(), default=0.0), of


def random_workflow(rng: np.random.Generator, *, fixed: bool = False, most: int = 4) -> Workflow:
    """Return a workflow of 1 to `most` parts; fixed lengths where it is to be enumerated."""
    parts = []
    for place in range(int(rng.integers(1, most + 1))):
        choices = []
        for model in ("small", "large")[: int(rng.integers(1, 3))]:
            low = int(rng.integers(1, 6))
            high = low if fixed else low + int(rng.integers(0, 6))
            for samples in (1, 2)[: int(rng.integers(1, 3))]:
                dear = model == "large"
                choices.append(
                    PartChoice(
                        model,
                        float(rng.uniform(0.5, 1.0) if dear else rng.uniform(0.2, 0.7)),
                        (low, high),
                        samples,
                        input_nano=int(rng.integers(0, 5)),
                        token_nano=10 if dear else 2,
                        tokens_per_s=1.0,
                    )
                )
        after = tuple(before for before in range(place) if rng.random() < 0.5)
        parts.append(WorkflowPart(f"p{place}", tuple(choices), after))
    return Workflow(tuple(parts))
