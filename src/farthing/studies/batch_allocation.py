"""One budget for a batch of questions over a pool of models, beside what is done without looking.

Whoever is asked is chosen before anything is paid. What each row expects comes from the training
questions; where the batch is of recorded questions, what really came of it stands beside.
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.allocators.base import Allocation, Allocator, Batch, chosen, room_nano
from farthing.methods.allocators.estimates import Estimates
from farthing.promises.statistics.binomial import binomial_interval
from farthing.traces.arrays import IntArray, TraceArrays

SURE = 0.05
"""How often the interval of accuracy may miss."""
NOBODY = -1


@dataclass(frozen=True)
class Budget:
    """What a batch may cost, and which of its costs are held to it."""

    nano: int
    at_most: bool = False
    """Whether the largest costs are held to it, and not the expected ones."""

    def held(self, batch: Batch) -> Batch:
        """Return the batch with the costs that are held to it as the expected ones."""
        return batch.at_most() if self.at_most else batch


@dataclass(frozen=True)
class Real:
    """What recorded answers came to."""

    cost_nano: int
    right: int
    questions: int

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of the share of right answers."""
        return binomial_interval(self.right, self.questions, SURE)


@dataclass(frozen=True)
class Row:
    """One way to spend, on the whole batch."""

    name: str
    allocation: Allocation | None
    """None: it costs more than the budget, or some question lacks its model."""
    within: bool
    """Whether what is held to the budget is within it."""
    real: Real | None = None


@dataclass(frozen=True)
class Allocated:
    """An allocation and what it is beside."""

    models: tuple[str, ...]
    batch: Batch
    budget: Budget
    allocation: Allocation
    rows: tuple[Row, ...]
    """The allocation first."""


def allocate(
    estimates: Estimates,
    batch: Batch,
    budget: Budget,
    allocator: Allocator,
    *,
    recorded: TraceArrays | None = None,
    seed: int = 0,
) -> Allocated:
    """Share a budget among questions, and lay what is done without looking beside it.

    Args:
        estimates: what was learned of the models.
        batch: the questions, with these models as options.
        budget: for all of them.
        allocator: who shares it.
        recorded: the same questions as they were answered and graded, where they were.
        seed: of the row that draws.

    Raises:
        InputError: not even the cheapest models fit the budget.
    """
    held = budget.held(batch)
    found = allocator.allocate(held, budget.nano)
    unread = replace(held, value=np.broadcast_to(estimates.mean, batch.value.shape))
    fixed = _fixed(held, estimates, budget.nano)
    choices: list[tuple[str, IntArray | None]] = [
        ("allocated", found.choice),
        ("by price alone", allocator.allocate(unread, budget.nano).choice),
        *(
            (f"{what}: {estimates.models[m]}" if m != NOBODY else what, _all(batch, m))
            for what, m in fixed
        ),
        ("drawn at random", drawn(held, budget.nano, seed)),
    ]
    rows = [
        Row(name, None, within=False)
        if choice is None
        else _row(name, batch, choice, within=held.cost_of(choice) <= budget.nano, of=recorded)
        for name, choice in choices
    ]
    allocation = chosen(batch, found.choice, found.bound)
    return Allocated(estimates.models, batch, budget, allocation, tuple(rows))


def drawn(batch: Batch, budget_nano: int, seed: int) -> IntArray:
    """Draw each question's option among those that leave enough for the rest, in random order."""
    room = room_nano(batch, budget_nano)
    rng = np.random.default_rng(seed)
    choice = batch.cheapest
    extra = batch.expected_nano - batch.expected_nano[np.arange(len(batch)), choice][:, None]
    for item in rng.permutation(len(batch)).tolist():
        fitting = np.flatnonzero(batch.offered[item] & (extra[item] <= room))
        choice[item] = rng.choice(fitting)
        room -= int(extra[item, choice[item]])
    return choice


def _fixed(batch: Batch, estimates: Estimates, budget_nano: int) -> list[tuple[str, int]]:
    """Return the models that are asked for everything, by what they are."""
    full = [m for m in range(len(estimates.models)) if batch.offered[:, m].all()]
    cost = batch.expected_nano.sum(axis=0)
    within = [m for m in full if cost[m] <= budget_nano]
    best = max(within, key=lambda m: (estimates.mean[m], -cost[m]), default=NOBODY)
    return [
        ("best affordable model", best),
        ("cheapest model", min(full, key=lambda m: cost[m], default=NOBODY)),
        ("strongest model", max(full, key=lambda m: estimates.mean[m], default=NOBODY)),
    ]


def _all(batch: Batch, model: int) -> IntArray | None:
    return None if model == NOBODY else np.full(len(batch), model)


def _row(name: str, batch: Batch, choice: IntArray, *, within: bool, of: TraceArrays | None) -> Row:
    real = None
    if of is not None:
        at = np.arange(len(of)), 0, choice
        real = Real(int(of.cost_nano[at].sum()), int(of.correct[at].sum()), len(of))
    return Row(name, chosen(batch, choice, 0.0), within=within, real=real)
