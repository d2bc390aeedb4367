"""A tree of states that were drawn: what a search keeps, and what it hands back.

Where a model writes reasoning, a drawn state is a text, and whoever has paid for it can go on from
it, or leave it and go on from another. So a search pays for each step once, and keeps its state.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from farthing_lab.methods.planners.base import Remaining, S, Simulator, affordable, ending


@dataclass(slots=True, eq=False)
class Node(Generic[S]):
    """A state that was drawn, and where it came from."""

    state: S
    left: Remaining
    """What is left on the way from the root to here, whatever other branches cost."""
    parent: "Node[S] | None" = None
    action: int = -1
    """What led here from its parent."""
    value: float = 0.0
    """The search's own figure for it."""
    ended: bool = False
    visits: int = 0
    children: "list[Node[S]]" = field(default_factory=list)
    tried: Counter[int] = field(default_factory=Counter)
    """How often each action was drawn here."""

    def path(self) -> tuple[int, ...]:
        found: list[int] = []
        node: Node[S] | None = self
        while node is not None and node.parent is not None:
            found.append(node.action)
            node = node.parent
        return tuple(reversed(found))


@dataclass(frozen=True)
class SearchResult(Generic[S]):
    """What a search paid for, and what it takes."""

    state: S
    """The end that it takes; the root where it reached none."""
    path: tuple[int, ...]
    """The actions that lead there."""
    value: float
    """The search's own figure for it; what it is really worth only the world knows."""
    spent_nano: int
    steps: int
    """How many were drawn."""
    ends: tuple[tuple[S, float], ...]
    """Every end that it reached, and its figure for it, in the order of the search."""


@dataclass(slots=True)
class SearchBudget:
    """What a search may still pay, and what it has paid."""

    left_nano: int
    reserved_nano: int = 0
    """Kept for the step that ends it."""
    spent_nano: int = 0
    steps: int = 0

    def draw(
        self, simulator: Simulator[S], node: Node[S], action: int, rng: np.random.Generator
    ) -> Node[S]:
        """Pay for one step, and return the state that it led to as a child of the node.

        A state that is there already is returned as it is; the step is paid all the same.
        """
        step = simulator.step(node.state, action, rng)
        self.left_nano -= step.cost_nano
        self.spent_nano += step.cost_nano
        self.steps += 1
        node.tried[action] += 1
        for child in node.children:
            if child.action == action and child.state == step.state:
                return child
        left = node.left.after(step)
        child = Node(step.state, left, node, action)
        child.ended = left.seconds < 0.0 or not simulator.actions(step.state)
        node.children.append(child)
        return child

    def payable(self, simulator: Simulator[S], node: Node[S]) -> list[int]:
        """Return what can be drawn at a node, without the step that only ends it."""
        room = min(node.left.nano, self.left_nano) - self.reserved_nano
        last = ending(simulator, node.state)
        can = affordable(simulator, node.state, Remaining(room, node.left.seconds))
        return [action for action in can if action != last]


def reserve_nano(simulator: Simulator[S], state: S) -> int:
    """Return the most that ending at once costs; 0 where nothing ends it at once."""
    last = ending(simulator, state)
    return 0 if last is None else simulator.actions(state)[last].largest_nano
