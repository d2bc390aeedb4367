"""Plans and the best of them, beside slow loops over everything that can happen."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from farthing.errors import InputError
from farthing_lab.corl.plan import (
    ExpertPlan,
    PlayedPlans,
    Population,
    baselines,
    best,
    modes_between,
    outcome,
    plans,
    play,
    rewards,
    simple_ways,
)


def cells(seed: int, experts: int = 3, kinds: int = 4, wrong: int = 3) -> Population:
    """Draw means for each cell."""
    rng = np.random.default_rng(seed)
    return Population(
        names=tuple("sml"[:experts]),
        right=rng.random((experts, kinds)),
        cost_nano=rng.integers(1, 60, (experts, kinds)),
        own_right=rng.random(kinds),
        own_nano=rng.integers(0, 9, kinds),
        calling_nano=rng.integers(0, 5, kinds),
        passing_nano=rng.integers(0, 5, kinds),
        cell=np.arange(kinds),
        weight=rng.random(kinds) + 0.1,
        wrong_answers=wrong,
    )


def questions(seed: int, n: int = 60, experts: int = 3) -> Population:
    """Draw recorded questions of three cells; an answer of 0 is right."""
    rng = np.random.default_rng(seed)
    answer = rng.integers(-1, 3, (experts, n))
    return Population(
        names=tuple("sml"[:experts]),
        right=(answer == 0).astype(float),
        cost_nano=rng.integers(1, 60, (experts, n)),
        own_right=rng.integers(0, 2, n).astype(float),
        own_nano=rng.integers(0, 9, n),
        calling_nano=rng.integers(0, 5, n),
        passing_nano=rng.integers(0, 5, n),
        cell=np.arange(n) % 3,
        weight=rng.random(n),
        answer=answer,
    )


def taken(votes: list[int], rule: str) -> int:
    """Return whose answer a plan takes."""
    if rule == "last":
        return len(votes) - 1
    count = Counter(vote for vote in votes if vote >= 0)
    return max(range(len(votes)), key=lambda i: (count[votes[i]], i))


def right(of: Population, plan: ExpertPlan, i: int) -> float:
    if not plan.asked:
        return float(of.own_right[i])
    if of.answer is not None:
        given = [int(of.answer[k, i]) for k in plan.asked]
        return float(given[taken(given, plan.rule)] == 0)
    total = 0.0
    for votes in product(range(of.wrong_answers + 1), repeat=len(plan.asked)):
        chance = 1.0
        for k, vote in zip(plan.asked, votes, strict=True):
            p = float(of.right[k, i])
            chance *= p if vote == 0 else (1 - p) / of.wrong_answers
        total += chance * (votes[taken(list(votes), plan.rule)] == 0)
    return total


def cost(of: Population, plan: ExpertPlan, i: int) -> int:
    if not plan.asked:
        return int(of.own_nano[i])
    own = len(plan.asked) * of.calling_nano[i] + of.passing_nano[i]
    return int(own + sum(of.cost_nano[k, i] for k in plan.asked))


def reward(of: Population, plan: ExpertPlan, cell: int, budget: int) -> float:
    at = np.flatnonzero(of.cell == cell).tolist()
    earned = [right(of, plan, i) * (cost(of, plan, i) <= budget) for i in at]
    return float(np.average(earned, weights=of.weight[at]))


POPULATIONS = [cells(0), cells(1, wrong=9), cells(2, 2), cells(3, 1, 2), questions(4), questions(5)]


def everything(of: Population) -> PlayedPlans:
    return play(of, plans(len(of.names), 3))


def test_every_order_of_every_choice_is_a_plan() -> None:
    found = plans(3, 3)
    assert len(found) == len(set(found)) == 1 + 3 + 6 + 6 + 6
    assert all(plan.rule == "last" for plan in found if len(plan.asked) < 3)
    assert ExpertPlan((2, 0, 1), "majority").named("sml") == "majority of l, then s, then m"
    assert ExpertPlan().named("sml") == "alone"


@pytest.mark.parametrize("of", POPULATIONS)
def test_what_plans_give_is_what_a_loop_over_all_outcomes_says(of: Population) -> None:
    played = everything(of)
    n = len(of.own_right)
    slow = [[right(of, plan, i) for i in range(n)] for plan in played.plans]
    assert np.allclose(played.right, slow, atol=1e-12)
    assert played.cost_nano.tolist() == [
        [cost(of, plan, i) for i in range(n)] for plan in played.plans
    ]


@pytest.mark.parametrize("of", POPULATIONS)
@pytest.mark.parametrize("budget", [0, 5, 20, 45, 200])
def test_the_best_plan_of_each_cell_is_the_best_of_all(of: Population, budget: int) -> None:
    played = everything(of)
    chosen = best(played, budget)
    for cell, at in enumerate(chosen):
        slow = [reward(of, plan, cell, budget) for plan in played.plans]
        assert slow[at] == pytest.approx(max(slow), abs=1e-12)
    # No assignment of plans to cells earns more.
    rng = np.random.default_rng(0)
    most = outcome(played, chosen, budget).reward
    for _ in range(50):
        other = rng.integers(len(played.plans), size=played.cells)
        assert outcome(played, other, budget).reward <= most + 1e-12


@pytest.mark.parametrize("of", POPULATIONS)
def test_an_outcome_is_the_mean_over_questions(of: Population) -> None:
    played, budget = everything(of), 30
    chosen = best(played, budget)
    found = outcome(played, chosen, budget)
    weight = of.weight / of.weight.sum()
    taken_plans = [played.plans[chosen[cell]] for cell in of.cell]
    costs = np.array([cost(of, plan, i) for i, plan in enumerate(taken_plans)])
    rights = np.array([right(of, plan, i) for i, plan in enumerate(taken_plans)])
    asked = np.array([len(plan.asked) for plan in taken_plans])
    assert found.reward == pytest.approx((weight * rights * (costs <= budget)).sum())
    assert found.accuracy == pytest.approx((weight * rights).sum())
    assert found.cost_nano == pytest.approx((weight * costs).sum())
    assert found.call_ratio == pytest.approx((weight * (asked > 0)).sum())
    assert found.calls == pytest.approx((weight * asked).sum())
    assert found.over_budget == pytest.approx((weight * (costs > budget)).sum())
    assert rewards(played, chosen, budget) == pytest.approx(rights * (costs <= budget))
    for odds in simple_ways(played, budget, np.arange(played.cells)).values():
        each = rewards(played, odds, budget)
        assert weight @ each == pytest.approx(outcome(played, odds, budget).reward)


def test_a_majority_of_equals_is_better_than_each() -> None:
    one = cells(0, 3, 1, wrong=9)
    even = Population(**{**vars(one), "right": np.full((3, 1), 0.6)})
    [single, three] = play(even, [ExpertPlan((0,)), ExpertPlan((0, 1, 2), "majority")]).right[:, 0]
    assert single == 0.6
    # Two or three right; or one right and two wrong that differ, and the right one was the last.
    assert three == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4 + 0.6 * 0.4**2 * 8 / 9)


@pytest.mark.parametrize("of", POPULATIONS)
def test_no_baseline_earns_more_than_the_best_plans(of: Population) -> None:
    played, budget = everything(of), 30
    most = outcome(played, best(played, budget), budget)
    found = baselines(played, budget, np.arange(played.cells))
    assert {"alone", *of.names, "random", "always cheapest", "always best", "threshold"} == set(
        found
    )
    assert all(one.reward <= most.reward + 1e-12 for one in found.values())
    singles = [found[name] for name in ("alone", *of.names)]
    assert found["random"].reward == pytest.approx(np.mean([one.reward for one in singles]))
    assert found["threshold"].reward >= max(one.reward for one in singles) - 1e-12
    assert found["always best"].accuracy == max(one.accuracy for one in singles[1:])
    assert found["always cheapest"].cost_nano == min(one.cost_nano for one in singles[1:])
    assert "threshold" not in baselines(played, budget)


def test_of_experts_that_are_as_often_right_the_cheaper_is_the_best() -> None:
    cost = np.repeat([[9], [4], [6]], 64, axis=1)
    of = replace(questions(0, 64), cost_nano=cost, right=np.ones((3, 64)), weight=np.ones(64))
    of = replace(of, cell=np.zeros(64, dtype=int), answer=np.zeros((3, 64), dtype=int))
    played = everything(of)
    found = baselines(played, 30)
    assert found["always best"] == found[of.names[1]] != found[of.names[0]]
    [chosen] = best(played, 30)
    assert played.plans[chosen] == ExpertPlan((1,))


def graded() -> Population:
    """Return two experts over four lengths: the longer, the harder and the dearer."""
    length = np.array([1, 2, 4, 6])
    return Population(
        names=("small", "large"),
        right=np.array([[1.0, 0.95, 0.6, 0.3], [1.0, 0.99, 0.97, 0.95]]),
        cost_nano=np.stack([100 * length, 600 * length]),
        own_right=np.array([0.98, 0.5, 0.2, 0.1]),
        own_nano=10 * length,
        calling_nano=np.full(4, 5),
        passing_nano=np.full(4, 2),
        cell=np.arange(4),
        weight=np.full(4, 0.25),
    )


def test_modes_make_the_best_plans_rise_in_cost_and_calls() -> None:
    played = everything(graded())
    modes = modes_between(played)
    assert [mode.name for mode in modes] == ["low", "medium", "high"]
    found = [outcome(played, best(played, mode.budget_nano), mode.budget_nano) for mode in modes]
    for less, more in pairwise(found):
        assert less.cost_nano < more.cost_nano
        assert less.call_ratio < more.call_ratio
        assert less.reward < more.reward
    alone = baselines(played, modes[0].budget_nano)["alone"]
    assert found[0].reward > alone.reward


def slow_modes(played: PlayedPlans) -> float:
    """Return the largest smallest gain of three rising budgets, by trying all of them."""
    costs = sorted(set(played.cost_nano.ravel().tolist()))
    tried = []
    for nano in costs:
        found = outcome(played, best(played, nano), nano)
        alone = baselines(played, nano)["alone"].reward
        tried.append((found, found.reward - alone))
    most = 0.0
    for i, (low, first) in enumerate(tried):
        for j, (medium, _) in enumerate(tried[i:], i):
            for high, _ in tried[j:]:
                row = (low, medium, high)
                rises = all(
                    a.cost_nano < b.cost_nano - 1e-9 and a.call_ratio < b.call_ratio - 1e-9
                    for a, b in pairwise(row)
                )
                gains = (first, medium.reward - low.reward, high.reward - medium.reward)
                most = max(most, min(gains)) if rises else most
    return most


@pytest.mark.parametrize("seed", range(6))
def test_modes_are_the_best_of_all_rows_or_there_is_none(seed: int) -> None:
    played = play(cells(seed, 2, 3), plans(2, 1))
    most = slow_modes(played)
    try:
        modes = modes_between(played)
    except InputError:
        assert most == 0
        return
    found = [outcome(played, best(played, mode.budget_nano), mode.budget_nano) for mode in modes]
    base = baselines(played, modes[0].budget_nano)["alone"].reward
    rewards = [base, *(one.reward for one in found)]
    gains = [b - a for a, b in pairwise(rewards)]
    assert min(gains) == pytest.approx(most)


def test_where_nothing_rises_there_are_no_modes() -> None:
    useless = Population(**{**vars(graded()), "own_right": np.ones(4)})
    with pytest.raises(InputError, match="under no 3 budgets"):
        modes_between(everything(useless))


def test_costs_that_vary_are_thinned_out_and_counted_question_by_question() -> None:
    rng, means = np.random.default_rng(0), graded()
    cell = np.repeat(np.arange(4), 50)
    right = rng.random((2, 200)) < means.right[:, cell]
    of = Population(
        names=means.names,
        right=right.astype(float),
        cost_nano=(means.cost_nano[:, cell] * rng.uniform(0.8, 1.2, 200)).astype(np.int64),
        own_right=(rng.random(200) < means.own_right[cell]).astype(float),
        own_nano=means.own_nano[cell],
        calling_nano=means.calling_nano[cell],
        passing_nano=means.passing_nano[cell],
        cell=cell,
        weight=np.ones(200),
        answer=np.where(right, 0, rng.integers(1, 9, (2, 200))),
    )
    played = everything(of)
    modes = modes_between(played, steps=60)
    found = [outcome(played, best(played, mode.budget_nano), mode.budget_nano) for mode in modes]
    assert all(a.cost_nano < b.cost_nano and a.reward < b.reward for a, b in pairwise(found))
    assert all(a.call_ratio < b.call_ratio for a, b in pairwise(found))


def test_a_cell_without_questions_is_refused() -> None:
    with pytest.raises(InputError, match="cell 0 has no question"):
        Population(**{**vars(graded()), "cell": np.arange(1, 5)})
