"""One decision of each allocator, pacer, bandit, estimator and planner, worked out by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log

import numpy as np
import pytest
from small_pool import small_pool

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, PacingState, choose, settle
from farthing.methods.cards import system, systems
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.agents.base import AgentStep, Allowance
from farthing_lab.methods.agents.budget_mem.policy import (
    BUDGET_MEM,
    FEATURES,
    Fixed,
    TierTable,
    best_fixed,
)
from farthing_lab.methods.agents.budget_tracker import BUDGET_TRACKER, verifies
from farthing_lab.methods.allocators.agent_tts import AgentTts, Space
from farthing_lab.methods.allocators.base import Allocator, ItemBatch
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN
from farthing_lab.methods.allocators.pets import PETS, Bucket
from farthing_lab.methods.allocators.plan_and_budget import PLAN_AND_BUDGET
from farthing_lab.methods.allocators.rco import RCO, retract
from farthing_lab.methods.bandits.base import BanditContext, GradedDraw
from farthing_lab.methods.bandits.knapsack import KNAPSACK
from farthing_lab.methods.bandits.squarecb import SQUARECB
from farthing_lab.methods.estimators.base import OutcomeHistory
from farthing_lab.methods.estimators.v0 import Directions, ItemResponse, V0Estimator
from farthing_lab.methods.planners.base import PricedAction, Remaining
from farthing_lab.methods.planners.base import Transition as Moved
from farthing_lab.methods.planners.bavt import BAVT, chances
from farthing_lab.methods.planners.flare import FLARE
from farthing_lab.methods.planners.mcpp import MCPP


def item(*options: tuple[float, int]) -> list[Option]:
    return [Option(value, cost, cost) for value, cost in options]


BATCH = ItemBatch.of([item((0.5, 1), (0.9, 5)), item((0.4, 1), (0.6, 2)), item((0.3, 1), (0.8, 4))])
"""Beyond the cheapest options: 0.4 for 4, 0.2 for 1, and 0.5 for 3."""


@pytest.mark.parametrize("name", [card.name for card in systems() if card.kind == "allocator"])
@pytest.mark.parametrize(
    ("budget", "choice", "value"),
    [(3, [0, 0, 0], 1.2), (7, [0, 1, 1], 1.9), (9, [0, 1, 1], 1.9), (10, [1, 0, 1], 2.1)],
)
def test_a_batch_is_given_what_the_money_buys_most_of(
    name: str, budget: int, choice: list[int], value: float
) -> None:
    """3 buys the cheapest. By value per cost the second comes first, 0.2, then the third, 0.167.

    Both cost 4 of what is left; 2 more do not pay for the first, at 0.1. With 7 to spare the first
    and the third, 0.9 for 7, are worth more than the two, 0.7 for 4.
    """
    allocator: Allocator = system("allocator", name)
    found = allocator.allocate(BATCH, budget)
    assert found.choice.tolist() == choice
    assert found.value == pytest.approx(value)


def test_no_assignment_is_worth_more_than_a_part_of_the_next_step() -> None:
    """Each of 20 items gains 0.5 for 10 more, and 15 are left: one step, and half of another."""
    batch = ItemBatch.of([item((0.0, 1), (0.5, 11))] * 20)
    found = LAGRANGIAN.allocate(batch, 20 + 15)
    assert found.value == 0.5
    assert found.bound == pytest.approx(0.75)


def test_rco_comes_back_to_the_budget_along_the_costs() -> None:
    """Costs 0 and 1 and even odds cost 1/2. A quarter is e^t / (1 + e^t) at t = -log 3.

    Of two items at 0 and 1, and a budget of 1, an objective that counts the first alone gives it.
    """
    found = retract(np.zeros((1, 2)), np.array([[0.0, 1.0]]), 0.25)
    np.testing.assert_allclose(found, [[0.0, -log(3)]], atol=1e-8)
    batch = ItemBatch.of([item((0.0, 0), (0.0, 1))] * 2)
    wanted = np.array([[0.0, 1.0], [0.0, 0.0]])
    got = RCO.maximise(batch, 1, lambda soft: (float((soft * wanted).sum()), wanted))
    assert got.tolist() == [1, 0]


def test_pets_samples_where_one_more_can_settle_most() -> None:
    """One vote leaves its answer the likeliest with P(Beta(2, 1) > 1/2) = 3/4; two alike with 7/8.

    So each question's second sample can add 1/8, its third, were the two alike, 15/16 - 7/8. The
    first question has its second sample first; the other then has more to gain. Where its two
    differ, P(p_1 largest) is 0.435 of Dirichlet(2, 2, 1), and a third settles most there.
    """
    answers = [[0, 0, 0, 0], [0, 1, 1, 1]]
    for budget, counts in ((3, [2, 1]), (4, [2, 2]), (5, [2, 3])):
        left = [iter(one) for one in answers]
        got = PETS.buy(lambda i, left=left: next(left[i]), 2, budget, 4)  # type: ignore[misc]
        assert [len(one) for one in got] == counts


def test_pets_takes_votes_to_settle_with_the_root_of_the_samples() -> None:
    """Phi(a sqrt(k) + b) at a = 0.5 and b = 0: Phi(1) = 0.8413 of four samples, Phi(1.5) of 9."""
    curve = Bucket(4, 1.0, 0.5, 0.0).curve(np.array([4.0, 9.0]))
    np.testing.assert_allclose(curve, [0.8413, 0.9332], atol=5e-5)


def test_plan_and_budget_shares_by_how_errors_fall() -> None:
    """Errors 0.8 / b and 0.2 / b: marginal gains are equal at shares as sqrt(0.8) to sqrt(0.2).

    So 6 are shared 4 to 2. With four times the credit the second part has an equal share, 3, which
    pays for its 2 and the other's 2; what is left, 2, goes to the one with more errors.
    """
    batch = ItemBatch.of([item(*((1 - c / b, b) for b in (1, 2, 4, 8))) for c in (0.8, 0.2)])
    assert PLAN_AND_BUDGET.shared(batch, 6).tolist() == [2, 1]
    assert PLAN_AND_BUDGET.shared(batch, 6, np.array([1.0, 4.0])).tolist() == [2, 1]
    assert PLAN_AND_BUDGET.shared(batch, 6, np.array([1.0, 64.0])).tolist() == [1, 2]


def test_agent_tts_tries_the_cheapest_then_even_shares() -> None:
    """Of 5 each of two parts has 2: that pays for the second option. Its value then counts most."""
    part = item((0.0, 1), (0.0, 2), (0.0, 3))
    space = Space(ItemBatch.of([part, part]), budget_nano=5)
    found = AgentTts(trials=3).maximise(space, lambda choice: float(choice.sum()))
    assert [one.choice for one in found.trials[:2]] == [(0, 0), (1, 1)]
    assert found.trials[2].choice in {(1, 2), (2, 1), (0, 1), (1, 0), (2, 0), (0, 2)}
    assert found.value == max(one.value for one in found.trials)


DAY = PacingState(budget_nano=1_000, requests=100, price=0.1)
OPTIONS = item((0.5, 10), (0.8, 30))
"""At one and at three even shares."""


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("dual-descent", 0.1 + 0.1 * 2),
        ("dual-descent-entropy", 0.1 * exp(0.1 * 2)),
        ("dual-descent-following", 0.1 * exp(0.1 * (2 - (1.0 / 0.3 - 1.0)))),
    ],
)
def test_dual_descent_raises_the_price_by_what_a_request_cost_beyond_its_share(
    name: str, after: float
) -> None:
    """At 0.1 a share the dear option is worth 0.8 - 0.3, the cheap one 0.5 - 0.1: the dear one.

    It cost 2 shares more than its own: eta = 1 / sqrt(100), added or multiplied. One that follows
    the day saw 20 of 100 requests in two fifths of it (w = 0.1): 0.3 / 0.5 of those guessed, of
    which 0.6 are to come: 0.36 of a day, for 1 - 0.03 of the money: 2.69 shares each.
    """
    pacer: Pacer = plugins.load("pacers", name)
    chosen = choose(pacer, DAY, OPTIONS, 0.0)
    assert chosen is not None
    assert chosen.option == OPTIONS[1]
    if name != "dual-descent-following":
        assert settle(pacer, chosen.state, chosen.option, 30, 0.0).price == pytest.approx(after)
        return
    later = PacingState(budget_nano=1_000, requests=100, price=0.1, spent_nano=30, settled=20)
    found = pacer.settled(later, 30, 0.4)
    rho = 0.97 / (0.3 / 0.5 * 0.6)
    assert found == pytest.approx(0.1 * exp(0.1 * (3 - rho)))


def test_a_higher_price_takes_the_cheap_option() -> None:
    """At 0.2 a share: 0.8 - 0.6 is less than 0.5 - 0.2."""
    dear = PacingState(budget_nano=1_000, requests=100, price=0.2)
    chosen = choose(plugins.load("pacers", "dual-descent"), dear, OPTIONS, 0.0)
    assert chosen is not None
    assert chosen.index == 0


def test_proportional_prices_the_lead_over_the_day() -> None:
    """300 of 1,000 are spent at 0.265 of the day: 10 x 0.035 / 0.7 = 0.5 a share: 0 to -0.7."""
    state = PacingState(budget_nano=1_000, requests=100, spent_nano=300)
    pacer: Pacer = plugins.load("pacers", "proportional")
    assert pacer.price(state, 0.265) == pytest.approx(0.5)
    chosen = choose(pacer, state, OPTIONS, 0.265)
    assert chosen is not None
    assert chosen.index == 0


def test_bidding_keeps_the_money_for_who_can_bring_more() -> None:
    """One request is left after this one, worth 0.2 or 0.8, as likely, for all the money: 0.5.

    An option of 0.4 is not worth it, and one of 0.6 is.

    Before anything is learned requests are taken to be worth 0 to 1, evenly, for three even shares.
    Of the 10 to come 11 shares buy 11 / 30, worth 10 x 0.367 (1 - 0.183) = 2.994; after 3.3 shares
    less 7.7 / 30: 10 x 0.257 (1 - 0.128) = 2.237. So an option is worth them from 0.757 on.
    """
    unlearned = plugins.load("pacers", "bidding")
    taught = unlearned.taught([item((0.2, 100)), item((0.8, 100))])
    day, longer = (
        PacingState(budget_nano=100, requests=2),
        PacingState(budget_nano=1_000, requests=11),
    )
    for pacer, state, value, cost, index in (
        (taught, day, 0.4, 100, 0),
        (taught, day, 0.6, 100, 1),
        (unlearned, longer, 0.75, 300, 0),
        (unlearned, longer, 0.76, 300, 1),
    ):
        chosen = choose(pacer, state, item((0.0, 0), (value, cost)), 0.0)
        assert chosen is not None
        assert chosen.index == index


EVERY = np.ones(3, dtype=bool)


def test_squarecb_weighs_arms_by_their_gaps() -> None:
    """All are expected to get 1/2; tolls leave 0.5, 0.4 and 0.2. gamma = 4 sqrt(3 x 1) = 6.93.

    1 / (3 + 0.693) = 0.271, 1 / (3 + 2.078) = 0.197, and the best has the rest.
    """
    seen = BanditContext(np.ones(1), EVERY, np.array([0.0, 0.1, 0.3]))
    found = SQUARECB.propensities(SQUARECB.begin(3, 1), seen)
    np.testing.assert_allclose(found, [0.532, 0.271, 0.197], atol=5e-4)
    without = BanditContext(np.ones(1), np.array([False, True, True]), np.array([0.0, 0.1, 0.3]))
    gamma = 4 * np.sqrt(2)
    worse = 1 / (2 + gamma * 0.2)
    found = SQUARECB.propensities(SQUARECB.begin(3, 1), without)
    np.testing.assert_allclose(found, [0.0, 1 - worse, worse])


def test_squarecb_shrinks_what_an_arm_got_towards_an_even_grade() -> None:
    """Batches of ten grades of 1: after the second, what was fitted to the first is in use.

    A constant alone is seen, held back by half a lesson: 10 x 0.5 / (10 + 0.5) beyond 0.5.
    """
    seen = BanditContext(np.ones(1), EVERY, np.zeros(3))
    learned = SQUARECB.begin(3, 1)
    for _ in range(20):
        learned = SQUARECB.learn(learned, GradedDraw(seen, 0, np.full(3, 1 / 3), 1.0))
    np.testing.assert_allclose(learned.expected(np.ones(1)), [0.5 + 5 / 10.5, 0.5, 0.5])


def test_the_knapsack_bandit_turns_from_what_lost() -> None:
    """Two arms at 1/2 each; the first gave a wrong answer: it lost 1 / (1/2) = 2, the other 0.

    With tolls of 0.1 and 0.2 that is 2.1 to 0.2, 1.9 apart. eta = 4 / sqrt(2), so p = 0.5 / (L -
    x)^2 with x = -0.734: 0.5 / 0.734^2 = 0.928 and 0.5 / 2.634^2 = 0.072.
    """
    both = np.ones(2, dtype=bool)
    seen = BanditContext(np.ones(1), both, np.array([0.1, 0.2]))
    begun = KNAPSACK.begin(2, 1)
    even = KNAPSACK.propensities(begun, seen)
    np.testing.assert_allclose(even, 0.5)
    learned = KNAPSACK.learn(begun, GradedDraw(seen, 0, even, 0.0))
    np.testing.assert_allclose(learned.loss, [1.9, 0.0])
    np.testing.assert_allclose(KNAPSACK.propensities(learned, seen), [0.072, 0.928], atol=5e-4)


def test_v0_reads_an_ability_from_one_outcome() -> None:
    """Prior N(0, 1), one question answered rightly: the mode is a = 1 / (1 + e^a) = 0.401.

    Its variance is 1 / (1 + 0.599 x 0.401) = 0.806, which flattens the logit of the next question
    by sqrt(1 + pi 0.806 / 8) = 1.147: 1 / (1 + e^-0.350) = 0.587.
    """
    directions = Directions(np.zeros((512, 0)), (), np.zeros(1), np.eye(1), 0.0)
    learned = ItemResponse(directions, (), (), {})
    one, other = QuestionFeatures(("one",), ("",)), QuestionFeatures(("other",), ("",))
    ability = learned.ability(OutcomeHistory(one, np.array([True])))
    assert ability.mode[0] == pytest.approx(0.401, abs=5e-4)
    assert ability.spread[0, 0] == pytest.approx(0.806, abs=5e-4)
    for right, chance in ((True, 0.587), (False, 0.413)):
        found = learned.success(OutcomeHistory(one, np.array([right])), other)
        assert found[0] == pytest.approx(chance, abs=5e-4)


def test_v0_begins_from_what_models_are_like() -> None:
    """At a prior mean of 1/2 the mode is 0.5 + 1 / (1 + e^a) = 0.808; without outcomes 0.5."""
    directions = Directions(np.zeros((512, 0)), (), np.full(1, 0.5), np.eye(1), 0.0)
    learned = ItemResponse(directions, (), (), {})
    for right, mode in (([True], 0.808), ([], 0.5)):
        asked = QuestionFeatures(("one",) * len(right), ("",) * len(right))
        found = learned.ability(OutcomeHistory(asked, np.array(right, dtype=bool)))
        assert found.mode[0] == pytest.approx(mode, abs=5e-4)


def test_v0_estimates_how_far_questions_differ_beyond_their_words() -> None:
    """Of each question one of two models is right: all even, and so is what questions have of own.

    Its variance v is that of the posterior, 1 / (2 x 0.25 + 1 / v): from 1 in three rounds to 2/3,
    1/2 and 0.4. The words are held back so strongly that they say nothing.
    """
    answers = [[0, 1], [1, 0]] * 10
    train = small_pool(answers, [1, 2], question=[f"word{i}" for i in range(20)])
    found = V0Estimator(tried=((1, 1e6),)).fit(train, 0)
    assert found.directions.own == pytest.approx(0.4, abs=0.01)


@dataclass(frozen=True)
class Shop:
    """Two things to buy first, and one to end with; states are what was bought."""

    def actions(self, state: str) -> Sequence[PricedAction]:
        if not state:
            return [PricedAction("dear", 6, 6), PricedAction("cheap", 4, 4)]
        return [PricedAction("end", 5, 5)] if len(state) == 1 else []

    def step(self, state: str, action: int, rng: np.random.Generator) -> Moved[str]:
        del rng
        name = self.actions(state)[action].name
        return Moved(state + name[0], self.actions(state)[action].expected_nano, 1.0)

    def value(self, state: str) -> float:
        return {"d": 0.3, "c": 0.1, "de": 1.0, "ce": 0.8}.get(state, 0.0)

    def usual(self, state: str, left: Remaining) -> int | None:
        return 0 if state and left.nano >= 5 and len(state) == 1 else None


@pytest.mark.parametrize("planner", [MCPP, FLARE])
@pytest.mark.parametrize(("money", "first"), [(11, 0), (10, 1), (8, 0), (5, 1)])
def test_a_planner_takes_the_first_step_of_the_best_that_can_be_paid(
    planner: object, money: int, first: int
) -> None:
    """dear, then end is worth 1.0 for 11; cheap, then end 0.8 for 9; alone they are 0.3 and 0.1.

    With 10 the dear one leaves 4, which do not pay for an end: cheap first. With 8 nothing can be
    ended, and dear alone is worth more; with 5 it cannot be bought.
    """
    rng = np.random.default_rng(0)
    assert planner.act(Shop(), "", Remaining(money), rng) == first  # type: ignore[attr-defined]


def test_of_first_steps_that_are_as_good_mcpp_takes_the_cheaper() -> None:
    class Even(Shop):
        def value(self, state: str) -> float:
            return float(len(state) == 2)

    assert MCPP.act(Even(), "", Remaining(11), np.random.default_rng(0)) == 1


def test_bavt_adds_up_gains_and_takes_the_end_of_greatest_value() -> None:
    """From 0.1 dear gains 0.3 and its end 0.7 more: 1.1, which counts as 1; cheap's end has 0.9.

    All four steps cost 20. With half of the money left nodes of 0.2 and 0.6 are drawn as 0.2^2 to
    0.6^2, 1 to 9.
    """
    tree = replace(BAVT, root=0.1, drafts=1)
    found = tree.search(Shop(), "", Remaining(20), np.random.default_rng(0))
    assert (found.path, found.value, found.spent_nano, found.steps) == ((0, 0), 1.0, 20, 4)
    assert dict(found.ends) == pytest.approx({"de": 1.0, "ce": 0.9})
    np.testing.assert_allclose(chances([0.2, 0.6], 0.5), [0.1, 0.9])


def test_nothing_is_worth_a_step_that_ends_too_late() -> None:
    """Each step takes a second: with 1.5 the end is too late, and dear alone is worth most."""
    rng = np.random.default_rng(0)
    assert [FLARE.act(Shop(), "", Remaining(11, of), rng) for of in (2.5, 1.5)] == [0, 0]
    assert [MCPP.act(Shop(), "", Remaining(10, of), rng) for of in (inf, 2.5)] == [1, 1]


def test_the_budget_tracker_speaks_of_the_tightest_budget() -> None:
    """4 of 10 searches are left, 0.4; 900 of 1,000 tokens used, 0.1: little is left, not medium."""
    allowance = Allowance.of({"search": 10, "tokens": 1_000}).charged({"search": 6, "tokens": 900})
    said = BUDGET_TRACKER.told(allowance)
    assert said.startswith("Budget: search 6 used, 4 left of 10; tokens 900 used, 100 left of")
    assert "Little is left" in said
    steps = [AgentStep("search", {"search": 4, "tokens": 100}), AgentStep("read", {"tokens": 101})]
    assert BUDGET_TRACKER.allowed(allowance, steps) == (True, False)
    assert [verifies(one) for one in (allowance, allowance.charged({"tokens": 1}))] == [True, False]


def test_of_tiers_that_are_as_good_the_cheapest_are_the_best() -> None:
    """All 243 are right; at any price, and at none, the one that costs least is best."""
    states = (3**5 - 1) // 2
    cost = np.full((1, 243), 100)
    cost[0, 77] = 90
    nothing = np.zeros((1, states, FEATURES)), np.zeros((1, states, 3), dtype=np.int64)
    table = TierTable(*nothing, np.ones((1, 243), dtype=bool), cost)
    assert [best_fixed(table, price) for price in (0.0, 0.001)] == [77, 77]


def test_memory_is_paid_for_while_the_cheapest_rest_still_fits() -> None:
    """High search can cost 12 x 5,000, mid 6 x 5,000, low 2 x 5,000; the rest 40 x 150 = 6,000.

    36,000 pay for mid search and the rest, 35,999 for low alone.
    """

    def search(query: str, top: int | None = None) -> list[tuple[str, str]]:
        del query
        return [("Torva", "The mayor of Torva is Ada Marek.")] * min(top or 6, 6)

    for budget, tier in ((66_000, 2), (65_999, 1), (36_000, 1), (35_999, 0)):
        got = BUDGET_MEM.remember(
            "Who is the mayor of Torva?", search, Fixed((2, 0, 0, 0, 0)).choose, budget
        )
        assert got.tiers[0] == tier
        assert got.cost_nano <= budget
