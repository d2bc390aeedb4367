"""The network, block by block, against the formula for all at once."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.features.rounds import FeatureSet
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo import policy as network
from farthing_lab.methods.ccpo.policy import NetworkPolicy, softmax


@cache
def questions() -> TraceArrays:
    return generate(preset("hotpotqa-llama2-7b").config, 500, np.random.default_rng(0))


@pytest.fixture
def traces() -> TraceArrays:
    return questions()


@pytest.fixture
def policy(traces: TraceArrays) -> NetworkPolicy:
    return network_for(traces)


def network_for(traces: TraceArrays) -> NetworkPolicy:
    rng = np.random.default_rng(1)
    features = FeatureSet.fit(traces)
    sizes = [len(features.names), 64, 64, 64, traces.n_roles + 1]
    weights = [rng.normal(0, 2 * a**-0.5, (a, b)) for a, b in pairwise(sizes)]
    return NetworkPolicy(features, weights, [rng.normal(size=size) for size in sizes[1:]])


def all_at_once(policy: NetworkPolicy, traces: TraceArrays) -> FloatArray:
    hidden = policy.features.transform(traces)
    for weight, bias in zip(policy.weights[:-1], policy.biases[:-1], strict=True):
        hidden = np.tanh(hidden @ weight + bias)
    logits = hidden @ policy.weights[-1] + policy.biases[-1]
    logits[:, -1, -1] = -np.inf
    return softmax(logits)


@pytest.mark.parametrize("block", [1, 7, 250, 500, 2048])
def test_scores_are_the_formula_whatever_the_block(
    policy: NetworkPolicy, traces: TraceArrays, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(network, "BLOCK", block)
    expected = all_at_once(policy, traces)
    assert expected.std() > 0.2  # else closeness would say little
    np.testing.assert_allclose(policy.scores(traces), expected, rtol=0, atol=1e-12)


@pytest.mark.slow
@given(st.integers(0, 499), st.integers(1, 40), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_a_question_alone_scores_to_the_bit_what_it_scores_among_many(
    first: int, n: int, rounds: int
) -> None:
    """Also after some rounds only, as live; else an answer could differ from its replay."""
    traces = questions()
    policy = network_for(traces)
    few = traces.rows(slice(first, first + n))
    among = policy.scores(traces)[first : first + n]
    np.testing.assert_array_equal(policy.scores(few), among)
    early = replace(
        few,
        answer=few.answer[:, :rounds],
        correct=few.correct[:, :rounds],
        cost_nano=few.cost_nano[:, :rounds],
        made=few.made[:, :rounds],
        signals={name: values[:, :rounds] for name, values in few.signals.items()},
        recorded=np.minimum(few.recorded, rounds).astype(np.int16),
    )
    np.testing.assert_array_equal(policy.scores(early)[:, : rounds - 1], among[:, : rounds - 1])


def test_no_question_has_no_scores(policy: NetworkPolicy, traces: TraceArrays) -> None:
    assert policy.scores(traces.take(np.arange(0))).shape == (0, 4, 3)
