"""Who may be asked, in what order: whole rounds, or one call at a time.

An action space arranges the calls of a question as *lines*: in each line the next item is bought,
or none. In `rounds`, the paper's, there is one line whose items are rounds, with every role's call
in each; a pool of models as a cascade has one model a round. In `calls` there is a line for each
role, whose items are single calls; in a pool that is one call for each model, in any order.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.pool import check_complete, is_pool

SpaceName = Literal["rounds", "calls"]
MOST_SETS = 300
"""Sets of next items that are told apart; where there would be more, sets are smaller."""


@dataclass(frozen=True)
class ActionSpace:
    """The calls of a question, numbered t * L + l for round t and role l, as lines of items."""

    name: SpaceName
    cells: IntArray
    """[F, K, U] the calls of each item of each line."""

    @property
    def lines(self) -> int:
        """The number of lines, F."""
        return int(self.cells.shape[0])

    @property
    def items(self) -> int:
        """The number of items in a line, K."""
        return int(self.cells.shape[1])

    @property
    def width(self) -> int:
        """The number of calls in an item, U."""
        return int(self.cells.shape[2])

    @property
    def steps(self) -> int:
        """The number of purchases until nothing is left to buy."""
        return self.lines * self.items

    def known(self, bought: IntArray) -> BoolArray:
        """Return which calls are known after so many purchases in each line.

        Args:
            bought: [R, F] number of items bought in each line.

        Returns:
            [R, T * L]
        """
        known = np.zeros((len(bought), self.cells.size), dtype=bool)
        within = np.arange(self.items) < bought[:, :, None]
        known[:, self.cells] = within[..., None]
        return known


@cache
def action_space(name: SpaceName, rounds: int, roles: int) -> ActionSpace:
    """Return an action space by its name, for so many rounds of so many roles.

    In a cascade, which has one role, each round is another model's, and so a line of its own.
    """
    calls = np.arange(rounds * roles).reshape(rounds, roles)
    if name == "rounds":
        return ActionSpace(name, calls[None])
    return ActionSpace(name, (calls if roles == 1 else calls.T)[:, :, None])


@cache
def sets_of_next(lines: int, items: int, most: int) -> IntArray:
    """Return every set of at most so many next items, as a number of each line, [A, F].

    Single items come first, in the order of their lines.

    >>> sets_of_next(2, 4, 2).tolist()
    [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    found = np.eye(lines, dtype=np.int64)
    for size in range(2, most + 1):
        chosen = combinations_with_replacement(range(lines), size)
        larger = np.array([np.bincount(lot, minlength=lines) for lot in chosen])
        larger = larger[(larger <= items).all(axis=1)]
        if len(found) + len(larger) > MOST_SETS:
            break
        found = np.concatenate([found, larger])
    return found


def lines_of_sets(sets: IntArray) -> IntArray:
    """Return the lines that each set buys from, one an item, [A + 1, J]; -1 past its end.

    The last row is the set of nothing, which an index of -1 finds.

    >>> lines_of_sets(np.array([[1, 0], [0, 2]])).tolist()
    [[0, -1], [1, 1], [-1, -1]]
    """
    found = np.full((len(sets) + 1, int(sets.sum(axis=1).max())), -1)
    for row, number in zip(found, sets, strict=False):
        row[: number.sum()] = np.repeat(np.arange(len(number)), number)
    return found


def recorded_space(name: SpaceName, traces: TraceArrays) -> ActionSpace:
    """Return the action space in which recorded questions can be replayed."""
    if name == "calls" and is_pool(traces):
        check_complete(traces)
    if name == "calls" and not traces.independent.all():
        dependent = int((~traces.independent).sum())
        raise InputError(
            f"{dependent:,} of {len(traces):,} questions have calls that saw earlier ones, so none "
            "can be skipped; use an action space of rounds, or record independent calls"
        )
    return action_space(name, traces.horizon, traces.n_roles)


@dataclass(frozen=True)
class Items:
    """Prices, grades and presence of every item of some questions, ready to be looked up."""

    cost_nano: IntArray
    """[n, F, K]"""
    correct: BoolArray
    """[n, F, K] whether one of its answers is right."""
    offered: BoolArray
    """[n, F, K] whether it can be bought: it was recorded, or what is unknown is taken at worst."""


def items_of(traces: TraceArrays, space: ActionSpace) -> Items:
    """Look up every item once; a line ends where the first of its items was not recorded."""
    n = len(traces)
    cost = traces.cost_nano.reshape(n, -1)[:, space.cells].sum(axis=3)
    correct = np.any(traces.correct.reshape(n, -1)[:, space.cells], axis=3)
    made = (traces.made | traces.at_worst).reshape(n, -1)[:, space.cells].any(axis=3)
    return Items(cost, np.asarray(correct), np.logical_and.accumulate(made, axis=2))


def arrange(traces: TraceArrays, space: ActionSpace, order: IntArray) -> TraceArrays:
    """Arrange the questions as rounds of one purchase each, in an order of their own.

    Everything that is known of policies over rounds then holds for them: sets nested in the
    threshold, one critical threshold a question.

    Args:
        traces: the questions.
        space: the action space.
        order: [n, S] the line that each purchase is made in; -1 once nothing is bought.

    Returns:
        The same answers as [n, S, U]; a purchase that cannot be made costs and says nothing.
    """
    n = len(traces)
    cells = cells_of(space, order)
    nothing = (order < 0)[:, :, None]
    rows = np.arange(n)[:, None, None]
    answer = np.where(nothing, NO_ANSWER, traces.answer.reshape(n, -1)[rows, cells])
    single = space.width != traces.n_roles
    return replace(
        traces,
        roles=("answer",) if single else traces.roles,
        models=("",) if single else traces.models,
        answer=answer.astype(np.int16),
        correct=traces.correct.reshape(n, -1)[rows, cells] & ~nothing,
        ungraded=traces.ungraded.reshape(n, -1)[rows, cells] & ~nothing,
        made=traces.made.reshape(n, -1)[rows, cells] | nothing,
        asked_probability=np.zeros(0, dtype=np.float32),
        cost_nano=np.where(nothing, 0, traces.cost_nano.reshape(n, -1)[rows, cells]),
        largest_cost_nano=np.where(
            nothing, 0, traces.largest_cost_nano.reshape(n, -1)[rows, cells]
        ),
        signals={},
        recorded=np.where(traces.complete, space.steps, 0).astype(np.int16),
        replies={},
    )


def cells_of(space: ActionSpace, order: IntArray) -> IntArray:
    """Return the calls of each purchase of an order, [n, S, U]; anything where nothing is bought.

    Args:
        space: the action space.
        order: [n, S] the line of each purchase; -1 for none.
    """
    lines = order[:, :, None] == np.arange(space.lines)
    item = np.minimum((lines.cumsum(axis=1) * lines).sum(axis=2) - 1, space.items - 1)
    cells: IntArray = space.cells[order, np.maximum(item, 0)]
    return cells
