"""FLARE: finds the way out of traps, and its values are those of value iteration."""

import numpy as np
import pytest
from planner_worlds import Chain, Trap

from farthing_lab.methods.planners.base import STEP_BY_STEP, Remaining, play
from farthing_lab.methods.planners.flare import FLARE, LookAhead, _decision, _simulate


@pytest.mark.slow
def test_where_greedy_scores_nothing_it_finds_the_way() -> None:
    rng = np.random.default_rng(0)
    for depth in (2, 4, 6):
        trap = Trap(depth)
        assert play(STEP_BY_STEP, trap, "", Remaining(1_000), rng).value == 0.0
        found = [
            play(FLARE, trap, "", Remaining(1_000), np.random.default_rng(i)) for i in range(20)
        ]
        assert [one.value for one in found] == [1.0] * 20


def test_paid_search_finds_the_way_too() -> None:
    trap = Trap(4)
    searcher = LookAhead(drafts=1, explore=1.0, share=0.9)
    right = [
        searcher.search(trap, "", Remaining(600), np.random.default_rng(i)).state == "rrrr"
        for i in range(20)
    ]
    assert all(right)


def random_chain(rng: np.random.Generator) -> tuple[Chain, int]:
    cheap, dear = int(rng.integers(1, 4)), int(rng.integers(4, 9))
    hurry, care = float(rng.uniform(0.3, 0.7)), float(rng.uniform(0.75, 1.0))
    length = int(rng.integers(1, 4))
    return Chain(length, (hurry, cheap), (care, dear)), int(rng.integers(0, dear * length + 3))


@pytest.mark.slow
def test_its_values_become_those_of_value_iteration() -> None:
    rng = np.random.default_rng(4)
    for _ in range(15):
        chain, nano = random_chain(rng)
        exact, of = chain.best(0, nano)
        root = _decision(chain, 0, Remaining(nano))
        assert set(root.actions) == set(of)
        if not of:
            continue
        for _ in range(2_000):
            _simulate(chain, root, 0.7, rng)
        assert root.value == pytest.approx(exact, abs=0.05)
        for action, worth in of.items():
            assert abs(root.q[action] - worth) < 0.02 + 2.0 / np.sqrt(root.tried[action])


@pytest.mark.slow
def test_it_acts_as_well_as_value_iteration() -> None:
    rng = np.random.default_rng(5)
    planner, lost = LookAhead(simulations=1_000), []
    for _ in range(30):
        chain, nano = random_chain(rng)
        exact, of = chain.best(0, nano)
        chosen = planner.act(chain, 0, Remaining(nano), rng)
        assert (chosen is None) == (not of)
        if chosen is not None:
            lost.append(exact - of[chosen])
    assert max(lost) < 0.06
    assert np.mean(lost) < 0.005


def test_what_is_left_belongs_to_the_state() -> None:
    # Care at both steps is best and cannot be paid twice: care once, in whatever order, then hurry.
    chain = Chain(2, (0.5, 1), (1.0, 10))
    done = [play(FLARE, chain, 0, Remaining(12), np.random.default_rng(i)) for i in range(20)]
    assert {tuple(sorted(one.actions)) for one in done} <= {("care", "hurry"), ("hurry",)}
    assert all(one.spent_nano <= 12 for one in done)


def test_ending_is_chosen_where_it_is_worth_more() -> None:
    class Ripe(Chain):
        def value(self, state: int) -> float:
            return 0.8 if state == 0 else super().value(state)

    assert (
        FLARE.act(Ripe(1, (0.5, 1), (0.6, 2)), 0, Remaining(10), np.random.default_rng(0)) is None
    )
