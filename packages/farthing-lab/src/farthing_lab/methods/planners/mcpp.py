"""MCPP: score each action by many simulated executions that begin with it, and take the best.

    score(a) = mean over m = 1..64 of 1[all done, within budget and deadline | a, then the usual]

The usual is a fixed continuation that the simulator knows (`usual`); of a workflow it spends an
even share on each node. All actions are simulated with the same random numbers, so what they differ
in is less noise than what they are. After every event the plan is made anew.

**What is known of it.** It is one step of policy improvement on the usual (a rollout policy): with
endless simulations it is at least as good as the usual, in every state (Bertsekas, 2017).

Source: Monte Carlo Portfolio Planning (arXiv 2605.06110), as its abstract says it; 64 simulations
are its number as we know it, the continuation and the shared random numbers are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.planners.base import (
    Remaining,
    S,
    Simulator,
    affordable,
    usual,
)

LONGEST_EXECUTION = 1_000
"""Steps of a simulated execution at most."""


@dataclass(frozen=True)
class Portfolio:
    """The planner."""

    simulations: int = 64
    """Executions for each action."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Return the action with the best score; of equals the cheapest."""
        can = affordable(simulator, state, left)
        if len(can) < 2:
            return can[0] if can else None
        scores = self.scores(simulator, state, can, left, rng)
        actions = simulator.actions(state)
        best = max(
            range(len(can)), key=lambda i: (scores[i], -actions[can[i]].expected_nano, -can[i])
        )
        return can[best]

    def scores(
        self,
        simulator: Simulator[S],
        state: S,
        actions: Sequence[int],
        left: Remaining,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return what executions are worth on average that begin with each action, [A]."""
        drawn = np.random.default_rng(int(rng.integers(2**62)))
        worth: FloatArray = executed(simulator, state, actions, left, self.simulations, drawn)
        means: FloatArray = worth.mean(axis=1)
        return means


def executed(
    simulator: Simulator[S],
    state: S,
    actions: Sequence[int],
    left: Remaining,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return what n executions are worth that begin with each action and then do the usual, [A, n].

    Each column is drawn with the same random numbers.
    """
    if hasattr(simulator, "follow"):
        found: FloatArray = simulator.follow(state, actions, left, n, rng)
        return found
    seeds = rng.integers(2**62, size=n).tolist()
    return np.array(
        [[_executed(simulator, state, a, left, seed) for seed in seeds] for a in actions]
    )


def _executed(simulator: Simulator[S], state: S, action: int, left: Remaining, seed: int) -> float:
    rng = np.random.default_rng(seed)
    following: int | None = action
    for _ in range(LONGEST_EXECUTION):
        if following is None:
            break
        step = simulator.step(state, following, rng)
        state, left = step.state, left.after(step)
        following = usual(simulator, state, left) if left.seconds >= 0.0 else None
    return simulator.value(state) if left.seconds >= 0.0 else 0.0


MCPP = Portfolio()
"""The planner `mcpp`."""

CARD = SystemCard(
    name="mcpp",
    label="MCPP",
    meaning="Models and samples for a workflow with a budget and a deadline, event by event",
    kind="planner",
    make=MCPP,
    paper="2605.06110",
    page="docs/research/planners.md",
    place=30,
)
