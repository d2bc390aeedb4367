"""BudgetMem against all 243 combinations of tiers, and against budgets that are hard."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from farthing.errors import BudgetError, InputError
from farthing.methods.base import Silent
from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.agents.budget_mem.learner import (
    CostScale,
    RouterLearner,
    fit_family,
    worth,
)
from farthing_lab.methods.agents.budget_mem.policy import (
    BUDGET_MEM,
    FEATURES,
    MODULES,
    Fixed,
    Memory,
    Router,
    TierTable,
    best_fixed,
    largest_nano,
    least_nano,
    line_of,
    run,
    tabulate,
    tiers_of,
)
from farthing_lab.studies.memory import World, check_budget, follows, put_together, stands, under
from farthing_lab.tasks.linked_facts import LinkedFacts, linked_facts
from farthing_lab.tasks.local_search import LocalSearch

SHORT = RouterLearner(updates=60, batch=64, restarts=1)


@pytest.fixture(scope="module")
def facts() -> LinkedFacts:
    return linked_facts(60, np.random.default_rng(0))


@pytest.fixture(scope="module")
def world(facts: LinkedFacts) -> World:
    return World(LocalSearch(facts.documents).find, follows)


@pytest.fixture(scope="module")
def table(facts: LinkedFacts, world: World) -> TierTable:
    return tabulate(facts.questions, world.search, world.reader, Silent())


def drawn(seed: int) -> Router:
    rng = np.random.default_rng(seed)
    shapes = ((FEATURES, 8), (8, 3))
    return Router(
        tuple(rng.normal(size=shape) for shape in shapes),
        tuple(rng.normal(size=shape[1]) for shape in shapes),
    )


@pytest.mark.slow
def test_the_table_is_what_running_all_243_by_hand_gives(
    facts: LinkedFacts, world: World, table: TierTable
) -> None:
    for row in (0, 1, 2):
        question = facts.questions[row]
        for leaf, tiers in enumerate(itertools.product(range(3), repeat=5)):
            memory, cost = Memory(line_of(question.text)), 0
            for module, tier in enumerate(tiers):
                most = largest_nano(module, tier, memory)
                memory, paid = run(module, tier, memory, world.search)
                assert 0 <= paid <= most
                cost += paid
            assert table.cost_nano[row, leaf] == cost
            assert table.right[row, leaf] == follows(question, memory.text)
            assert tiers_of(leaf) == tiers


@pytest.mark.slow
def test_what_is_played_is_what_the_table_says(
    facts: LinkedFacts, world: World, table: TierTable
) -> None:
    for seed in range(5):
        router = drawn(seed)
        leaves = table.followed(router)
        for row, question in enumerate(facts.questions):
            got = BUDGET_MEM.remember(question.text, world.search, router.choose)
            assert got.tiers == tiers_of(int(leaves[row]))
            assert got.cost_nano == table.cost_nano[row, leaves[row]]
            assert follows(question, got.context) == table.right[row, leaves[row]]


@pytest.mark.slow
def test_questions_take_as_many_links_as_facts(facts: LinkedFacts, table: TierTable) -> None:
    groups = np.array([question.group for question in facts.questions])
    links = np.array([tiers_of(leaf)[1] for leaf in range(243)])
    for group, most in (("1 fact", -1), ("2 facts", 0), ("3 facts", 1)):
        mine = table.right[groups == group]
        assert mine.any(axis=1).all()
        assert not mine[:, links <= most].any()


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.0, 0.1, 0.2, 0.4, 0.8, 1.6])
def test_blind_it_learns_the_best_of_the_243(table: TierTable, weight: float) -> None:
    learner = RouterLearner()
    price = learner.scale(table).price(weight)
    rows = np.full(len(table), best_fixed(table, price))
    right, cost = table.means(rows)
    best = right - price * cost
    assert best == pytest.approx(
        max(table.right[:, k].mean() - price * table.cost_nano[:, k].mean() for k in range(243))
    )
    router = learner.fit(table, weight, blind=True)
    assert len(set(table.followed(router).tolist())) == 1
    got = worth(table, router, price)
    assert best - 0.03 <= got <= best + 1e-12


@pytest.mark.slow
def test_seeing_it_is_better_than_any_fixed_choice(table: TierTable) -> None:
    learner = RouterLearner()
    price = learner.scale(table).price(0.4)
    right, cost = table.means(np.full(len(table), best_fixed(table, price)))
    assert worth(table, learner.fit(table, 0.4), price) > right - price * cost + 0.1


@pytest.mark.slow
def test_cost_never_rises_with_its_weight(table: TierTable) -> None:
    family = fit_family(table, weights=(1.6, 0.0, 0.05, 0.4, 0.8), learner=SHORT)
    assert family.weights == (0.0, 0.05, 0.4, 0.8, 1.6)
    assert (np.diff(family.cost_nano) <= 0).all()
    assert (np.diff(family.right) <= 0).all()
    assert np.diff(family.prices).min() > 0
    costs = [
        table.means(np.full(len(table), best_fixed(table, price)))[1]
        for price in np.geomspace(1e-9, 1e-3, 200)
    ]
    assert (np.diff(costs) <= 0).all()
    assert costs[-1] == table.cost_nano.mean(axis=0).min()


def never_over_the_budget(world: World, facts: LinkedFacts, streams: int) -> None:
    rng = np.random.default_rng(4)
    for _ in range(streams):
        question = facts.questions[int(rng.integers(len(facts.questions)))]
        budget = int(rng.integers(0, 200_000))

        def choose(_: FloatArray, allowed: Sequence[bool]) -> int:
            return int(rng.choice(np.flatnonzero(allowed)))

        try:
            got = BUDGET_MEM.remember(question.text, world.search, choose, budget)
        except BudgetError:
            assert budget < least_nano()
        else:
            assert got.cost_nano <= budget


@pytest.mark.slow
def test_a_question_never_costs_more_than_its_budget(world: World, facts: LinkedFacts) -> None:
    never_over_the_budget(world, facts, 500)


@pytest.mark.simulations
def test_no_question_of_10000_costs_more(world: World, facts: LinkedFacts) -> None:
    never_over_the_budget(world, facts, 10_000)


@pytest.mark.slow
def test_a_batch_never_costs_more_and_leaves_nobody_out(world: World, facts: LinkedFacts) -> None:
    asked = facts.questions[:20]
    for budget in range(20 * least_nano(), 3_000_000, 173_000):
        done = under(world, Fixed((2, 2, 2, 2, 2)).choose, asked, budget)
        assert len(done) == 20
        assert sum(one.cost_nano for one in done) <= budget
    with pytest.raises(InputError, match="low tiers of 20 questions can cost") as problem:
        check_budget(20 * least_nano() - 1, 20)
    assert "\n" not in str(problem.value)


@pytest.mark.slow
def test_within_a_budget_and_beside_it(world: World, facts: LinkedFacts, table: TierTable) -> None:
    family = fit_family(table, weights=(0.0, 0.4), learner=SHORT)
    contexts, rows = put_together(world, table, family, facts.questions[:10], 800_000)
    assert sum(one.cost_nano for one in contexts) <= 800_000
    assert all(row["total_cost_usd"] <= 0.0008 for row in rows if row["held"])
    assert [row["held"] for row in rows[:3]] == [True, True, False]
    assert rows[0]["right"] is not None
    unknown = [Question("q", "Who is the mayor of Torva?")]
    assert put_together(world, table, family, unknown, 800_000)[1][0]["right"] is None


@pytest.mark.slow
def test_the_same_seed_gives_the_same_router(table: TierTable) -> None:
    one, other = (SHORT.fit(table, 0.4) for _ in range(2))
    np.testing.assert_array_equal(one.weights[0], other.weights[0])


def test_a_window_stands_still_unless_it_slides() -> None:
    costs, rewards = np.arange(4.0), np.array([0.0, 1.0, 0.0, 1.0])
    for slides in (False, True):
        scale = CostScale(window=4, slides=slides)
        scale.see(costs, rewards)
        before = scale.price(1.0)
        scale.see(10.0 * costs, rewards)
        assert (scale.price(1.0) == before) is not slides
    # A dollar's price does not depend on the currency: the same in cents costs a hundredth each.
    cents = CostScale(window=4)
    cents.see(100.0 * costs, rewards)
    one = CostScale(window=4)
    one.see(costs, rewards)
    assert cents.price(1.0) * 100 == pytest.approx(one.price(1.0))


def test_costs_that_are_all_the_same_say_nothing() -> None:
    scale = CostScale(window=2)
    scale.see(np.array([5.0, 5.0]), np.array([0.0, 1.0]))
    assert scale.price(1.0) == 0.0


def test_an_answer_stands_in_a_context_as_words_of_its_own() -> None:
    question = Question("q", "?", gold=("Ada Marek", "goat"))
    assert stands(question, "It was ada marek.")
    assert not stands(question, "She keeps goats.")


def test_nothing_to_learn_from_is_refused(world: World) -> None:
    with pytest.raises(InputError, match="no questions to learn from"):
        tabulate([], world.search, world.reader, Silent())
    assert len(MODULES) == 5
