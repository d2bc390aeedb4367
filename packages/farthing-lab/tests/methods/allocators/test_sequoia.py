"""Rounds by an integer program, beside enumeration, and what is learned, beside a programme."""

from itertools import product

import numpy as np
import pytest
from pending_tasks import random_tasks

from farthing.errors import InputError
from farthing_lab.methods.allocators.sequoia import (
    PendingTasks,
    RoundPolicy,
    Sequoia,
    at_random,
    following,
    optimum,
    program,
)


def test_a_round_is_the_best_of_all_within_its_budget() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        gain, cost = rng.random((4, 3)), rng.integers(0, 9, size=(4, 3))
        cost[:, 0] = 0
        found = program(gain, cost, 10)
        rows = np.arange(4)
        every = [np.array(one) for one in product(range(3), repeat=4)]
        best = max(gain[rows, one].sum() for one in every if cost[rows, one].sum() <= 10)
        assert cost[rows, found].sum() <= 10
        assert gain[rows, found].sum() == pytest.approx(best)


def test_the_optimum_is_that_of_every_way_to_act() -> None:
    """Two tasks, one round: every pair of actions, every pair of outcomes."""
    tasks = random_tasks(1, n=2, rounds=1)
    found = optimum(tasks)
    for now in product(range(3), repeat=2):
        best = 0.0
        for done in product(range(3), repeat=2):
            if sum(tasks.cost_nano[i, a] for i, a in enumerate(done)) <= tasks.budget_nano:
                mean = sum(
                    tasks.chance[0, now[0], done[0], a]
                    * tasks.chance[1, now[1], done[1], b]
                    * (tasks.worth[0, a] + tasks.worth[1, b])
                    for a, b in product(range(3), repeat=2)
                )
                best = max(best, float(mean))
        assert found[now] == pytest.approx(best)


def test_in_the_last_round_the_myopic_policy_is_the_best() -> None:
    tasks = random_tasks(2, rounds=1)
    assert following(tasks, RoundPolicy.myopic(tasks)) == pytest.approx(optimum(tasks))


def test_a_round_goes_by_the_values_of_the_next() -> None:
    tasks = random_tasks(0, rounds=2)
    values = np.zeros((3, 3, 3))
    values[1, :, 1] = 1.0
    policy = RoundPolicy(tasks, values)
    assert policy.act(0, np.zeros(3, np.int64)).any()
    assert not policy.act(0, np.ones(3, np.int64)).all()
    alike = program(tasks.gains(np.zeros(3, np.int64), values[2]), tasks.cost_nano, 7)
    assert policy.act(1, np.zeros(3, np.int64)).tolist() == alike.tolist()


@pytest.mark.slow
def test_no_policy_beats_the_optimum_and_played_episodes_earn_what_it_says() -> None:
    tasks, rng = random_tasks(3), np.random.default_rng(0)
    policy = RoundPolicy.myopic(tasks)
    exact = following(tasks, policy)
    assert (exact <= optimum(tasks) + 1e-12).all()
    earned = []
    for _ in range(300):
        now = np.ones(3, np.int64)
        for at in range(tasks.rounds):
            now = tasks.step(now, policy.act(at, now), rng)
        earned.append(tasks.worth[np.arange(3), now].sum())
    error = np.std(earned) / len(earned) ** 0.5
    assert error > 0
    assert np.mean(earned) == pytest.approx(exact[1, 1, 1], abs=4 * error)


@pytest.mark.slow
def test_what_is_learned_sees_further_than_the_next_round() -> None:
    """Half done is worth nothing yet: who takes a round for the last does not begin."""
    begin, shares = np.zeros(3, np.int64), []
    for seed in (100, 103):
        tasks = random_tasks(seed)
        best = optimum(tasks)[0, 0, 0] - tasks.worth[:, 0].sum()
        learned = Sequoia().fit(tasks, begin, np.random.default_rng(seed))
        gained = [
            (following(tasks, one)[0, 0, 0] - tasks.worth[:, 0].sum()) / best
            for one in (learned, RoundPolicy.myopic(tasks))
        ]
        shares.append(gained)
    learned_share, myopic_share = np.mean(shares, axis=0)
    assert learned_share > 0.85
    assert myopic_share < 0.5


def test_random_rounds_keep_the_budget() -> None:
    tasks, rng = random_tasks(5), np.random.default_rng(0)
    done = np.array([at_random(tasks, rng) for _ in range(200)])
    assert (tasks.cost_nano[np.arange(3), done].sum(axis=1) <= tasks.budget_nano).all()
    assert set(done.ravel()) == {0, 1, 2}


def test_what_is_no_process_is_refused() -> None:
    tasks = random_tasks(0)
    with pytest.raises(InputError, match="add up to 1"):
        PendingTasks(tasks.chance / 2, tasks.cost_nano, tasks.worth, 7, 4)
    with pytest.raises(InputError, match=r"wait has to cost \$0"):
        PendingTasks(tasks.chance, tasks.cost_nano + 1, tasks.worth, 7, 4)
