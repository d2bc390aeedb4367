"""How long calls take: by hand, and of what is played."""

from dataclasses import replace

import numpy as np
from examples import random_traces

from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.process import latency
from farthing.process.batch_replay import NestedReplay, replay
from farthing.process.operating_points import of_calls
from farthing.process.replay import ReplayOutcome
from farthing.traces.arrays import TraceArrays
from farthing_lab.methods.baselines.rounds import RandomPolicy


def timed(traces: TraceArrays, seconds: np.ndarray) -> TraceArrays:
    every = np.zeros_like(traces.answer)
    return replace(
        traces,
        answer=every,
        signals={"latency_s": np.broadcast_to(seconds, every.shape).astype(np.float32)},
    )


ROUNDS = timed(random_traces(0, 3, ("base", "guide"), n=2), np.array([[1, 2], [4, 8], [16, 32]]))
ROUNDS = replace(ROUNDS, independent=np.array([False, True]))
POOL = timed(random_traces(0, 1, ("a", "b", "c"), n=2), np.array([[1, 2, 4]]))


def test_calls_that_saw_others_wait_and_others_do_not() -> None:
    """Of a dialogue the guide is asked after the base; of independent calls both at once."""
    for depth, dialogue, at_once in ((1, 3, 2), (2, 15, 10), (3, 63, 42)):
        found = replay(FixedDepthPolicy(depth), ROUNDS).act(1.0)
        assert found.latency_s is not None
        assert found.latency_s.tolist() == [dialogue, at_once]


def test_what_is_drawn_takes_as_long_as_the_rounds_that_were_run() -> None:
    played = replay(RandomPolicy(), ROUNDS.take(np.zeros(200, dtype=np.int64)))
    assert isinstance(played, NestedReplay)
    found = played.draw(np.random.default_rng(0))
    assert found.latency_s is not None
    np.testing.assert_array_equal(found.latency_s, np.array([0, 3, 15, 63])[found.length])
    assert len(np.unique(found.length)) == 3


def test_a_pool_is_asked_one_after_another() -> None:
    made = np.array([[[True, False, True], [False, True, False]]] * 2)
    points = of_calls(POOL, np.arange(2.0), made, np.zeros((2, 2), dtype=np.int64))
    assert points.latency_s is not None
    assert points.latency_s.tolist() == [[5, 2], [5, 2]]
    kept = points.keep(np.array([1])).take(np.array([0])).latency_s
    assert kept is not None
    assert kept.tolist() == [[2]]


def test_a_call_without_a_latency_leaves_its_question_unknown_if_it_was_made() -> None:
    seconds = POOL.signals["latency_s"].copy()
    seconds[0, 0, 1] = np.nan
    lacking = replace(POOL, signals={"latency_s": seconds})
    made = np.array([[[True, True, False], [True, False, True]]] * 2)
    points = of_calls(lacking, np.arange(2.0), made, np.zeros((2, 2), dtype=np.int64))
    np.testing.assert_array_equal(points.latency_s, [[np.nan, 5], [3, 5]])


def test_what_was_never_recorded_is_none() -> None:
    bare = replace(ROUNDS, signals={})
    assert latency.of_purchases(bare, np.zeros((2, 1, 1), dtype=np.int64)) is None
    found = replay(FixedDepthPolicy(1), bare).act(1.0)
    assert found.latency_s is None
    timed_too = replay(FixedDepthPolicy(1), ROUNDS).act(1.0)
    assert found.take(np.array([0])).latency_s is None
    assert ReplayOutcome.joined([found, timed_too]).latency_s is None
    assert ReplayOutcome.joined([timed_too, timed_too]).latency_s is not None
