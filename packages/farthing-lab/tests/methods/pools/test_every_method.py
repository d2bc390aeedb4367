"""What holds for every method over a pool: money, what a decision may see, seeds, the limit."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from farthing.errors import InputError
from farthing.methods.base import Silent
from farthing.methods.pool import PoolPolicy, frontier
from farthing.process.operating_points import OperatingPoints
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.comparison.pools import foresight, methods_of
from farthing_lab.methods.cascades.model_thresholds import (
    MicpLearner,
    TrustOrEscalateLearner,
    TurnsPolicy,
)

N, L = 600, 4
PRICE = np.array([1, 2, 4, 8]) * 10**6


def pool(n: int = N, seed: int = 0) -> TraceArrays:
    """Four models whose prices are powers of two, so that a total names the calls in it.

    Easy questions (their texts say so) are solved by all; on hard ones only the last model is
    good. A model is confident where it is right, mostly.
    """
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    skill = np.where(hard[:, None], [0.25, 0.3, 0.4, 0.9], [0.8, 0.9, 0.95, 0.97])
    right = rng.random((n, L)) < skill
    wrong = rng.integers(1, 4, size=(n, L))
    confidence = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.1, (n, L)), 0.02, 0.98)
    return TraceArrays(
        ids=np.array([f"{seed}-{i}" for i in range(n)]),
        roles=tuple("abcd"),
        models=tuple("abcd"),
        answer=np.where(right, 0, wrong)[:, None, :].astype(np.int16),
        correct=right[:, None, :],
        cost_nano=np.tile(PRICE, (n, 1))[:, None, :],
        signals={"confidence": confidence[:, None, :].astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        question=np.where(hard, "prove the theorem", "name the capital").astype(object),
    )


TRAIN, TEST = pool(seed=0), pool(seed=1)
LEARNERS = methods_of(None)
every_method = pytest.mark.parametrize("name", LEARNERS)


def fitted(name: str, train: TraceArrays) -> PoolPolicy:
    policy = LEARNERS[name].fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, PoolPolicy)
    return policy


@cache
def policy_of(name: str) -> PoolPolicy:
    return fitted(name, TRAIN)


@cache
def points_of(name: str) -> OperatingPoints:
    return policy_of(name).points(TEST)


def calls_made(points: OperatingPoints) -> np.ndarray:
    """[n, G, L] read from the price, which only one set of calls can have."""
    return np.asarray((points.cost_nano[:, :, None] // PRICE) % 2 == 1)


@every_method
def test_the_price_is_that_of_calls_that_gave_the_answer(name: str) -> None:
    points = points_of(name)
    made = calls_made(points)
    for i in range(0, N, 37):
        for g in range(points.n_points):
            paid = [m for m in range(L) if made[i, g, m]]
            assert points.cost_nano[i, g] == sum(int(PRICE[m]) for m in paid)
            assert points.covered[i, g] == any(TEST.correct[i, 0, m] for m in paid)
            assert points.covered[i, g] or not points.correct[i, g]
            assert points.answered[i, g]


def quiet(traces: TraceArrays) -> TraceArrays:
    """The same questions; many replies hold no answer."""
    silent = np.random.default_rng(8).random(traces.answer.shape) < 0.4
    answer = np.where(silent, NO_ANSWER, traces.answer).astype(np.int16)
    return TraceArrays(**{**vars(traces), "answer": answer, "correct": traces.correct & ~silent})


@every_method
@pytest.mark.parametrize("test", [TEST, quiet(TEST)], ids=["answers", "silences"])
def test_no_decision_sees_a_call_that_was_not_made(name: str, test: TraceArrays) -> None:
    policy = policy_of(name)
    points = policy.points(test)
    rng = np.random.default_rng(5)
    for g in range(0, points.n_points, max(points.n_points // 4, 1)):
        unmade = ~calls_made(points)[:, g][:, None, :]
        other = rng.integers(0, 4, test.answer.shape)
        changed = TraceArrays(
            **{
                **vars(test),
                "answer": np.where(unmade, other, test.answer).astype(np.int16),
                "correct": np.where(unmade, other == 0, test.correct),
                "signals": {
                    "confidence": np.where(
                        unmade, rng.random(unmade.shape), test.signals["confidence"]
                    ).astype(np.float32)
                },
            }
        )
        again = policy.points(changed)
        np.testing.assert_array_equal(again.cost_nano[:, g], points.cost_nano[:, g])
        np.testing.assert_array_equal(again.correct[:, g], points.correct[:, g])


@every_method
def test_no_method_beats_foresight(name: str) -> None:
    price = np.where(TEST.correct[:, 0], PRICE, 2**60).min(axis=1)
    cheapest = np.concatenate([[0], np.cumsum(np.sort(price[price < 2**60]))])
    points = points_of(name)
    for g in range(points.n_points):
        assert points.cost_nano[:, g].sum() >= cheapest[points.correct[:, g].sum()]


def test_foresight_is_on_that_limit() -> None:
    points = foresight(TRAIN, TEST)
    price = np.where(TEST.correct[:, 0], PRICE, 2**60).min(axis=1)
    cheapest = np.concatenate([[0], np.cumsum(np.sort(price[price < 2**60]))])
    for g in range(points.n_points):
        assert points.cost_nano[:, g].sum() == cheapest[points.correct[:, g].sum()]
    np.testing.assert_array_equal(points.correct[:, -1], TEST.solvable)


@every_method
def test_a_seed_makes_the_same_points_again(name: str) -> None:
    again, points = fitted(name, TRAIN).points(TEST), points_of(name)
    np.testing.assert_array_equal(again.values, points.values)
    np.testing.assert_array_equal(again.cost_nano, points.cost_nano)
    np.testing.assert_array_equal(again.correct, points.correct)


@every_method
def test_a_question_is_answered_as_it_would_be_alone(name: str) -> None:
    points, alone = points_of(name), policy_of(name).points(TEST.take(np.array([7])))
    np.testing.assert_array_equal(alone.cost_nano[0], points.cost_nano[7])
    np.testing.assert_array_equal(alone.correct[0], points.correct[7])


NO_SAVING = {"Always all", "Always one model", "Best single model", "Agreement cascade"}
"""Who asks one model, or all; and who asks two or three of them first, which cost up to 7 of 8."""


@pytest.mark.parametrize(
    "name",
    [n for n in LEARNERS if n not in NO_SAVING],
)
def test_confidence_or_difficulty_saves_money_at_the_best_models_accuracy(name: str) -> None:
    """The planted pool: the last model alone costs 8 and is right on about 0.93."""
    points = points_of(name)
    cost, right = points.cost_nano.mean(axis=0) / 10**6, points.correct.mean(axis=0)
    near = right >= TEST.correct[:, 0, 3].mean() - 0.05
    assert cost[near].min() < 7.0


@every_method
def test_rounds_are_refused(name: str) -> None:
    two = TraceArrays(
        **{
            **vars(TRAIN),
            "answer": np.repeat(TRAIN.answer, 2, axis=1),
            "correct": np.repeat(TRAIN.correct, 2, axis=1),
            "cost_nano": np.repeat(TRAIN.cost_nano, 2, axis=1),
            "made": np.repeat(TRAIN.made, 2, axis=1),
        }
    )
    with pytest.raises(InputError, match="pool"):
        fitted(name, two)


def test_a_missing_call_is_unknown_and_never_played() -> None:
    lacking = replace(TEST, made=np.broadcast_to(np.arange(L) != 3, TEST.made.shape))
    with pytest.raises(InputError, match=f"{N} of {N} questions lack calls"):
        policy_of("Always all").points(lacking)


def test_the_frontier_against_a_slow_look() -> None:
    rng = np.random.default_rng(3)
    cost, gain = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    kept = frontier(cost, gain)
    assert (np.diff(cost[kept]) > 0).all()
    for i in range(40):
        assert any(cost[k] <= cost[i] and gain[k] >= gain[i] for k in kept)


def only(traces: TraceArrays, models: int) -> TraceArrays:
    """The first models alone, without any signal."""
    return TraceArrays(
        **{
            **vars(traces),
            "roles": traces.roles[:models],
            "models": traces.models[:models],
            "answer": traces.answer[:, :, :models],
            "correct": traces.correct[:, :, :models],
            "cost_nano": traces.cost_nano[:, :, :models],
            "made": traces.made[:, :, :models],
            "signals": {},
        }
    )


@every_method
@pytest.mark.parametrize("models", [1, 2])
def test_small_pools_without_signals_are_no_obstacle(name: str, models: int) -> None:
    points = fitted(name, only(TRAIN, models)).points(only(TEST, models))
    assert points.n_points > 0
    assert (points.cost_nano <= PRICE[:models].sum()).all()
    assert points.answered.all()


@every_method
def test_models_that_are_always_right_are_no_obstacle(name: str) -> None:
    perfect = TraceArrays(
        **{
            **vars(TRAIN),
            "answer": np.zeros_like(TRAIN.answer),
            "correct": np.ones_like(TRAIN.correct),
        }
    )
    points = fitted(name, perfect).points(TEST)
    assert (points.cost_nano.sum(axis=1) > 0).all()


def test_micp_spends_its_budgets_to_the_last_question() -> None:
    """With 58 questions and a next one, budgets of k / 118 are whole numbers for every other k.

    As binary fractions some of them fall just short of it.
    """
    train = pool(58)
    turns = MicpLearner().fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(turns, TurnsPolicy)
    score = turns.scorers.p_right(train)[:, turns.models[0]]
    wrong = np.sort(score[~train.correct[:, 0, turns.models[0]]])[::-1]
    assert len(turns.values) == 60
    for k, threshold in zip(range(59, -1, -1), turns.thresholds[:, 0], strict=True):
        allowed = k // (2 * (len(turns.models) - 1)) - 1  # the next question is one of them
        assert (wrong >= threshold).sum() == np.clip(allowed, 0, len(wrong))


@pytest.mark.slow
def test_the_levels_of_trust_are_exact() -> None:
    """Each is the number nearest to its fraction, and at 0 nobody is trusted."""
    turns = TrustOrEscalateLearner().fit(TRAIN, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(turns, TurnsPolicy)
    np.testing.assert_array_equal(turns.values, [3 * k / 295 for k in range(59, -1, -1)])
    assert np.isinf(turns.thresholds[-1]).all()
