"""Fixed plans of calls, and what each gives: every one of them is tried, so that the best is exact.

A *plan* says, before anything is asked, whom to call in which order and whose answer to take. It
looks at no reply before it goes on; a controller may, and so can do better than the best plan.

Shapes: K experts, N questions (or N cells, known by their means alone), D cells, P plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray

Rule = Literal["last", "majority"]


@dataclass(frozen=True)
class Population:
    """What the controller and each expert give on some questions.

    Recorded questions have probabilities 0 and 1, costs of their own, and answers. Where only means
    a cell are known, each cell is one question, and experts err independently within it.
    """

    names: tuple[str, ...]
    """The experts."""
    right: FloatArray
    """[K, N] probability that an expert is right."""
    cost_nano: IntArray
    """[K, N] what its call costs, in nano-dollars."""
    own_right: FloatArray
    """[N] probability that the controller is right by itself."""
    own_nano: IntArray
    """[N] what answering by itself costs the controller's writing."""
    calling_nano: IntArray
    """[N] what each call costs the controller's writing."""
    passing_nano: IntArray
    """[N] what giving an answer after calls costs the controller's writing."""
    cell: IntArray
    """[N] the cell of each question, from 0."""
    weight: FloatArray
    """[N] how much each counts."""
    answer: IntArray | None = None
    """[K, N] which answer an expert gave, -1 for none; None: only probabilities are known."""
    wrong_answers: int = 9
    """Among so many, all equally likely, wrong answers are where only probabilities are known."""

    def __post_init__(self) -> None:
        known = np.bincount(self.cell, self.weight)
        if not len(known) or known.min() <= 0:
            raise InputError(f"cell {int(known.argmin()) if len(known) else 0} has no question")


@dataclass(frozen=True)
class ExpertPlan:
    """Whom to call, and whose answer to take."""

    asked: tuple[int, ...] = ()
    """Experts in the order of the calls; empty: the controller answers by itself."""
    rule: Rule = "last"
    """The last reply's answer, or the most frequent one, of equals that of the latest reply."""

    def named(self, names: Sequence[str]) -> str:
        """Say it in words.

        >>> ExpertPlan((0, 2), "last").named(["small", "middle", "large"])
        'small, then large'
        """
        if not self.asked:
            return "alone"
        calls = ", then ".join(names[k] for k in self.asked)
        return calls if self.rule == "last" else f"majority of {calls}"


@dataclass(frozen=True)
class PlayedPlans:
    """All plans on a population."""

    population: Population
    plans: tuple[ExpertPlan, ...]
    right: FloatArray
    """[P, N] probability that the plan's answer is right."""
    cost_nano: IntArray
    """[P, N] what it costs, the controller's writing included."""

    @property
    def cells(self) -> int:
        return int(self.population.cell.max()) + 1

    def means(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of [P, N] values over the questions of each cell, [P, D]."""
        of, weight = self.population.cell, self.population.weight
        sums = [np.bincount(of, weight * of_plan, self.cells) for of_plan in values]
        means: FloatArray = np.stack(sums) / np.bincount(of, weight, self.cells)
        return means

    def shares(self) -> FloatArray:
        """[D] the share of each cell."""
        weight = self.population.weight
        found: FloatArray = np.bincount(self.population.cell, weight) / weight.sum()
        return found

    def earned(self, budget_nano: int) -> FloatArray:
        """[P, D] the expected reward of each plan in each cell under the hard gate."""
        return self.means(np.where(self.cost_nano <= budget_nano, self.right, 0.0))

    def calls(self) -> IntArray:
        """[P] the number of calls of each plan."""
        return np.array([len(plan.asked) for plan in self.plans])


def plans(experts: int, most_calls: int) -> tuple[ExpertPlan, ...]:
    """Return every plan that calls no expert twice; a majority is of three or more.

    >>> [plan.asked for plan in plans(2, 2)]
    [(), (0,), (1,), (0, 1), (1, 0)]
    """
    found = [ExpertPlan()]
    for length in range(1, most_calls + 1):
        orders = list(permutations(range(experts), length))
        found += [ExpertPlan(order) for order in orders]
        found += [ExpertPlan(order, "majority") for order in orders if length > 2]
    return tuple(found)


def play(population: Population, of: Sequence[ExpertPlan]) -> PlayedPlans:
    """Return what plans give on a population."""
    right = [_right(population, plan) for plan in of]
    cost = [_cost_nano(population, plan) for plan in of]
    return PlayedPlans(population, tuple(of), np.stack(right), np.stack(cost))


def _right(population: Population, plan: ExpertPlan) -> FloatArray:
    if not plan.asked:
        return population.own_right
    right = population.right[list(plan.asked)]
    if plan.rule == "last":
        last: FloatArray = right[-1]
        return last
    if population.answer is None:
        return _majority_of_chances(right, population.wrong_answers)
    winner = _winner(population.answer[list(plan.asked)])
    found: FloatArray = np.take_along_axis(right, winner[None], axis=0)[0]
    return found


def _majority_of_chances(right: FloatArray, wrong: int) -> FloatArray:
    """Return how likely the most frequent of independent answers is right, [N]; exact.

    Args:
        right: [m, N] how likely each is right; else it is one of the wrong answers, all equally
            likely.
        wrong: the number of wrong answers.
    """
    votes = np.indices((wrong + 1,) * len(right)).reshape(len(right), -1)  # 0 is the right answer
    won = np.take_along_axis(votes, _winner(votes)[None], axis=0)[0] == 0
    of_right = votes[:, won, None] == 0  # [m, V, 1]
    chances = np.where(of_right, right[:, None], (1 - right[:, None]) / wrong)
    found: FloatArray = np.prod(chances, axis=0).sum(axis=0)
    return found


def _winner(votes: IntArray) -> IntArray:
    """Return whose answer is the most frequent, of equals the latest, [N]; none has no vote."""
    same = ((votes[:, None] == votes) & (votes >= 0)).sum(axis=1)
    order = np.arange(len(votes))[:, None]
    found: IntArray = (same * len(votes) + order).argmax(axis=0)
    return found


def _cost_nano(population: Population, plan: ExpertPlan) -> IntArray:
    if not plan.asked:
        return population.own_nano
    calls = population.cost_nano[list(plan.asked)].sum(axis=0)
    own = len(plan.asked) * population.calling_nano + population.passing_nano
    found: IntArray = calls + own
    return found
