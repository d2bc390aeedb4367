"""BAVT: a tree search that explores while there is money, and goes for the best when it ends.

    V(child) = V(parent) + gain(parent, child)                 a critic scores progress alone
    P(next node = i) = V_i^(1/r) / sum_j V_j^(1/r)             r = what is left / the budget

At r = 1 a node is drawn in proportion to its value; as r goes to 0 only the best one is. A child
that gains too little is pruned; the best of those comes back where nothing else is open. What
ending at once can cost is reserved from the beginning; so an answer is forced, from the best node,
where the search found none.

**The bound (ours).** Say that a step from a node of the greatest value among those open, whatever
happened before, leads with probability at least q to an end or to a value that is greater by at
least delta. At most M nodes are open, and the best has weight at least 1/M. So each step is such
progress with probability at least q/M, K = ceil((1 - V_root) / delta) + 1 of them suffice, and n
steps fail with at most the probability that Binomial(n, q/M) < K. `steps_needed` inverts that.

Source: "Spend Less, Reason Better" (arXiv 2603.12634), as its abstract says it. The critic without
a network, the numbers below, the cap on open nodes, and the bound's form are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, inf
from typing import Any

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.planners.base import (
    Node,
    Remaining,
    S,
    SearchResult,
    Simulator,
    TreeSearch,
    score,
)

Critic = Callable[[Any, Any], float]
"""From a state and the one that a step led to: how much progress the step was, -1 to 1."""
FLOOR = 1e-6
"""Least value of a node, so that a power of it is a number."""


def chances(values: Sequence[float], left_ratio: float) -> FloatArray:
    """Return how likely each open node is next, [nodes].

    Args:
        values: of the nodes, above 0.
        left_ratio: what is left of the budget, as a share of it, 0 to 1.

    >>> chances([0.2, 0.6], 1.0).round(2).tolist(), chances([0.2, 0.6], 0.01).round(2).tolist()
    ([0.25, 0.75], [0.0, 1.0])
    """
    logs = np.log(np.maximum(np.asarray(values, dtype=np.float64), FLOOR))
    power = 1.0 / max(left_ratio, 1e-9)
    weights: FloatArray = np.exp((logs - logs.max()) * power)
    shares: FloatArray = weights / weights.sum()
    return shares


def steps_needed(progress: float, most_open: int, rises: int, epsilon: float) -> int:
    """Return how many steps reach an end with probability at least 1 - epsilon.

    The least n with P(Binomial(n, q/M) < K) <= epsilon, under the assumption in this module's text.

    Args:
        progress: q, the least chance that a step from the best node rises or ends.
        most_open: M, the most nodes that are open.
        rises: K, as many rises as surely end it.
        epsilon: the probability of no end that is allowed.

    >>> steps_needed(1.0, 1, 3, 0.05), steps_needed(0.5, 1, 1, 0.01)
    (3, 7)
    """
    p = progress / most_open
    n = rises
    while sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(rises)) > epsilon:
        n += max(1, n // 64) if n > 512 else 1
    return n


@dataclass(frozen=True)
class ValueTree:
    """The planner; `search` is the method itself, for steps that cost money when they are drawn."""

    critic: Critic | None = None
    """None: the difference of the simulator's `score` between both states."""
    drafts: int = 3
    """Most steps drawn at a node for each of its actions."""
    root: float = 0.2
    """Value of the root."""
    least_gain: float = -0.05
    """A child that gains less is pruned: gone on from only where nothing else is open."""
    most_open: int = 16
    """Of more open nodes only the most valuable stay open."""
    most_steps: int = 400
    """Ends a search whose steps cost nothing."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Search with imagined money as if it were paid, and take the first step of the result."""
        path = self.search(simulator, state, left, rng).path
        return path[0] if path else None

    def search(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> SearchResult[S]:
        """Search until the money is spent; every step drawn is paid, none beyond `left`."""
        root = Node(state, left, value=self.root, ended=not simulator.actions(state))
        tree = TreeSearch.begin(simulator, root, rng)
        opened, ends, pruned = [root], [root] * root.ended, list[Node[S]]()
        while tree.steps < self.most_steps:
            opened = [node for node in opened if self._untried(tree, node)]
            if not opened:
                pruned = [node for node in pruned if self._untried(tree, node)]
                if not pruned:
                    break
                opened.append(pruned.pop(int(np.argmax([one.value for one in pruned]))))
            ratio = tree.left_nano / left.nano if left.nano else 1.0
            at = int(rng.choice(len(opened), p=chances([one.value for one in opened], ratio)))
            node = opened[at]
            child = self._expand(tree, node)
            if child is None or child.left.seconds < 0.0:
                continue
            if child.ended:
                ends.append(child)
            elif child.value - node.value >= self.least_gain:
                opened.append(child)
                opened.sort(key=lambda one: -one.value)
                del opened[self.most_open :]
            else:
                pruned.append(child)
        every = _all(root)
        for node in () if ends else sorted(every, key=lambda one: (-one.value, -len(one.path()))):
            if (forced := tree.forced(node)) is not None:  # from the best node that can pay for it
                forced.value = node.value
                ends.append(forced)
                break
        best = max(ends, key=lambda node: node.value, default=None)
        if best is None:  # nothing ended: the way to the most valuable state
            best = max(every, key=lambda node: node.value if node is not root else -1.0)
        return tree.result(best, ends)

    def _untried(self, tree: TreeSearch[S], node: Node[S]) -> list[int]:
        return [] if node.ended else tree.payable(node, self.drafts)

    def _expand(self, tree: TreeSearch[S], node: Node[S]) -> Node[S] | None:
        """Draw the action that was drawn least at a node; None for a state that it has."""
        least = min(self._untried(tree, node), key=lambda action: node.tried[action])
        known = len(node.children)
        child = tree.draw(node, least)
        if len(node.children) == known:
            return None
        if child.left.seconds < 0.0:
            gain = -inf
        elif self.critic is not None:
            gain = self.critic(node.state, child.state)
        else:
            gain = score(tree.simulator, child.state) - score(tree.simulator, node.state)
        child.value = min(1.0, max(FLOOR, node.value + gain))
        return child


def _all(root: Node[S]) -> list[Node[S]]:
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children)
    return nodes


BAVT = ValueTree()
"""The planner `bavt`."""

CARD = SystemCard(
    name="bavt",
    label="BAVT",
    meaning="Tree search over steps that cost money; explores, then goes for the best",
    kind="planner",
    make=BAVT,
    paper="2603.12634",
    page="docs/research/planners.md",
    place=10,
)
