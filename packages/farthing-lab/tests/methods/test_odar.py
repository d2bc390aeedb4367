"""ODAR: its edges are exact, its price is what its calls cost, and free energy chooses."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.methods.base import Dataset, Silent
from farthing.methods.cards import card
from farthing.process.batch_replay import NestedReplay, replay
from farthing.process.play import outcome_of, play
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.token_moments import of_tokens, token_moments
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.routers.odar.learner import (
    MOST,
    NEARLY,
    ODDS,
    OdarLearner,
    OdarPolicy,
    calls_at,
    free_energy,
    fused,
    hardest,
    of_votes,
)

ODAR, ODAR_RECHECK = OdarLearner(), OdarLearner(recheck=True)

SAMPLES = st.integers(1, 6)
TOKENS = st.integers(1, 9)
SEEDS = st.integers(0, 10_000)


def some_tokens(seed: int, samples: int, tokens: int) -> tuple[FloatArray, np.ndarray]:
    rng = np.random.default_rng(seed)
    length = rng.integers(1, tokens + 1, samples)
    return -rng.exponential(1.0, (samples, tokens)), np.arange(tokens) < length[:, None]


@given(SEEDS, SAMPLES, TOKENS)
def test_without_varentropy_the_likeliest_sample_is_chosen(
    seed: int, samples: int, tokens: int
) -> None:
    """Its likelihood is the product of its tokens' probabilities, multiplied out one by one."""
    logprob, token = some_tokens(seed, samples, tokens)
    likelihood = [
        np.prod([np.exp(one) for one, here in zip(row, there, strict=True) if here])
        for row, there in zip(logprob, token, strict=True)
    ]
    assert likelihood[fused(logprob, token, 0.0)] == pytest.approx(max(likelihood), rel=1e-12)


@given(SEEDS, SAMPLES, TOKENS, st.floats(0, 10))
def test_the_energy_is_that_of_numpy_on_the_tokens_alone(
    seed: int, samples: int, tokens: int, weight: float
) -> None:
    logprob, token = some_tokens(seed, samples, tokens)
    found = free_energy(logprob, token, weight)
    for row, there, energy in zip(logprob, token, found, strict=True):
        own = -row[there]
        assert energy == pytest.approx(own.sum() + weight * np.var(own), abs=1e-9)


def test_of_two_equally_likely_samples_the_even_one_is_chosen() -> None:
    logprob = np.array([[-1.9, -0.1], [-1.0, -1.0]])
    token = np.ones((2, 2), dtype=bool)
    assert fused(logprob, token, 0.0) == 0  # equal: the first
    assert fused(logprob, token, 0.01) == 1
    surprisal, spread = token_moments(logprob, token)
    np.testing.assert_allclose(surprisal, 2.0)
    np.testing.assert_allclose(spread, [0.81, 0.0])


@given(SEEDS, st.floats(0.001, 5))
def test_more_varentropy_never_makes_a_sample_likelier_to_be_chosen(
    seed: int, weight: float
) -> None:
    """What is chosen at a larger weight has at most as much varentropy (exchange argument)."""
    logprob, token = some_tokens(seed, 6, 8)
    spread = token_moments(logprob, token)[1]
    chosen = [spread[fused(logprob, token, at)] for at in (0.0, weight, 2 * weight)]
    assert chosen[0] >= chosen[1] >= chosen[2]


def test_a_reply_without_tokens_has_no_energy_recorded() -> None:
    assert of_tokens([]) == {}


def test_votes_are_bayes_rule_by_enumeration() -> None:
    """One of five answers is right, each as likely as the others at first."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        code = rng.integers(-1, 4, 5)
        known = rng.random(5) < 0.8
        p, chance = rng.uniform(0.05, 0.95, 5), 0.25
        found = of_votes(p[None], code[None], known[None], chance)[0]
        spoken = [k for k in range(5) if known[k] and code[k] >= 0]
        joint = {
            a: np.prod([p[k] if code[k] == a else (1 - p[k]) * chance for k in spoken])
            for a in range(5)
        }
        for k in range(5):
            if k in spoken:
                share = joint[int(code[k])] / sum(joint.values())
                assert np.exp(-found[k]) == pytest.approx(share, abs=1e-9)
            else:
                assert found[k] == np.inf


def test_the_published_edge_is_exact() -> None:
    d = np.array([0.0, np.nextafter(0.3, 0), 0.3, np.nextafter(0.7, 0) - 1e-9, 0.7, 1 - 2 * NEARLY])
    assert calls_at(d, 0.3).tolist() == [1, 1, 2, 2, 6, 6]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_harder_questions_never_get_fewer_calls(d: float, e: float, kappa: float) -> None:
    low, high = sorted((d, e))
    few, many = calls_at(np.array([low, high]), kappa)
    assert few <= many
    assert (calls_at(np.array([d]), kappa) <= calls_at(np.array([d]), kappa / 2)).all()
    assert hardest(np.array([d])) <= d + 1e-12


def test_the_second_edge_has_a_fixed_multiple_of_the_first_ones_odds() -> None:
    for kappa in (0.05, 0.3, 0.6):
        odds = ODDS * kappa / (1 - kappa)
        edge = odds / (1 + odds)
        below, above = np.array([edge - 1e-6]), np.array([edge + 1e-6])
        assert [int(calls_at(d, kappa)[0]) for d in (below, above)] == [2, 6]


@cache
def questions(n: int = 300) -> TraceArrays:
    traces = generate(preset("hotpotqa-llama2-7b").config, n, np.random.default_rng(3))
    return replace(traces, independent=np.ones(n, dtype=bool))


@cache
def trained(learner: OdarLearner = ODAR) -> OdarPolicy:
    policy = learner.fit(questions(), Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, OdarPolicy)
    return policy


def difficulty(policy: OdarPolicy, traces: TraceArrays) -> FloatArray:
    first = np.zeros((len(traces), traces.horizon * traces.n_roles), dtype=bool)
    first[:, policy.order[0]] = True
    seen = policy.features.look(traces, np.arange(len(traces)), first)
    return policy.difficulty.of(seen, None)


@pytest.mark.parametrize("kappa", [0.3, 0.05, 0.5, 0.9])
def test_what_it_costs_is_the_sum_over_calls_of_shares_times_prices(kappa: float) -> None:
    """By hand: a share p_i of the questions makes the first i calls of the order, i in 1, 2, 6."""
    policy, traces = trained(), questions()
    calls = calls_at(difficulty(policy, traces), kappa)
    assert set(calls) <= {1, 2, MOST}
    price = traces.cost_nano.reshape(len(traces), -1)
    count = np.zeros(traces.n_roles, dtype=int)
    cell = []
    for line in policy.order:
        cell.append(count[line] * traces.n_roles + line)
        count[line] += 1
    by_hand = np.array([price[i, cell[: calls[i]]].sum() for i in range(len(traces))])
    replayed = replay(policy, traces)
    assert isinstance(replayed, NestedReplay)
    done = replayed.act(kappa)
    np.testing.assert_array_equal(done.length, calls)
    np.testing.assert_array_equal(done.cost_nano, by_hand)
    shares = {i: Fraction(int((calls == i).sum()), len(traces)) for i in (1, 2, MOST)}
    mean = sum(
        p * Fraction(int(by_hand[calls == i].sum()), max(int((calls == i).sum()), 1))
        for i, p in shares.items()
    )
    assert mean * len(traces) == int(done.cost_nano.sum())
    played = outcome_of(play(policy, traces, kappa))
    np.testing.assert_array_equal(played.cost_nano, done.cost_nano)
    np.testing.assert_array_equal(played.best_correct, done.best_correct)


def test_all_answers_that_were_paid_for_are_in_the_set() -> None:
    traces = questions()
    for kappa in (0.3, 0.9, 1 - 4 * NEARLY):
        done = replay(trained(ODAR_RECHECK), traces).act(kappa)
        np.testing.assert_array_equal(done.set_size_leaves, done.length)


def test_the_check_changes_what_is_spent_after_it_and_nothing_before() -> None:
    traces = questions()
    once, again = (replay(trained(each), traces).act(0.3) for each in (ODAR, ODAR_RECHECK))
    assert (once.length != again.length).any()


def test_the_answer_of_least_energy_is_given_where_tokens_are_recorded() -> None:
    """Of six replies the likeliest, at lambda = 0; with a large lambda the most even one."""
    traces = questions()
    rng = np.random.default_rng(5)
    shape = traces.answer.shape
    told = rng.exponential(20.0, shape).astype(np.float32)
    spread = rng.exponential(1.0, shape).astype(np.float32)
    signals = dict(traces.signals) | {"surprisal": told, "varentropy": spread}
    traces = replace(traces, signals=signals)
    flat = traces.answer.reshape(len(traces), -1)
    for weight in (0.0, 1_000.0):
        fitted = OdarLearner(weight=weight).fit(traces, Fraction(1, 10), 0, Silent())
        played = play(fitted.policy, traces, 1e-9)  # everything but the calls beyond the sixth
        energy = (told + np.float64(weight) * spread).reshape(len(traces), -1)
        made = played.state.known & (flat >= 0)
        assert made.sum(axis=1).max() == MOST
        np.testing.assert_array_equal(played.best, np.where(made, energy, np.inf).argmin(axis=1))


def test_nobody_takes_part_where_calls_saw_each_other() -> None:
    traces = generate(preset("hotpotqa-llama2-7b").config, 5, np.random.default_rng(0))
    (variant,) = card("odar").on(Dataset("generated", traces))
    assert variant.learner is None
    assert "none can be skipped" in variant.note
