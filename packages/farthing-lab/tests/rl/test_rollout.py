"""Episodes against their exact probabilities, and the units that costs are in."""

from dataclasses import replace

import numpy as np
from scipy.stats import binomtest

from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.rl.actor_critic import Questions, draw


def test_episodes_come_with_their_exact_probabilities() -> None:
    """Each of the five episodes of two rounds' choices, by a binomial test."""
    n, rounds = 20_000, 3
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(3), size=rounds)
    pi[-1] = [0.7, 0.3, 0.0]
    right = rng.random((rounds, 2)) < 0.5
    many = np.repeat(pi[None], n, axis=0), np.repeat(right[None], n, axis=0)
    episodes = draw(*many, rng)
    assert (episodes.final.sum(axis=1) == 1).all()
    assert (episodes.taken.sum(axis=1) == episodes.final.argmax(axis=1) + 1).all()
    for t in range(rounds):
        for a in range(2):
            chance = pi[:t, 2].prod() * pi[t, a]
            chosen = episodes.final[:, t] & (episodes.action[:, t] == a)
            assert binomtest(int(chosen.sum()), n, chance).pvalue > 1e-4
            assert (episodes.right[chosen] == right[t, a]).all()


def test_costs_are_in_units_of_the_mean_cost_of_a_round() -> None:
    """So the price lambda of an answer means the same whatever the models cost."""
    traces = generate(preset("mmlu-llama2-7b").config, 50, np.random.default_rng(0))
    dearer = replace(traces, cost_nano=traces.cost_nano * 1_000)
    seen = np.zeros((50, traces.horizon, 1))
    cost = Questions.of(traces, seen).cost
    np.testing.assert_allclose(cost.mean(), 1.0)
    np.testing.assert_allclose(cost * traces.round_cost_nano.mean(), traces.round_cost_nano)
    np.testing.assert_allclose(Questions.of(dearer, seen).cost, cost)
    free = replace(traces, cost_nano=traces.cost_nano * 0)
    np.testing.assert_array_equal(Questions.of(free, seen).cost, 0.0)
