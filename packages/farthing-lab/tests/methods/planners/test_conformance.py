"""What every registered planner keeps: never over budget, over any simulator, by its seed alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from planner_worlds import Chain, EndingWorld, RandomWorld, Trap, random_workflow

from farthing import plugins
from farthing.errors import BudgetError, InputError
from farthing.methods.base import SystemCard
from farthing.methods.cards import system, systems
from farthing_lab.methods.planners.base import (
    STEP_BY_STEP,
    UNPLANNED,
    Planner,
    PricedAction,
    Remaining,
    Transition,
    play,
    usual,
)
from farthing_lab.methods.planners.bavt import ValueTree
from farthing_lab.methods.planners.flare import LookAhead
from farthing_lab.methods.planners.mcpp import Portfolio
from farthing_lab.methods.planners.update_equivalence import MirrorDescent

NAMES = plugins.names("planners")
QUICK: dict[str, Planner] = {
    "bavt": ValueTree(most_steps=12),
    "flare": LookAhead(simulations=8),
    "mcpp": Portfolio(simulations=2),
    "update-equivalence": MirrorDescent(rounds=2, trajectories=3),
}
"""The built-in ones with less thought, for many instances."""


@pytest.fixture(params=NAMES)
def planner(request: pytest.FixtureRequest) -> Planner:
    loaded: Planner = system("planner", request.param)
    return loaded


@pytest.fixture(params=NAMES)
def quick(request: pytest.FixtureRequest) -> Planner:
    loaded: Planner = QUICK.get(request.param, system("planner", request.param))
    return loaded


def world(at: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a random world and where it begins."""
    kind = at % 4
    if kind == 3:
        flow = random_workflow(rng)
        return flow, flow.begin
    made = RandomWorld(at, late=kind == 1) if kind < 2 else EndingWorld(at)
    return made, (0, 0)


def within_the_budget(planner: Planner, instances: int) -> None:
    rng = np.random.default_rng(1)
    for at in range(instances):
        simulator, state = world(at, rng)
        left = Remaining(int(rng.integers(0, 2_500)), float(rng.choice([np.inf, 2.0, 15.0])))
        done = play(planner, simulator, state, left, rng)
        assert 0 <= done.spent_nano <= left.nano
        assert 0.0 <= done.value <= 1.0
        assert done.value == 0.0 or done.seconds <= left.seconds
        if isinstance(planner, ValueTree | LookAhead):
            found = planner.search(simulator, state, left, rng)
            assert found.spent_nano <= left.nano


@pytest.mark.slow
def test_never_over_budget_and_nothing_is_worth_anything_late(quick: Planner) -> None:
    within_the_budget(quick, 300)


@pytest.mark.simulations
def test_never_over_budget_in_10000_worlds(quick: Planner) -> None:
    within_the_budget(quick, 10_000)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_episode(planner: Planner) -> None:
    rng = np.random.default_rng(3)
    for simulator, state in (world(at, rng) for at in range(4)):
        runs = [
            play(planner, simulator, state, Remaining(1_500, 20.0), np.random.default_rng(7))
            for _ in range(2)
        ]
        assert runs[0] == runs[1]


def test_where_nothing_can_be_paid_nothing_is_done(planner: Planner) -> None:
    rng = np.random.default_rng(0)
    assert planner.act(Chain(2, (0.5, 10), (0.9, 20)), 0, Remaining(9), rng) is None
    assert planner.act(Chain(2, (0.5, 10), (0.9, 20)), 0, Remaining(100, -1.0), rng) is None
    assert planner.act(Chain(2, (0.5, 10), (0.9, 20)), 2, Remaining(100), rng) is None


def test_the_only_thing_that_can_be_paid_is_done(planner: Planner) -> None:
    rng = np.random.default_rng(0)
    assert planner.act(Chain(1, (0.9, 10), (0.95, 20)), 0, Remaining(19), rng) == 0


def test_nothing_of_the_simulator_changes(planner: Planner) -> None:
    flow = random_workflow(np.random.default_rng(5))
    before = repr(flow.parts)
    play(planner, flow, flow.begin, Remaining(500, 50.0), np.random.default_rng(1))
    assert repr(flow.parts) == before


class Slow(Trap):
    """Answers at once, or after a step that takes a second; the last step is worth everything."""

    def actions(self, state: str) -> Sequence[PricedAction]:
        both = [PricedAction("go on", 10, 10), PricedAction("end", 10, 10)]
        return [] if len(state) == self.depth or state.endswith("e") else both

    def ending(self, state: str) -> int:
        return 1

    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        return Transition(state + "e", 10) if action else Transition(state + "r", 10, 1.0)

    def score(self, state: str) -> float:
        return 0.1 + 0.1 * state.count("r")


@pytest.mark.parametrize("deadline", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("planner", [ValueTree(), LookAhead()])
def test_an_answer_is_forced_in_time_where_going_on_is_late(
    planner: ValueTree | LookAhead, deadline: float
) -> None:
    for i in range(20):
        world, rng = Slow(), np.random.default_rng(i)
        found = planner.search(world, "", Remaining(500, deadline), rng)
        assert found.ends
        assert found.state.endswith("e")
        assert all(state.count("r") <= deadline for state, _ in found.ends)
        assert found.spent_nano <= 500


def test_every_card_says_what_it_is() -> None:
    found = {card.name: card for card in systems() if card.kind == "planner"}
    assert set(found) == set(NAMES) >= {"bavt", "flare", "mcpp"}
    assert all(isinstance(plugins.load("planners", name), SystemCard) for name in NAMES)
    for card in found.values():
        assert card.meaning
        assert len(card.meaning) < 90
        assert card.page.startswith("docs/")


class Greedy:
    """Wants the dearest action, whatever is left."""

    def act(
        self, simulator: Any, state: Any, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        return len(simulator.actions(state)) - 1


class Liar(Trap):
    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        return Transition(state + "l", self.cost + 1)


class Giver(Trap):
    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        return Transition(state + "l", -1)


class Endless(Trap):
    def step(self, state: str, action: int, rng: np.random.Generator) -> Transition[str]:
        return Transition(state, 0)


def test_what_cannot_be_paid_is_refused_whoever_wants_it() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(BudgetError, match="'care' can cost"):
        play(Greedy(), Chain(2, (0.5, 10), (0.9, 20)), 0, Remaining(19), rng)
    with pytest.raises(InputError, match="breaks its word"):
        play(Greedy(), Liar(), "", Remaining(100), rng)
    with pytest.raises(InputError, match="gave back"):
        play(Greedy(), Giver(), "", Remaining(100), rng)
    with pytest.raises(InputError, match="has not ended"):
        play(Greedy(), Endless(), "", Remaining(100), rng)
    with pytest.raises(InputError, match="in this order"):
        PricedAction("a", 2, 1)


def test_plain_plans_take_the_cheapest_and_the_best_next_score() -> None:
    rng, chain = np.random.default_rng(0), Chain(3, (0.5, 10), (0.9, 20))
    assert usual(chain, 0, Remaining(100)) == UNPLANNED.act(chain, 0, Remaining(100), rng) == 0
    assert usual(chain, 0, Remaining(5)) is None
    assert play(STEP_BY_STEP, Trap(), "", Remaining(1_000), rng).state == "lllll"
    assert STEP_BY_STEP.act(Trap(), "", Remaining(5), rng) is None
