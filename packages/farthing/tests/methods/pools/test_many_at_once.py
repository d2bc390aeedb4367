"""Every method over a pool: call by call as many at once, in a bundle as in memory."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.bundle import folder as bundles
from farthing.errors import InputError
from farthing.methods.base import Saveable, Silent, load
from farthing.methods.cards import card, cards
from farthing.process.base import Budget, Policy
from farthing.process.batch_replay import PointReplay, Pointwise, replay
from farthing.process.play import outcome_of, play
from farthing.process.replay import ReplayOutcome
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.system import origin_of

NAMES = [one.name for one in cards() if one.space == "pool"]
every_method = pytest.mark.parametrize("name", NAMES)
L = 4


def pool(n: int, seed: int, *, failing: bool = True) -> TraceArrays:
    """Models whose prices rise; some calls say nothing, and some fail at no cost."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    skill = np.where(hard[:, None], [0.25, 0.3, 0.4, 0.9], [0.8, 0.9, 0.95, 0.97])
    right = rng.random((n, L)) < skill
    answer = np.where(right, 0, rng.integers(1, 4, (n, L)))[:, None].astype(np.int16)
    confidence = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.1, (n, L)), 0.02, 0.98)
    confidence = confidence[:, None]
    cost = (np.array([1, 2, 4, 8]) * 10**6 + rng.integers(0, 10**5, (n, 1, L))).astype(np.int64)
    if failing:
        answer[rng.random(answer.shape) < 0.1] = NO_ANSWER
        failed = rng.random(answer.shape) < 0.1
        answer[failed], cost[failed], confidence[failed] = NO_ANSWER, 0, np.nan
    words = np.where(hard, "prove the theorem of", "what is the capital of")
    return TraceArrays(
        ids=np.array([f"{seed}-{i}" for i in range(n)]),
        roles=tuple("abcd"),
        models=tuple("abcd"),
        answer=answer,
        correct=answer == 0,
        cost_nano=cost,
        signals={"confidence": confidence.astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        question=np.array([f"{w} item {i}?" for i, w in enumerate(words)], dtype=object),
    )


TRAIN = pool(160, 0, failing=False)


@cache
def trained(name: str) -> Policy:
    policy: Policy = load(card(name).learner).fit(TRAIN, Fraction(1, 10), 0, Silent()).policy
    return policy


def assert_same(one: ReplayOutcome, other: ReplayOutcome) -> None:
    for name in ("cost_nano", "in_set", "covered", "best_correct", "length", "set_size"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@every_method
def test_it_makes_the_policies_that_its_card_names(name: str) -> None:
    policy = trained(name)
    assert type(policy) is load(card(name).policy)
    assert isinstance(policy, Saveable)
    assert isinstance(policy, Pointwise)
    assert policy.parameters is not None
    assert policy.parameters[0] == 1.0
    assert (np.diff(policy.parameters) < 0).all()


@every_method
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(1, 2**20), failing=st.booleans(), data=st.data())
def test_call_by_call_is_as_many_at_once(
    name: str, seed: int, failing: bool, data: st.DataObject
) -> None:
    policy, traces = trained(name), pool(12, seed, failing=failing)
    assert policy.parameters is not None
    kappa = data.draw(st.sampled_from([*policy.parameters.tolist(), 0.0]))
    replayed = replay(policy, traces, "allow")
    assert isinstance(replayed, PointReplay)
    assert_same(replayed.act(kappa), outcome_of(play(policy, traces, kappa, "allow")))
    alone = [outcome_of(play(policy, traces.take(np.array([i])), kappa, "allow")) for i in (0, 5)]
    among = replayed.act(kappa).take(np.array([0, 5]))
    assert_same(ReplayOutcome.joined(alone), among)


@every_method
def test_a_question_is_covered_from_its_critical_parameter_on(name: str) -> None:
    policy, traces = trained(name), pool(40, 77)
    replayed = replay(policy, traces, "allow")
    assert policy.parameters is not None
    solvable = traces.solvable
    for kappa in [*policy.parameters.tolist(), 0.0]:
        covered = replayed.act(kappa).covered
        assert covered[replayed.critical >= kappa].all()
    assert np.isinf(replayed.critical[~solvable]).all()
    assert (replayed.critical[solvable] >= 0).all()


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("n", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_a_budget_is_never_passed(name: str, n: int) -> None:
    policy, traces = trained(name), pool(n, 5)
    largest = np.tile(np.array([2, 3, 5, 9]) * 10**6, (len(traces), 1))
    for nano in (10**6, 4 * 10**6, 10**7, 2 * 10**7):
        budget = Budget(nano, largest)
        replayed = replay(policy, traces, "allow", budget)
        assert policy.parameters is not None
        for kappa in (1.0, float(policy.parameters[-1]), 0.0):
            found = replayed.act(kappa)
            assert (found.cost_nano <= nano).all()
            assert_same(found, outcome_of(play(policy, traces, kappa, "allow", budget)))


@every_method
def test_a_bundle_decides_the_same(name: str, tmp_path: Path) -> None:
    policy, traces = trained(name), pool(40, 9)
    assert isinstance(policy, Saveable)
    bundles.save(tmp_path / "bundle", policy, origin=origin_of(TRAIN, "f" * 64), empty="allow")
    found = bundles.load(tmp_path / "bundle")
    assert type(found.policy) is type(policy)
    again, before = replay(found.policy, traces, "allow"), replay(policy, traces, "allow")
    assert policy.parameters is not None
    for kappa in policy.parameters.tolist():
        assert_same(again.act(kappa), before.act(kappa))


@every_method
@settings(deadline=None, max_examples=3)
@given(seed=st.integers(1, 2**20))
def test_at_worst_is_no_better_than_whatever_the_missing_calls_would_have_said(
    name: str, seed: int
) -> None:
    """A policy decides as if nothing were missing; where it needs what is, it loses."""
    rng = np.random.default_rng(seed)
    policy, whole = trained(name), pool(30, seed, failing=False)
    made = rng.random(whole.made.shape) < 0.7
    made[:, :, -1] = True
    lacking = replace(
        whole,
        made=made,
        answer=np.where(made, whole.answer, NO_ANSWER).astype(np.int16),
        correct=whole.correct & made,
        cost_nano=np.where(made, whole.cost_nano, 0),
        signals={"confidence": np.where(made, whole.signals["confidence"], np.nan)},
        at_worst=True,
    )
    with pytest.raises(InputError, match="lack calls"):
        replay(policy, replace(lacking, at_worst=False), "allow")
    worst = replay(policy, lacking, "allow")
    most = lacking.cost_nano.max(axis=0)
    for _ in range(3):
        answer = np.where(made, whole.answer, rng.integers(0, 4, made.shape)).astype(np.int16)
        cost = np.where(made, whole.cost_nano, rng.integers(0, most + 1, made.shape))
        said = np.where(made, whole.signals["confidence"], rng.random(made.shape))
        could_be = replay(
            policy,
            replace(
                whole,
                answer=answer,
                correct=answer == 0,
                cost_nano=cost,
                signals={"confidence": said.astype(np.float32)},
            ),
            "allow",
        )
        for kappa in worst.thresholds():
            least, other = worst.act(float(kappa)), could_be.act(float(kappa))
            assert (least.best_correct <= other.best_correct).all()
            assert (least.in_set <= other.in_set).all()
            assert (least.cost_nano >= other.cost_nano).all()
            assert not (least.covered & ~other.covered).any()
