"""The environment against Gymnasium's own checker, and against replay on the same actions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing.features.rounds import FeatureSet
from farthing.process.replay import outcome, paths, sample
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.rl.gymnasium_env import TraceEnv


def random_traces(seed: int, n: int, horizon: int, roles: int) -> TraceArrays:
    rng = np.random.default_rng(seed)
    shape = (n, horizon, roles)
    answer = rng.integers(NO_ANSWER, 3, shape).astype(np.int16)
    uncertainty = rng.random(shape).astype(np.float32)
    uncertainty[rng.random(shape) < 0.2] = np.nan
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=tuple(f"role{i}" for i in range(roles)),
        models=("",) * roles,
        answer=answer,
        correct=answer == rng.integers(0, 4, (n, 1, 1)),
        cost_nano=rng.integers(0, 10**6, shape),
        signals={"uncertainty": uncertainty},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.zeros(n, bool),
    )


def play(env: TraceEnv, question: int, actions: Sequence[int]) -> tuple[float, Mapping[str, Any]]:
    """Return the sum of rewards and the last info of one episode."""
    env.reset(options={"question": question})
    total = 0.0
    for action in actions:
        _, reward, over, cut_short, info = env.step(np.int64(action))
        total += float(reward)
        assert not cut_short
        if over:
            return total, info
    raise AssertionError("the episode did not end")


@pytest.mark.parametrize("name", ["hotpotqa-llama2-7b", "mmlu-llama3.2-3b"])
def test_it_passes_the_checker_of_gymnasium(name: str) -> None:
    traces = generate(preset(name).config, 50, np.random.default_rng(0))
    check_env(TraceEnv(traces, FeatureSet.fit(traces)), skip_render_check=True)


@pytest.mark.parametrize(("horizon", "roles"), [(1, 3), (4, 1), (2, 5)])
def test_it_passes_the_checker_on_other_shapes(horizon: int, roles: int) -> None:
    traces = random_traces(1, 30, horizon, roles)
    check_env(TraceEnv(traces, FeatureSet.fit(traces)), skip_render_check=True)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 8),
    horizon=st.integers(1, 5),
    roles=st.integers(1, 3),
)
def test_episodes_cost_and_answer_what_replay_says(
    seed: int, n: int, horizon: int, roles: int
) -> None:
    traces = random_traces(seed, n, horizon, roles)
    env = TraceEnv(traces, FeatureSet.fit(traces))
    rng = np.random.default_rng(seed + 1)
    go_on = rng.random((n, horizon)) < 0.5  # in the last round too, where it is impossible
    action = np.where(go_on, roles, rng.integers(0, roles, (n, horizon)))
    certain = (action[:, :, None] == np.arange(roles + 1)).astype(float)
    sampled = sample(certain, traces, rng)
    replayed = outcome(paths(certain, traces, empty="allow"), traces, kappa=1.0)
    for found in (sampled, replayed):
        for q in range(n):
            total, info = play(env, q, action[q].tolist())
            assert info["cost_nano"] == found.cost_nano[q]
            assert total == pytest.approx(-found.cost_nano[q] / 1e9, abs=1e-15)
            assert info["correct"] == found.in_set[q]
            assert info["covered"] == found.covered[q]
            assert info["round"] == found.length[q]
            assert info["question"] == traces.ids[q]


def test_it_shows_the_features_of_the_round_and_masks_next_in_the_last() -> None:
    traces = random_traces(5, 6, 3, 2)
    features = FeatureSet.fit(traces)
    expected = features.transform(traces).astype(np.float32)
    env = TraceEnv(traces, features)
    for q in range(6):
        seen, info = env.reset(options={"question": q})
        for t in range(3):
            np.testing.assert_array_equal(seen, expected[q, t])
            assert info["round"] == t + 1
            assert info["action_mask"].tolist() == [1, 1, int(t < 2)]
            assert env.action_space.sample(info["action_mask"]) in env.action_space
            seen, _, over, _, info = env.step(np.int64(2))
            assert over == (t == 2)


def test_the_seed_chooses_the_questions_and_all_are_chosen() -> None:
    traces = random_traces(2, 5, 2, 2)
    env = TraceEnv(traces, FeatureSet.fit(traces))
    drawn = []
    for _ in range(2):
        first = env.reset(seed=11)[1]["question"]
        drawn.append([first] + [env.reset()[1]["question"] for _ in range(60)])
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == set(traces.ids.tolist())


def test_what_is_shown_is_a_copy() -> None:
    traces = random_traces(2, 1, 1, 2)
    env = TraceEnv(traces, FeatureSet.fit(traces))
    seen, _ = env.reset()
    before = seen.copy()
    seen[:] = 99
    np.testing.assert_array_equal(env.reset()[0], before)


def test_what_it_refuses() -> None:
    traces = random_traces(3, 4, 2, 2)
    features = FeatureSet.fit(traces)
    env = TraceEnv(traces, features)
    with pytest.raises(InputError, match="no question 4; they are numbered 0 to 3"):
        env.reset(options={"question": 4})
    env.reset()
    with pytest.raises(InputError, match="no action 3; they are numbered 0 to 2"):
        env.step(3)
    with pytest.raises(InputError, match="these traces have none"):
        TraceEnv(traces.take(np.array([], np.int64)), features)
    traces.recorded[1] = 1
    with pytest.raises(InputError, match=r"1 of 4 questions were recorded in part.*complete"):
        TraceEnv(traces, features)
