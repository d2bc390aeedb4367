"""Fixed plans of calls, and what each gives: every one of them is tried, so that the best is exact.

A *plan* says, before anything is asked, whom to call in which order and whose answer to take. It
looks at no reply before it goes on; a controller may, and so can do better than the best plan.

The best plan under a budget mode is what a trained controller is held to. For each cell (a kind of
question, a difficulty) that plan is chosen which earns most: the mean over its questions of
P(right) where the plan costs at most B(mode), and of 0 where it costs more, as in CORL's hard gate
(arXiv 2511.02755).

Shapes: K experts, N questions (or N cells, known by their means alone), D cells, P plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Literal

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.corl.base import Mode

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
    cost = []
    for plan in of:
        own = len(plan.asked) * population.calling_nano + population.passing_nano
        calls = population.cost_nano[list(plan.asked)].sum(axis=0)
        cost.append(own + calls if plan.asked else population.own_nano)
    right = [_right(population, plan) for plan in of]
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


_TIE = 1e-12
"""Rewards that differ by no more are equal: they are sums in another order."""


@dataclass(frozen=True)
class PlanOutcome:
    """What a way to choose plans comes to under a budget."""

    reward: float
    """Expected reward under the hard gate."""
    accuracy: float
    """Probability of a right answer, whatever it cost."""
    cost_nano: float
    """Mean cost, in nano-dollars."""
    call_ratio: float
    """Share of the questions on which an expert is called."""
    calls: float
    """Mean number of calls."""
    over_budget: float
    """Share of the questions that cost more than the budget."""


def best(played: PlayedPlans, budget_nano: int) -> IntArray:
    """Return the plan that earns most in each cell, [D]; of equals the cheapest, then the first."""
    earned = played.earned(budget_nano)
    equal = earned >= earned.max(axis=0) - _TIE
    cost = np.where(equal, played.means(played.cost_nano.astype(float)), np.inf)
    found: IntArray = cost.argmin(axis=0)
    return found


def outcome(played: PlayedPlans, chosen: IntArray | FloatArray, budget_nano: int) -> PlanOutcome:
    """Return what choosing plans comes to under B(mode).

    `chosen` is a plan for each cell, [D], or with what probability each is taken, [P, D].
    """
    odds = np.eye(len(played.plans))[:, chosen] if chosen.ndim == 1 else chosen
    odds = odds * played.shares()
    cost, calls = played.cost_nano.astype(float), played.calls()
    return PlanOutcome(
        reward=float((played.earned(budget_nano) * odds).sum()),
        accuracy=float((played.means(played.right) * odds).sum()),
        cost_nano=float((played.means(cost) * odds).sum()),
        call_ratio=float((odds.sum(axis=1) * (calls > 0)).sum()),
        calls=float((odds.sum(axis=1) * calls).sum()),
        over_budget=float((played.means(np.where(cost > budget_nano, 1.0, 0.0)) * odds).sum()),
    )


def rewards(played: PlayedPlans, chosen: IntArray | FloatArray, budget_nano: int) -> FloatArray:
    """Return what choosing plans is expected to earn on each question, [N]; as in `outcome`."""
    odds = np.eye(len(played.plans))[:, chosen] if chosen.ndim == 1 else chosen
    earned = np.where(played.cost_nano <= budget_nano, played.right, 0.0)
    found: FloatArray = (earned * odds[:, played.population.cell]).sum(axis=0)
    return found


def simple_ways(
    played: PlayedPlans, budget_nano: int, difficulty: IntArray | None = None
) -> dict[str, FloatArray]:
    """Return simple ways to choose: with what probability each takes a plan, [P, D].

    They are each model alone (`alone` is the controller), `random` among these, the expert that is
    `always cheapest` and the one that is `always best`, and, where cells have a difficulty, [D],
    `threshold`: one model up to a difficulty and another above it, the best such rule of all.
    """
    names = played.population.names
    at = [played.plans.index(ExpertPlan())]
    at += [played.plans.index(ExpertPlan((k,))) for k in range(len(names))]
    unit, cells = np.eye(len(played.plans)), np.ones(played.cells, dtype=int)
    found = {name: unit[:, plan * cells] for name, plan in zip(["alone", *names], at, strict=True)}
    found["random"] = np.stack(list(found.values())).mean(axis=0)
    each = {name: outcome(played, found[name], budget_nano) for name in names}
    if names:
        cheapest = min(names, key=lambda name: each[name].cost_nano)
        dearest = max(names, key=lambda name: (each[name].accuracy, -each[name].cost_nano))
        found |= {"always cheapest": found[cheapest], "always best": found[dearest]}
    if difficulty is not None:
        rules = [
            unit[:, np.where(difficulty <= level, low, high)]
            for level in np.unique(difficulty)
            for low in at
            for high in at
        ]

        def worth(odds: FloatArray) -> tuple[float, float]:
            result = outcome(played, odds, budget_nano)
            return result.reward, -result.cost_nano

        found["threshold"] = max(rules, key=worth)
    return found


def baselines(
    played: PlayedPlans, budget_nano: int, difficulty: IntArray | None = None
) -> dict[str, PlanOutcome]:
    """Return what simple ways to choose come to; arguments as in `simple_ways`."""
    ways = simple_ways(played, budget_nano, difficulty)
    return {name: outcome(played, odds, budget_nano) for name, odds in ways.items()}


def modes_between(
    played: PlayedPlans,
    names: Sequence[str] = ("low", "medium", "high"),
    steps: int = 200,
    most_over: float = 0.01,
) -> tuple[Mode, ...]:
    """Return budgets under which the best plans' cost and call ratio rise strictly with the mode.

    Rewards jump where a budget reaches a plan's cost. So budgets halfway between costs are tried:
    there, a question that is a little dearer than expected still fits. Of all rows that rise, the
    one is returned whose smallest gain of reward is largest: from the controller alone to the first
    mode, and from each mode to the next; of equals the one with the largest last budget.

    Args:
        played: the plans on a population, with the controller alone among them.
        names: what the modes are called, from the cheapest.
        steps: the most budgets to try.
        most_over: the largest share of the questions on which the best plan may cost more than the
            budget: where it is more, the budget lies amid the costs of a cell.
    """
    alone = np.full(played.cells, played.plans.index(ExpertPlan()))
    tried = [(nano, outcome(played, best(played, nano), nano)) for nano in _budgets(played, steps)]
    kept = [(nano, one) for nano, one in tried if one.over_budget <= most_over]
    if not kept:
        raise InputError("the best plans overspend under every budget; take fewer, larger cells")
    budgets, found = (list(column) for column in zip(*kept, strict=True))
    reward = np.array([one.reward for one in found])
    base = [outcome(played, alone, nano).reward for nano in budgets]
    cost = np.array([one.cost_nano for one in found])
    ratio = np.array([one.call_ratio for one in found])
    rises = (cost > cost[:, None] + _TIE) & (ratio > ratio[:, None] + _TIE)  # [C, C]
    gain = np.where(rises, reward - reward[:, None], 0.0)
    least = reward - np.array(base)
    back: list[IntArray] = []
    for _ in names[1:]:
        through = np.minimum(least[:, None], gain)
        back.append(through.argmax(axis=0))
        least = through.max(axis=0)
    if least.max() <= _TIE:
        raise InputError(
            f"under no {len(names)} budgets do the best plans' cost and call ratio rise from one "
            "to the next; set prices further apart, or take fewer modes"
        )
    row = [int(np.flatnonzero(least >= least.max() - _TIE)[-1])]
    for before in reversed(back):
        row.append(int(before[row[-1]]))
    return tuple(Mode(name, budgets[i]) for name, i in zip(names, reversed(row), strict=True))


def _budgets(played: PlayedPlans, steps: int) -> list[int]:
    costs = np.unique(played.cost_nano)
    if len(costs) > steps:
        costs = costs[np.linspace(0, len(costs) - 1, steps).round().astype(int)]
    between = [int(low + high) // 2 for low, high in pairwise(costs)]
    return [*between, int(costs[-1]) * 2 - (between[-1] if between else int(costs[-1]))]
