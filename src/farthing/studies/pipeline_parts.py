"""A task in parts, one budget: who does which part, with how many samples; beside even shares.

Half of the recorded tasks choose, and the other half measures what came of it.
"""

from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.methods.allocators.agent_tts import AgentTts, Proposer, Space, even, rule
from farthing.methods.allocators.base import Allocator, Batch, room_nano
from farthing.methods.allocators.plan_and_budget import PLAN_AND_BUDGET, spent, whole
from farthing.methods.cards import system
from farthing.money import dollars
from farthing.studies.part_samples import LEAST, Measured
from farthing.traces.arrays import IntArray

EVENLY = "even shares"
OWN = {"plan-and-budget": "Plan-and-Budget", "agent-tts": "AgentTTS"}
"""Allocators that share a task's budget in a way of their own; others go by `logarithmic`."""


@dataclass(frozen=True)
class Row:
    """One way to share the budget."""

    name: str
    choice: IntArray | None
    """[m]; None: it does not fit the budget."""
    expected_nano: int = 0
    """A task, by the tasks that chose."""
    cost_nano: float = 0.0
    """A task, by the others, as are the next two."""
    right: float = 0.0
    half_interval: float = 0.0


@dataclass(frozen=True)
class Shared:
    """All ways, and what each part gets."""

    measured: Measured
    batch: Batch
    """Parts and options by the tasks that chose."""
    budget_nano: int
    rows: tuple[Row, ...]
    """That of the allocator that was asked for first."""
    tasks: int
    """Measured on."""


def share(
    measured: Measured,
    budget_nano: int,
    allocator: str = "lagrangian",
    *,
    proposer: Proposer = rule,
    trials: int = 60,
    seed: int = 0,
) -> Shared:
    """Share a budget a task among its parts in several ways.

    Args:
        measured: all recorded tasks.
        budget_nano: of a task, for its expected cost.
        allocator: whose row comes first, a name of `farthing.allocators`.
        proposer: says what AgentTTS tries.
        trials: that it makes, on the recorded tasks to choose by, so that none costs anything.
        seed: of the halves and the search.

    Raises:
        InputError: not even the cheapest options fit the budget.
    """
    ours, others = measured.half("choose", seed), measured.half("measure", seed)
    batch = ours.batch()
    if batch.least_nano > budget_nano:
        raise InputError(
            f"the budget is {dollars(budget_nano)} a task, and the cheapest options of its "
            f"{len(batch)} parts cost {dollars(batch.least_nano)}; give at least that"
        )
    space = measured.space(batch, budget_nano)

    def chosen_by(name: str) -> IntArray:
        if name == "plan-and-budget":
            return PLAN_AND_BUDGET.shared(batch, budget_nano, measured.credit)
        if name == "agent-tts":
            search = AgentTts(trials, proposer, seed)
            return search.maximise(space, lambda k: float(ours.tasks(k).mean())).choice
        found: Allocator = system("allocator", name)
        return found.allocate(logarithmic(batch), budget_nano).choice

    named = list(dict.fromkeys([allocator, "lagrangian", *OWN]))
    choices: list[tuple[str, IntArray | None]] = [
        *((OWN.get(name, name), chosen_by(name)) for name in named),
        (EVENLY, evenly(batch, budget_nano)),
        *_alone(measured, space, ours),
    ]
    rows = tuple(_row(name, choice, batch, others) for name, choice in choices)
    return Shared(measured, batch, budget_nano, rows, others.right[0].shape[1])


def logarithmic(batch: Batch) -> Batch:
    """Return the batch whose values add up as the logarithms of chances do, within 0 and 1.

    The largest sum is the largest product, so that a knapsack finds the likeliest whole task.
    """
    value = 1.0 - np.log(np.maximum(batch.value, LEAST)) / np.log(LEAST)
    return Batch(np.clip(value, 0.0, 1.0), batch.expected_nano, batch.largest_nano, batch.offered)


def evenly(batch: Batch, budget_nano: int) -> IntArray:
    """Return each part's best option within an even share, [m]; what is left is passed on.

    A part whose cheapest option costs more than that gets it, and the others share the rest.
    """
    room_nano(batch, budget_nano)
    least = batch.expected_nano[np.arange(len(batch)), batch.cheapest]
    dear = np.zeros(len(batch), dtype=bool)
    while True:
        left = budget_nano - int(least[dear].sum())
        each = np.where(dear, least, left / max(1, int((~dear).sum())))
        if not (more := (least > each) & ~dear).any():
            break
        dear |= more
    return spent(batch, np.maximum(least, whole(each, budget_nano)), budget_nano)


def _alone(measured: Measured, space: Space, ours: Measured) -> list[tuple[str, IntArray | None]]:
    """Return the best model for everything, and the cheapest option of each part."""
    everyone = [
        np.array(one)
        for one in even(space)
        if len({int(space.model[i, k]) for i, k in enumerate(one)}) == 1 and space.fits(one)
    ]
    best = max(everyone, key=lambda one: ours.tasks(one).mean(), default=None)
    name = "one model for all"
    if best is not None:
        name += f": {measured.models[int(space.model[0, best[0]])]}"
    return [(name, best), ("the cheapest of each part", space.batch.cheapest)]


def _row(name: str, choice: IntArray | None, batch: Batch, others: Measured) -> Row:
    if choice is None:
        return Row(name, None)
    pairs = zip(others.cost_nano, choice.tolist(), strict=True)
    cost = sum(float(one[k].mean()) for one, k in pairs)
    return Row(name, choice, batch.cost_of(choice), cost, *others.interval(choice))
