"""V_0's router: the formula by a loop, the ends of beta, and a model that joins."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from item_responses import World, pool

from farthing.methods.base import Silent
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.methods.estimators.base import OutcomeHistory
from farthing_lab.methods.estimators.v0 import V0Estimator
from farthing_lab.methods.routers.v0 import V0Learner, V0Policy, chosen, router, with_one_more

WORLD = World.drawn(21)
TRAIN, TEST = pool(WORLD, 300, 4, seed=22), pool(WORLD, 100, 4, seed=23)
LEARNER = V0Learner(V0Estimator(tried=((2, 10.0),)))


def learned(train: TraceArrays) -> V0Policy:
    policy = LEARNER.fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, V0Policy)
    return policy


POLICY = learned(TRAIN)


def test_it_asks_whom_the_formula_names() -> None:
    rng = np.random.default_rng(24)
    for _ in range(300):
        n, models = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        success, cost = rng.random((n, models)), rng.random(models)
        offered = rng.random((n, models)) < 0.8
        offered[:, 0] = True
        beta = np.array([0.0, *np.sort(rng.random(3)), 1.0])
        got = chosen(success, cost, beta, offered)
        for i in range(n):
            can = [m for m in range(models) if offered[i, m]]
            for g, b in enumerate(beta.tolist()):
                score = {m: b * success[i, m] + (1 - b) * (1 - cost[m]) for m in can}
                assert score[int(got[i, g])] == pytest.approx(max(score.values()), abs=1e-8)
            assert got[i, 0] == min(can, key=lambda m: (cost[m], -success[i, m]))
            assert got[i, -1] == max(can, key=lambda m: success[i, m])


def test_beta_1_asks_the_likeliest_and_0_the_cheapest_and_more_never_costs_less() -> None:
    points = POLICY.points(TEST)
    assert POLICY.values[0] == 0.0
    assert POLICY.values[-1] == 1.0
    assert (points.cost_nano[:, 0] == TEST.cost_nano.min(axis=(1, 2))).all()
    likeliest = POLICY.success(TEST).argmax(axis=1)
    np.testing.assert_array_equal(
        points.cost_nano[:, -1], TEST.cost_nano[np.arange(len(TEST)), 0, likeliest]
    )
    assert (np.diff(points.cost_nano, axis=1) >= 0).all()


def test_a_model_joins_as_if_it_had_been_there() -> None:
    """With the same directions and outcomes; where nothing is learned again."""
    found = V0Estimator(tried=((2, 10.0),)).fit(TRAIN, 0)
    mean = TRAIN.cost_nano.mean(axis=(0, 1))
    whole = router(found, mean)
    first = router(replace(found, models=found.models[:3], abilities=found.abilities[:3]), mean[:3])
    joined = with_one_more(first, found.ability(OutcomeHistory.of(TRAIN, 3)), mean)
    np.testing.assert_array_equal(joined.success(TEST), whole.success(TEST))
    np.testing.assert_array_equal(joined.cost, whole.cost)


def test_a_model_with_a_few_calls_in_the_file_takes_part() -> None:
    """So a router is trained anew without asking the newcomer everything."""
    few = np.zeros(TRAIN.answer.shape, dtype=bool)
    few[:, :, :3], few[:30, :, 3] = True, True
    train = replace(
        TRAIN,
        answer=np.where(few, TRAIN.answer, NO_ANSWER).astype(np.int16),
        correct=TRAIN.correct & few,
        cost_nano=np.where(few, TRAIN.cost_nano, 0),
        made=few,
    )
    assert train.made[:, 0].sum(axis=0).tolist() == [300, 300, 300, 30]
    policy = learned(train)
    np.testing.assert_allclose(policy.cost, [1 / 8, 1 / 4, 1 / 2, 1])
    right = TRAIN.correct[:, 0, 3].mean()
    assert policy.success(TEST)[:, 3].mean() == pytest.approx(right, abs=0.12)
    assert policy.spread[3].trace() > 2 * policy.spread[0].trace()
