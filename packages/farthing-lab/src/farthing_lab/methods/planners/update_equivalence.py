"""Update equivalence: what to do now is a few steps of mirror descent from one's own policy.

A policy pi is improved where it is, without a search that is exact anywhere: trajectories are drawn
by pi, and in every state that they came through

    pi(a | s)  becomes proportional to  pi(a | s) exp(eta (Q(s, a) - V(s)))

with Q(s, a) the mean worth of this round's trajectories that did a in s, and V(s) that of all that
came through s; what nobody did keeps its share. After the last round the likeliest action is done.
The first policy is the simulator's usual, mixed with all that can be paid. With exact Q that is
policy mirror descent, which comes as near to the best policy as wanted.

What is left of money and time belongs to a state. To end here is an action where it is worth
anything.

Source: the update-equivalence framework (arXiv 2304.13138), its mirror descent search for a single
team, as its abstract says it; it makes one step at the state at hand. Steps in all states that
were come through, several of them, and the constants are ours.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.planners.base import Remaining, S, Simulator, affordable, usual

LONGEST_TRAJECTORY = 200
"""Steps of a trajectory at most."""
END = -1
"""Stands for ending here."""


@dataclass(eq=False)
class _Place(Generic[S]):
    state: S
    left: Remaining
    actions: list[int]
    worth: float
    """Of ending here."""
    logits: FloatArray
    """[A] of each action, but for a constant."""
    came: list[tuple[int, float]] = field(default_factory=list)
    """(which action, worth in the end) of this round's trajectories."""

    def policy(self) -> FloatArray:
        """Return the probability of each action, [A]."""
        weights = np.exp(self.logits - self.logits.max())
        found: FloatArray = weights / weights.sum()
        return found


@dataclass(frozen=True)
class MirrorDescent:
    """The planner."""

    rounds: int = 8
    """Steps of mirror descent."""
    trajectories: int = 25
    """Drawn for each step."""
    eta: float = 4.0
    """How far a step goes, in units of the value, which is 0 to 1."""
    spread: float = 0.5
    """How likely the first policy does anything else than the usual."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Improve the policy, and return its likeliest action; None to end here."""
        places: dict[Hashable, _Place[Any]] = {}
        root = self._place(simulator, places, state, left)
        if len(root.actions) > 1:
            for _ in range(self.rounds):
                for _ in range(self.trajectories):
                    self._trajectory(simulator, places, root, rng)
                for place in places.values():
                    if place.came:
                        place.logits = improved(place.logits, place.came, self.eta)
                        place.came = []
        best = max(range(len(root.actions)), key=root.logits.__getitem__, default=None)
        return None if best is None or root.actions[best] == END else root.actions[best]

    def _place(
        self, simulator: Simulator[S], places: dict[Hashable, _Place[S]], state: S, left: Remaining
    ) -> _Place[S]:
        """Return the place of a state; where it is new, with the first policy."""
        if (found := places.get((state, left))) is not None:
            return found
        worth = simulator.value(state) if left.seconds >= 0.0 else 0.0
        actions = affordable(simulator, state, left)
        if worth > 0.0 and actions:
            actions = [*actions, END]
        share = np.full(len(actions), self.spread / max(1, len(actions)))
        first = usual(simulator, state, left) if len(actions) > 1 else None
        if first in actions:
            share[actions.index(first)] += 1.0 - self.spread
        made = _Place(state, left, actions, worth, np.log(share))
        places[state, left] = made
        return made

    def _trajectory(
        self,
        simulator: Simulator[S],
        places: dict[Hashable, _Place[S]],
        root: _Place[S],
        rng: np.random.Generator,
    ) -> None:
        """Follow the policy to an end, and tell every place on the way what it was worth."""
        place, path = root, list[tuple[_Place[S], int]]()
        while place.actions and len(path) < LONGEST_TRAJECTORY:
            at = int(rng.choice(len(place.actions), p=place.policy()))
            path.append((place, at))
            if place.actions[at] == END:
                break
            step = simulator.step(place.state, place.actions[at], rng)
            place = self._place(simulator, places, step.state, place.left.after(step))
        for one, at in path:
            one.came.append((at, place.worth))


def improved(logits: FloatArray, came: list[tuple[int, float]], eta: float) -> FloatArray:
    """Return the logits after a step of mirror descent, [A].

    Args:
        logits: [A] of the policy.
        came: (which action, its worth) of each trajectory.
        eta: how far it goes.

    >>> improved(np.zeros(3), [(0, 1.0), (1, 0.0), (1, 0.5)], eta=2.0)
    array([ 1. , -0.5,  0. ])
    """
    worth = np.array([one for _, one in came])
    which = np.array([at for at, _ in came])
    count = np.bincount(which, minlength=len(logits))
    total = np.bincount(which, weights=worth, minlength=len(logits))
    mean = np.divide(total, count, out=np.full(len(logits), worth.mean()), where=count > 0)
    found: FloatArray = logits + eta * (mean - worth.mean())
    return found


UPDATE_EQUIVALENCE = MirrorDescent()
"""The planner `update-equivalence`."""

CARD = SystemCard(
    name="update-equivalence",
    label="Update equivalence",
    meaning="Improves the usual policy by a few steps of mirror descent, and does its likeliest",
    kind="planner",
    make=UPDATE_EQUIVALENCE,
    paper="2304.13138",
    page="docs/research/planners.md",
    place=40,
)
