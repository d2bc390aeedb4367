"""What a planner is: it simulates what could happen before it says what to do next.

A *simulator* knows a decision process that is not recorded: what can be done in a state, what that
costs, and one state that it can lead to, drawn at random. A *planner* may draw as often as it
likes. `play` then does what the planner says, again and again, with the money and the time that are
left; so a plan is made anew after everything that happens.

    actions(state)             what can be done; nothing where it has ended
    step(state, action, rng)   what one of them led to, what it cost, how long it took
    value(state)               what it is worth to end here, 0 to 1

Money is held as the meter holds it: an action is done only where the most that it can cost is left.
Some simulators can say more, and planners use it where they can:

    score(state)          a guess of what a state that is no end will be worth, 0 to 1
    ending(state)         the action that ends it at once, at the same largest cost everywhere
    usual(state, left)    what one does who does not plan; None where nothing can be paid
    follow(state, actions, left, n, rng)
                          what n executions are worth that begin with each action and then do the
                          usual, [A, n]; each column is drawn with the same random numbers

Where a model writes reasoning, a drawn state is a text, and whoever has paid for it can go on from
it, or leave it and go on from another. So a search pays for each step once, and keeps its state in
a tree (`Node`).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from farthing.errors import BudgetError, InputError
from farthing.money import dollars

S = TypeVar("S", bound=Hashable)
LONGEST = 10_000
"""Actions after which an episode is taken for one that never ends."""


@dataclass(frozen=True)
class Remaining:
    """What may still be used.

    >>> Remaining(1_000, 2.5).after(Transition("a", 400, 1.0))
    Remaining(nano=600, seconds=1.5)
    """

    nano: int
    """Nano-dollars."""
    seconds: float = inf
    """Until the deadline; infinite where there is none, below 0 where it has passed."""

    def after(self, step: "Transition[Any]") -> "Remaining":
        """Return what is left after a step."""
        return Remaining(self.nano - step.cost_nano, self.seconds - step.seconds)


@dataclass(frozen=True)
class PricedAction:
    """Something that can be done in a state."""

    name: str
    """What people read of it."""
    expected_nano: int
    """What it costs on average, in nano-dollars."""
    largest_nano: int
    """The most that it can cost, in nano-dollars."""

    def __post_init__(self) -> None:
        if not 0 <= self.expected_nano <= self.largest_nano:
            raise InputError(
                f"the action '{self.name}' costs {dollars(self.expected_nano)} on average and "
                f"{dollars(self.largest_nano)} at most; both have to be $0 or more, in this order"
            )


@dataclass(frozen=True)
class Transition(Generic[S]):
    """What an action led to."""

    state: S
    cost_nano: int
    """In nano-dollars, never above the action's largest; negative where a later event gives back
    what an earlier one had reserved."""
    seconds: float = 0.0


class Simulator(Protocol[S]):
    """A decision process that can be sampled; it keeps nothing, states come in and go out."""

    def actions(self, state: S) -> Sequence[PricedAction]:
        """Return what can be done, whatever is left; nothing where it has ended."""
        ...

    def step(self, state: S, action: int, rng: np.random.Generator) -> Transition[S]:
        """Draw one outcome of the action with this index."""
        ...

    def value(self, state: S) -> float:
        """Return what it is worth to end here, 0 to 1."""
        ...


class Planner(Protocol):
    """What a card of kind `planner` makes."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Say what to do now.

        Returns:
            The index of an action whose largest cost is left; None to end here, which it has to
            where there is no such action.
        """
        ...


@dataclass(frozen=True)
class PlannedEpisode(Generic[S]):
    """What came of following a planner to the end."""

    state: S
    value: float
    """What it was worth; 0 where the deadline had passed."""
    spent_nano: int
    seconds: float
    actions: tuple[str, ...]
    """What was done, in this order."""


def affordable(simulator: Simulator[S], state: S, left: Remaining) -> list[int]:
    """Return the indices of what can be done with what is left; nothing after the deadline."""
    if left.seconds < 0.0:
        return []
    return [i for i, a in enumerate(simulator.actions(state)) if a.largest_nano <= left.nano]


def score(simulator: Simulator[S], state: S) -> float:
    """Return the simulator's guess of a state's worth; where it has none, what ending is worth."""
    found: float = getattr(simulator, "score", simulator.value)(state)
    return found


def ending(simulator: Simulator[S], state: S) -> int | None:
    """Return the action that ends it at once; None where the simulator has none, or it ended."""
    if not hasattr(simulator, "ending") or not simulator.actions(state):
        return None
    found: int = simulator.ending(state)
    return found


def usual(simulator: Simulator[S], state: S, left: Remaining) -> int | None:
    """Return what one does who does not plan; where nobody says so, the cheapest action."""
    if hasattr(simulator, "usual"):
        found: int | None = simulator.usual(state, left)
        return found
    actions = simulator.actions(state)
    can = affordable(simulator, state, left)
    return min(can, key=lambda i: actions[i].expected_nano) if can else None


def play(
    planner: Planner, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
) -> PlannedEpisode[S]:
    """Do what a planner says until it ends, money or time is over, or the planner ends it.

    Raises:
        BudgetError: the planner wants what cannot be paid.
        InputError: a step cost more than its action can, or gave back more than was paid, or it
            never ends.
    """
    done, spent, seconds = list[str](), 0, 0.0
    while len(done) < LONGEST:
        actions = simulator.actions(state)
        chosen = planner.act(simulator, state, left, rng) if actions else None
        if chosen is None:
            break
        action = actions[chosen]
        if action.largest_nano > left.nano:
            raise BudgetError(
                f"'{action.name}' can cost {dollars(action.largest_nano)}, and "
                f"{dollars(left.nano)} is left"
            )
        step = simulator.step(state, chosen, rng)
        if step.cost_nano > action.largest_nano:
            raise InputError(
                f"'{action.name}' cost {dollars(step.cost_nano)}, and was to cost at most "
                f"{dollars(action.largest_nano)}; the simulator breaks its word"
            )
        if spent + step.cost_nano < 0:
            raise InputError(
                f"'{action.name}' gave back {dollars(-step.cost_nano)}, and "
                f"{dollars(spent)} was paid; the simulator breaks its word"
            )
        state, left = step.state, left.after(step)
        spent, seconds = spent + step.cost_nano, seconds + step.seconds
        done.append(action.name)
        if left.seconds < 0.0:
            break
    else:
        raise InputError(f"the episode has not ended after {LONGEST:,} actions")
    value = simulator.value(state) if left.seconds >= 0.0 else 0.0
    return PlannedEpisode(state, value, spent, seconds, tuple(done))


@dataclass(frozen=True)
class Unplanned:
    """Does the simulator's usual."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Return the usual action."""
        return usual(simulator, state, left)


@dataclass(frozen=True)
class StepByStep:
    """Takes the action whose next state has the best score: greedy."""

    samples: int = 8
    """Outcomes drawn for each action."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Return the action with the best mean score after one step; of equals the cheapest."""
        can = affordable(simulator, state, left)
        if not can:
            return None
        actions = simulator.actions(state)

        def after(action: int) -> float:
            drawn = (simulator.step(state, action, rng) for _ in range(self.samples))
            return sum(score(simulator, step.state) for step in drawn) / self.samples

        return max(can, key=lambda action: (after(action), -actions[action].expected_nano))


UNPLANNED, STEP_BY_STEP = Unplanned(), StepByStep()


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
class TreeSearch(Generic[S]):
    """A search whose steps are paid when they are drawn: what it may still pay, and has paid."""

    simulator: Simulator[S]
    rng: np.random.Generator
    left_nano: int
    reserved_nano: int = 0
    """Kept for the step that ends it."""
    spent_nano: int = 0
    steps: int = 0

    @classmethod
    def begin(
        cls, simulator: Simulator[S], root: Node[S], rng: np.random.Generator
    ) -> "TreeSearch[S]":
        """Return a search from a root; what ending there can cost is kept where it can be paid."""
        last = ending(simulator, root.state)
        kept = 0 if last is None else simulator.actions(root.state)[last].largest_nano
        return cls(simulator, rng, root.left.nano, kept if kept <= root.left.nano else 0)

    def draw(self, node: Node[S], action: int) -> Node[S]:
        """Pay for one step, and return the state that it led to as a child of the node.

        A state that is there already is returned as it is; the step is paid all the same.
        """
        step = self.simulator.step(node.state, action, self.rng)
        self.left_nano -= step.cost_nano
        self.spent_nano += step.cost_nano
        self.steps += 1
        node.tried[action] += 1
        for child in node.children:
            if child.action == action and child.state == step.state:
                return child
        left = node.left.after(step)
        child = Node(step.state, left, node, action)
        child.ended = left.seconds < 0.0 or not self.simulator.actions(step.state)
        node.children.append(child)
        return child

    def payable(self, node: Node[S], drafts: int) -> list[int]:
        """Return what can be drawn at a node up to so often, without the step that only ends it."""
        room = min(node.left.nano, self.left_nano) - self.reserved_nano
        last = ending(self.simulator, node.state)
        can = affordable(self.simulator, node.state, Remaining(room, node.left.seconds))
        return [action for action in can if action != last and node.tried[action] < drafts]

    def forced(self, node: Node[S]) -> Node[S] | None:
        """Return the end that is forced at a node; None where that cannot be paid."""
        last = ending(self.simulator, node.state)
        if last is None or node.left.seconds < 0.0:
            return None
        cost = self.simulator.actions(node.state)[last].largest_nano
        return self.draw(node, last) if cost <= min(self.left_nano, node.left.nano) else None

    def result(self, taken: Node[S], ends: Sequence[Node[S]]) -> SearchResult[S]:
        said = tuple((one.state, one.value) for one in ends)
        return SearchResult(
            taken.state, taken.path(), taken.value, self.spent_nano, self.steps, said
        )
