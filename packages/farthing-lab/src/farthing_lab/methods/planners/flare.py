"""FLARE: look ahead to the end, let the outcome decide, commit to one action, and plan again.

Monte Carlo tree search in which a simulation is judged by its whole trajectory alone:

    choose   an action not tried yet, else the largest Q(s, a) + c sqrt(ln N(s) / N(s, a))
    play on  at random from a state that is new, to the end
    back up  Q(s, a) = mean over drawn outcomes of V(s'),  V(s) = max(worth of ending here, max Q)

What is left of money and time belongs to a state; so an action that makes a later one unaffordable
is seen to. With more simulations Q becomes that of value iteration wherever the tree is finite.

`act` simulates for nothing, as in a model of the world. `search` is for models that write
reasoning: every step drawn is paid and kept, children of a node are drafts of its next step, and
half of what is left is spent before each commitment.

Source: FLARE (arXiv 2601.22311), as its abstract says it: explicit look-ahead, value propagation,
limited commitment. The backup by the best tried action (Keller and Helmert 2013, DP-UCT), the
random play, the constants and the share per commitment are ours.
"""

from dataclasses import dataclass, field
from math import log, sqrt
from typing import Generic

import numpy as np

from farthing.methods.base import SystemCard
from farthing_lab.methods.planners.base import (
    Node,
    Remaining,
    S,
    SearchResult,
    Simulator,
    TreeSearch,
    affordable,
    score,
)

LONGEST_PLAY = 200
"""Steps of a random play at most."""


@dataclass(slots=True, eq=False)
class _LookaheadState(Generic[S]):
    state: S
    left: Remaining
    actions: list[int]
    worth: float
    """Of ending here."""
    value: float = 0.0
    visits: int = 0
    q: dict[int, float] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)
    outcomes: "dict[int, dict[tuple[S, Remaining], _LookaheadState[S]]]" = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class LookAhead:
    """The planner; `search` is the same for steps that cost money when they are drawn."""

    simulations: int = 200
    """Trajectories before each commitment."""
    explore: float = 0.7
    """c, in units of the value, which is 0 to 1."""
    drafts: int = 3
    """Most steps that `search` draws at a node for each of its actions."""
    share: float = 0.5
    """Of what is left, what `search` spends before each commitment."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Simulate whole trajectories, and return the action that the best ones begin with."""
        root = _decision(simulator, state, left)
        if not root.actions:
            return None
        for _ in range(self.simulations if len(root.actions) > 1 or root.worth > 0.0 else 1):
            _simulate(simulator, root, self.explore, rng)
        best = max(root.q, key=lambda action: (root.q[action], root.tried[action]))
        return best if root.q[best] >= root.worth else None

    def search(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> SearchResult[S]:
        """Search until the money is spent or an end is committed to; every step drawn is paid."""
        node = Node(state, left, ended=not simulator.actions(state))
        tree = TreeSearch.begin(simulator, node, rng)
        ends: list[Node[S]] = []
        while not node.ended:
            room = tree.left_nano - tree.reserved_nano
            stop_nano = tree.reserved_nano + int((1.0 - self.share) * room)
            for _ in range(self.simulations):
                if not self._trajectory(tree, node, ends) or tree.left_nano <= stop_nano:
                    break
            if not node.children:
                break
            node = max(node.children, key=lambda child: (child.value, child.visits))
        at: Node[S] | None = node if not node.ended or node.left.seconds < 0.0 else None
        while at is not None:  # an end is forced at the node, or on the way back to the root
            if (forced := tree.forced(at)) is not None:
                forced.value = score(simulator, forced.state)
                node = forced
                break
            at = at.parent
        if node.ended and node.left.seconds >= 0.0 and node not in ends:
            ends.append(node)
        return tree.result(node, ends)

    def _trajectory(self, tree: TreeSearch[S], begin: Node[S], ends: list[Node[S]]) -> bool:
        """Follow the tree from a node, then draw new steps to an end; whether anything was new."""
        node, drawn = begin, tree.steps
        while not node.ended:
            can = tree.payable(node, self.drafts)
            # a node gets as many drafts as the square root of its visits
            fresh = can and (
                not node.children or sum(node.tried.values()) < 1.0 + sqrt(node.visits)
            )
            if fresh:
                least = min(can, key=lambda action: node.tried[action])
                node = tree.draw(node, least)
            elif node.children:
                total = max(1, node.visits)
                node = max(
                    node.children,
                    key=lambda one: (
                        one.value + self.explore * sqrt(log(total) / max(1, one.visits))
                    ),
                )
            else:
                break
        if node.ended and not node.visits and node.left.seconds >= 0.0:
            node.value = score(tree.simulator, node.state)
            ends.append(node)
        up: Node[S] | None = node
        while up is not None:
            up.visits += 1
            up.value = max((c.value for c in up.children), default=up.value)
            up = up.parent
        return tree.steps > drawn


def _decision(simulator: Simulator[S], state: S, left: Remaining) -> _LookaheadState[S]:
    worth = simulator.value(state) if left.seconds >= 0.0 else 0.0
    return _LookaheadState(state, left, affordable(simulator, state, left), worth, worth)


def _simulate(
    simulator: Simulator[S], root: _LookaheadState[S], explore: float, rng: np.random.Generator
) -> None:
    node, path = root, list[tuple[_LookaheadState[S], int]]()
    while node.actions:
        fresh = [action for action in node.actions if action not in node.tried]
        if fresh:
            action = fresh[int(rng.integers(len(fresh)))]
        else:
            total = log(sum(node.tried.values()))
            bounds = {a: node.q[a] + explore * sqrt(total / node.tried[a]) for a in node.actions}
            action = max(node.actions, key=bounds.__getitem__)
        path.append((node, action))
        child = _outcome(simulator, node, action, rng)
        if not child.visits:
            child.value = _played(simulator, child, rng)
            child.visits = 1
            break
        node = child
    for node, action in reversed(path):
        _back_up(node, action)


def _outcome(
    simulator: Simulator[S], node: _LookaheadState[S], action: int, rng: np.random.Generator
) -> _LookaheadState[S]:
    step = simulator.step(node.state, action, rng)
    left = node.left.after(step)
    known = node.outcomes.setdefault(action, {})
    key = step.state, left
    if key not in known:
        known[key] = _decision(simulator, step.state, left)
    else:
        known[key].visits += 1
    node.tried[action] = node.tried.get(action, 0) + 1
    return known[key]


def _back_up(node: _LookaheadState[S], action: int) -> None:
    outcomes = node.outcomes[action].values()
    total = sum(one.visits for one in outcomes)
    node.q[action] = sum(one.visits * one.value for one in outcomes) / total
    node.value = max(node.worth, *node.q.values())


def _played(simulator: Simulator[S], node: _LookaheadState[S], rng: np.random.Generator) -> float:
    state, left = node.state, node.left
    for _ in range(LONGEST_PLAY):
        can = affordable(simulator, state, left)
        if not can:
            break
        step = simulator.step(state, can[int(rng.integers(len(can)))], rng)
        state, left = step.state, left.after(step)
    return simulator.value(state) if left.seconds >= 0.0 else 0.0


FLARE = LookAhead()
"""The planner `flare`."""

CARD = SystemCard(
    name="flare",
    label="FLARE",
    meaning="Looks ahead to the end, commits to one action, plans again",
    kind="planner",
    make=FLARE,
    paper="2601.22311",
    page="docs/research/planners.md",
    place=20,
)
