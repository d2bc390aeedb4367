"""AgentTTS: search by trial for who does each part of a task, and with how many samples.

What a choice is worth shows only when the whole task is run with it: parts depend on each other,
and one run on some questions costs money. So few choices can be tried. A proposer says which is
worth a trial next; what would not fit the budget is dropped before it costs anything; the result
joins the archive, from which the next proposal is made. The proposer is a rule (`proposals.rule`)
or an LLM (`asking.asking`), which is told the archive and what it says.

**When it is of use.** Where parts' chances are known and independent, the chance of the whole is
their product, and a knapsack on its logarithm is exact: the card's `allocate`, where values add up,
is that knapsack. `maximise` is for everything else.

Source: arXiv 2508.00890, as its abstract says it: model and samples of each part by feedback from
runs, with insights kept. The rule is ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.methods.allocators.agent_tts.proposals import Proposer, Space, Trial, rule
from farthing.methods.allocators.base import Allocation, Batch, room_nano
from farthing.methods.allocators.lagrangian import LAGRANGIAN
from farthing.traces.arrays import IntArray

Objective = Callable[[IntArray], float]
"""From an option for each part, [n], to what the whole task is then worth; any scale."""
IDLE = 20
"""Rounds without anything new after which the search ends: the proposer has no more ideas."""


@dataclass(frozen=True)
class Found:
    """How a search went."""

    choice: IntArray
    """[n] the best that was tried."""
    value: float
    trials: tuple[Trial, ...]
    """All of them, in their order; each within the budget."""
    dropped: int
    """Proposals that were no choice, or beyond the budget; none of them was tried."""

    def best_so_far(self) -> list[float]:
        """Return the best value after each trial."""
        values = np.array([one.value for one in self.trials])
        best: list[float] = np.maximum.accumulate(values).tolist()
        return best


@dataclass(frozen=True)
class AgentTts:
    """The allocator, and its search.

    >>> from farthing.budgets.pacing.base import Option
    >>> part = [Option(0.0, cost, cost) for cost in (1, 2, 3)]
    >>> space = Space(Batch.of([part, part]), budget_nano=4)
    >>> AgentTts(trials=20).maximise(space, lambda choice: float(choice[0] - choice[1])).choice
    array([2, 0])
    """

    trials: int = 50
    """Runs of the objective."""
    proposer: Proposer = rule
    seed: int = 0

    def allocate(self, batch: Batch, budget_nano: int) -> Allocation:
        """Give each item one option, where values add up: that takes no trial."""
        return LAGRANGIAN.allocate(batch, budget_nano)

    def maximise(
        self, space: Space, objective: Objective, first: Sequence[Sequence[int]] = ()
    ) -> Found:
        """Return the best choice that was tried within the budget.

        Args:
            space: parts, their options, and the budget for expected costs.
            objective: is run `trials` times at most, each time with another choice.
            first: choices to try before any proposal.

        Raises:
            InputError: not even the cheapest options fit the budget.
        """
        room_nano(space.batch, space.budget_nano)
        rng = np.random.default_rng(self.seed)
        archive: list[Trial] = []
        seen: set[tuple[int, ...]] = set()
        dropped = idle = 0
        proposed: Sequence[Sequence[int]] = first or [space.batch.cheapest.tolist()]
        while idle < IDLE:
            idle += 1
            for one in proposed:
                choice = tuple(int(k) for k in one)
                if not space.fits(choice):
                    dropped += 1
                elif choice not in seen and len(archive) < self.trials:
                    seen.add(choice)
                    archive.append(Trial(choice, float(objective(np.array(choice)))))
                    idle = 0
            if len(archive) >= self.trials:  # nothing is asked for that nobody would try
                break
            proposed = self.proposer(space, archive, rng)
        if not archive:
            raise InputError("nothing that was proposed fits the budget; propose something cheaper")
        best = max(archive, key=lambda trial: trial.value)
        return Found(np.array(best.choice), best.value, tuple(archive), dropped)


AGENT_TTS = AgentTts()
"""The allocator `agent-tts`."""
