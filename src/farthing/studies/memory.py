"""What to pay for memory: learn on graded questions, then put contexts together under a budget."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.methods.agents.budget_mem.learner import Family, Learner, fit_family
from farthing.methods.agents.budget_mem.modules import MODULES, Search, least_nano
from farthing.methods.agents.budget_mem.policy import BUDGET_MEM, Choose, Fixed, Remembered, Router
from farthing.methods.agents.budget_mem.table import Reader, Table, tabulate, tiers_of
from farthing.methods.base import Progress
from farthing.money import dollars
from farthing.tasks.base import Question
from farthing.tasks.linked_facts import extract


@dataclass(frozen=True)
class Row:
    """What one way of paying for memory comes to on the questions that are asked."""

    name: str
    remembered: tuple[Remembered, ...]
    """One a question."""
    right: tuple[bool, ...] | None
    """Whether each is answered rightly; None where nobody knows."""
    held: bool = False
    """Whether it was held to the budget."""

    @property
    def cost_nano(self) -> int:
        """What all questions cost together, in nano-dollars."""
        return sum(one.cost_nano for one in self.remembered)


@dataclass(frozen=True)
class Study:
    """Every way of paying, the one within the budget first."""

    rows: tuple[Row, ...]
    budget_nano: int
    learned: int
    """Questions that were learned from."""
    weight: float
    """What cost weighs in the first row."""


@dataclass(frozen=True)
class World:
    """What is searched, and who reads."""

    search: Search
    reader: Reader


def follows(question: Question, context: str) -> bool:
    """Return whether a made-up question's whole chain of facts stands in the context."""
    return extract(question.text, context) in question.gold


def stands(question: Question, context: str) -> bool:
    """Return whether an accepted answer stands in the context, as words of its own.

    This is what a reader needs, and no proof that it would answer rightly.
    """
    text = context.casefold()
    return any(re.search(rf"\b{re.escape(g.casefold())}\b", text) for g in question.gold)


def study(
    world: World,
    graded: Sequence[Question],
    asked: Sequence[Question],
    budget_nano: int,
    learner: Learner,
    progress: tuple[Progress, Progress],
) -> Study:
    """Learn what to pay for on graded questions, and put contexts together for others.

    Args:
        world: the documents, and who reads.
        graded: questions with accepted answers, to learn from.
        asked: the questions of the budget.
        budget_nano: for all of these together; never exceeded.
        learner: how routers are trained; the same seed gives the same result.
        progress: told of the table, and of the training.

    Raises:
        InputError: the budget does not pay for the low tiers of all questions.
    """
    check_budget(budget_nano, len(asked))
    table = tabulate(graded, world.search, world.reader, progress[0])
    family = fit_family(table, learner=learner, progress=progress[1])
    return judged(world, table, family, asked, budget_nano)


def check_budget(budget_nano: int, n: int) -> None:
    """Refuse a budget that does not pay for the low tiers of all questions.

    Raises:
        InputError: it does not.
    """
    least = least_nano(BUDGET_MEM.prices) * n
    if budget_nano < least:
        raise InputError(
            f"the budget is {dollars(budget_nano)}, and the low tiers of {n:,} questions can cost "
            f"{dollars(least)}; give at least that, or fewer questions"
        )


def judged(
    world: World, table: Table, family: Family, asked: Sequence[Question], budget_nano: int
) -> Study:
    """Put contexts together for some questions: within the budget, and in other ways beside it."""
    mean = budget_nano / len(asked)
    own = family.within(mean)
    right, cost = table.right.mean(axis=0), table.cost_nano.mean(axis=0)
    fixed = int(np.where(cost <= max(mean, cost.min()), right - 1e-15 * cost, -1.0).argmax())
    ways: list[tuple[str, Choose, int | None]] = [
        ("BudgetMem", family.routers[own].choose, budget_nano),
        (f"fixed: {named(tiers_of(fixed))}", Fixed(tiers_of(fixed)).choose, budget_nano),
    ]
    ways += [(f"BudgetMem, cost weighs {said}", one.choose, None) for said, one in _apart(family)]
    ways += [(f"all {name}", Fixed((k,) * len(MODULES)).choose, None) for k, name in _ALIKE]
    rows = [_row(world, name, choose, asked, budget) for name, choose, budget in ways]
    return Study(tuple(rows), budget_nano, len(table), family.weights[own])


def _apart(family: Family) -> list[tuple[str, Router]]:
    """Return each router once, with the weights that it is the best for."""
    found: list[tuple[float, float, Router]] = []
    for weight, router in zip(family.weights, family.routers, strict=True):
        if found and found[-1][2] is router:
            found[-1] = (found[-1][0], weight, router)
        else:
            found.append((weight, weight, router))
    return [(f"{a:g}" if a == b else f"{a:g} to {b:g}", router) for a, b, router in found]


_ALIKE = ((0, "low"), (1, "mid"), (2, "high"))


def named(tiers: Sequence[int]) -> str:
    """Write tiers in a few letters, in the order of the modules.

    >>> named((0, 1, 2, 1, 0))
    'low mid high mid low'
    """
    return " ".join(("low", "mid", "high")[tier] for tier in tiers)


def under(
    world: World, choose: Choose, asked: Sequence[Question], budget_nano: int | None
) -> list[Remembered]:
    """Put contexts together one after another; each leaves the low tiers of all that follow."""
    done: list[Remembered] = []
    left = budget_nano
    for following in range(len(asked) - 1, -1, -1):
        question = asked[len(done)]
        room = None if left is None else left - following * least_nano(BUDGET_MEM.prices)
        done.append(BUDGET_MEM.remember(question.text, world.search, choose, room))
        left = None if left is None else left - done[-1].cost_nano
    return done


def _row(
    world: World,
    name: str,
    choose: Choose,
    asked: Sequence[Question],
    budget_nano: int | None,
) -> Row:
    done = under(world, choose, asked, budget_nano)
    right = None
    if all(question.gold for question in asked):
        pairs = zip(asked, done, strict=True)
        right = tuple(world.reader(question, one.context) for question, one in pairs)
    return Row(name, tuple(done), right, budget_nano is not None)
