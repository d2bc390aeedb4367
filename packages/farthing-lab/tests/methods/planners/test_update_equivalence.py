"""Mirror descent: one step by its closed form, many steps as good as dynamic programming."""

import numpy as np
import pytest
from planner_worlds import Chain, Trap

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.planners.base import Remaining, play
from farthing_lab.methods.planners.update_equivalence import (
    UPDATE_EQUIVALENCE,
    MirrorDescent,
    improved,
)


def softmax(logits: FloatArray) -> FloatArray:
    found: FloatArray = np.exp(logits) / np.exp(logits).sum()
    return found


def test_a_step_is_that_of_mirror_descent() -> None:
    """Shares grow by exp(eta Q), beside a loop over actions; V is the same for all of them."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        policy = rng.dirichlet(np.ones(4))
        worth = rng.random(4)
        came = [(at, float(worth[at])) for at in rng.permutation(4).tolist()]
        expected = [p * np.exp(3.0 * q) for p, q in zip(policy, worth, strict=True)]
        found = softmax(improved(np.log(policy), came, 3.0))
        assert found == pytest.approx(np.array(expected) / sum(expected))


def test_what_nobody_did_keeps_its_share_of_the_mean() -> None:
    found = improved(np.zeros(3), [(0, 1.0), (0, 0.0), (1, 0.2)], 1.0)
    assert found == pytest.approx([0.5 - 0.4, 0.2 - 0.4, 0.0])


def random_chain(rng: np.random.Generator) -> tuple[Chain, int]:
    cheap, dear = int(rng.integers(1, 4)), int(rng.integers(4, 9))
    hurry, care = float(rng.uniform(0.3, 0.7)), float(rng.uniform(0.75, 1.0))
    length = int(rng.integers(1, 4))
    return Chain(length, (hurry, cheap), (care, dear)), int(rng.integers(0, dear * length + 3))


def test_it_acts_as_well_as_dynamic_programming() -> None:
    rng, lost = np.random.default_rng(5), []
    for _ in range(30):
        chain, nano = random_chain(rng)
        exact, of = chain.best(0, nano)
        chosen = UPDATE_EQUIVALENCE.act(chain, 0, Remaining(nano), rng)
        assert (chosen is None) == (not of)
        if chosen is not None:
            lost.append(exact - of[chosen])
    assert max(lost) < 0.06
    assert np.mean(lost) < 0.005


@pytest.mark.slow
def test_one_step_may_not_be_enough() -> None:
    """Care early pays only where one is careful later: the usual, hurry, does not show that."""
    chain = Chain(3, (0.3, 1), (1.0, 5))
    exact, of = chain.best(0, 15)
    assert exact == of[1] == 1.0
    many, few = MirrorDescent(rounds=12, trajectories=25), MirrorDescent(1, 4)
    done = [many.act(chain, 0, Remaining(15), np.random.default_rng(i)) for i in range(20)]
    assert done == [1] * 20
    once = [few.act(chain, 0, Remaining(15), np.random.default_rng(i)) for i in range(20)]
    assert once.count(1) < 20


@pytest.mark.slow
def test_a_trap_that_the_usual_falls_into_is_left_where_it_is_shallow() -> None:
    shallow, deep = (
        np.mean(
            [
                play(
                    UPDATE_EQUIVALENCE, Trap(depth), "", Remaining(1_000), np.random.default_rng(i)
                ).value
                for i in range(10)
            ]
        )
        for depth in (2, 6)
    )
    assert shallow == 1.0
    assert deep < 1.0  # it looks where its policy goes, and nowhere else


def test_ending_is_chosen_where_it_is_worth_more() -> None:
    class Ripe(Chain):
        def value(self, state: int) -> float:
            return 0.9 if state == 0 else super().value(state)

    rng = np.random.default_rng(0)
    assert UPDATE_EQUIVALENCE.act(Ripe(1, (0.5, 1), (0.6, 2)), 0, Remaining(10), rng) is None
    ripe = Ripe(1, (0.5, 1), (1.0, 2))
    assert UPDATE_EQUIVALENCE.act(ripe, 0, Remaining(10), rng) == 1
