"""Bayes' rule with raters, whatever the order; and what evidence is worth, by enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing_lab.methods.bayes import expected_costs, posterior, value_of_evidence

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=100)
@given(seed=seeds)
def test_the_order_of_observations_and_of_raters_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observations, raters, states = rng.integers(1, 6, 3).tolist()
    prior = rng.dirichlet(np.ones(states))
    ratings = rng.uniform(0.01, 1, (observations, raters, states))
    first = posterior(prior, ratings)
    shuffled = ratings[rng.permutation(observations)][:, rng.permutation(raters)]
    np.testing.assert_allclose(posterior(prior, shuffled), first, rtol=1e-12)
    scaled = ratings * rng.uniform(0.1, 3, (observations, 1, 1))
    np.testing.assert_allclose(posterior(prior, scaled), first, rtol=1e-9)
    bit_by_bit = prior
    for one in ratings:
        bit_by_bit = posterior(bit_by_bit, one[None])
    np.testing.assert_allclose(bit_by_bit, first, rtol=1e-9)


def test_it_is_exact_bayes_where_raters_know_the_likelihoods() -> None:
    """States and observations drawn 200,000 times; posteriors are the shares among equals."""
    rng = np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    chance = rng.dirichlet(np.ones(2), (2, 3))  # [observation, state, outcome]
    state = rng.choice(3, 200_000, p=prior)
    seen = np.stack([rng.random(len(state)) < chance[e, state, 1] for e in range(2)], axis=1)
    for outcome in product((0, 1), repeat=2):
        among = (seen == outcome).all(axis=1)
        share = np.bincount(state[among], minlength=3) / among.sum()
        ratings = np.stack([chance[e, :, outcome[e]] for e in range(2)])[:, None]
        got = posterior(prior, np.repeat(ratings, 3, axis=1))
        np.testing.assert_allclose(got, share, atol=0.01)


def test_one_rater_far_off_moves_nothing() -> None:
    prior, honest = np.array([0.4, 0.6]), np.array([[[0.9, 0.2], [0.8, 0.3], [0.85, 0.25]]])
    for wild in ([1e-9, 1.0], [1.0, 1e-9]):
        both = np.concatenate([honest, [[wild, wild]]], axis=1)[:, [0, 1, 2, 3]]
        low = posterior(prior, honest[:, [1]])[0]
        high = posterior(prior, honest[:, [0]])[0]
        assert low <= posterior(prior, both)[0] <= high


@settings(deadline=None, max_examples=100)
@given(seed=seeds)
def test_the_value_of_evidence_is_what_enumeration_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states, decisions, outcomes = rng.integers(1, 5, 3).tolist()
    belief, loss = rng.dirichlet(np.ones(states)), rng.uniform(0, 10, (decisions, states))
    likelihood = rng.dirichlet(np.ones(outcomes), states).T  # [O, S]
    now = min(sum(belief[s] * loss[d, s] for s in range(states)) for d in range(decisions))
    later = 0.0
    for o in range(outcomes):
        chance = sum(belief[s] * likelihood[o, s] for s in range(states))
        after = [belief[s] * likelihood[o, s] / chance for s in range(states)]
        costs = [sum(after[s] * loss[d, s] for s in range(states)) for d in range(decisions)]
        later += chance * min(costs)
    assert value_of_evidence(belief, loss, likelihood) == pytest.approx(now - later, abs=1e-9)
    assert expected_costs(belief, loss).min() == pytest.approx(now)
    nothing = np.ones((1, states))
    assert value_of_evidence(belief, loss, nothing) == pytest.approx(0, abs=1e-12)
    perfect = value_of_evidence(belief, loss, np.eye(states))
    assert perfect >= value_of_evidence(belief, loss, likelihood) - 1e-9


def test_ratings_that_exclude_all_states_are_refused() -> None:
    with pytest.raises(InputError, match="no state is possible"):
        posterior(np.array([0.0, 1.0]), np.array([[[1.0, 0.0]]]))
