"""Plans that need no simulation, or one step of it: what planners are compared with."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.planners.base import Left, S, Simulator, affordable, score, usual


@dataclass(frozen=True)
class Unplanned:
    """Does the simulator's usual."""

    def act(
        self, simulator: Simulator[S], state: S, left: Left, rng: np.random.Generator
    ) -> int | None:
        """Return the usual action."""
        return usual(simulator, state, left)


@dataclass(frozen=True)
class StepByStep:
    """Takes the action whose next state has the best score: greedy."""

    samples: int = 8
    """Outcomes drawn for each action."""

    def act(
        self, simulator: Simulator[S], state: S, left: Left, rng: np.random.Generator
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
