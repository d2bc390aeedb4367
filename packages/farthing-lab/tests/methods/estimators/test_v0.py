"""V_0 against the truth, and its parts against slow computations."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from item_responses import World, joiner, pool
from scipy.optimize import approx_fprime, minimize

from farthing.traces.arrays import FloatArray
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.estimators import v0
from farthing_lab.methods.estimators.base import OutcomeHistory
from farthing_lab.methods.estimators.v0 import (
    Directions,
    GradedOutcomes,
    ItemResponse,
    V0Estimator,
    ability,
    flattened,
    sigmoid,
)

WORLD = World.drawn(11)


@pytest.fixture(scope="module")
def found() -> ItemResponse:
    return V0Estimator(tried=((2, 10.0),)).fit(pool(WORLD, 800, 10, seed=12), 0)


def excess(found: ItemResponse, outcomes: tuple[int, ...], models: int) -> np.ndarray:
    """Return mean nats lost beyond the truth's own, for each number of outcomes."""
    rng, lost = np.random.default_rng(13), []
    for _ in range(models):
        true, known = joiner(WORLD, max(outcomes), rng)
        asked, z, _ = WORLD.questions(300, rng)
        p = WORLD.truth(true, z)
        each = [found.success(known.take(np.arange(n)), asked) for n in outcomes]
        lost.append(
            [(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean() for q in each]
        )
    return np.asarray(np.mean(lost, axis=0))


@pytest.mark.slow
def test_its_log_loss_comes_near_the_truth_as_outcomes_grow(found: ItemResponse) -> None:
    """In nats beyond what the known probabilities lose, over 30 models that join."""
    none, ten, fifty, many = excess(found, (0, 10, 50, 400), 30)
    assert none > ten > fifty > many
    assert many < 0.4 * none


@pytest.mark.slow
def test_ten_outcomes_on_known_questions_say_more_than_on_new_ones(
    found: ItemResponse,
) -> None:
    """Since what those have of their own is known from the others' outcomes."""
    rng, lost = np.random.default_rng(14), []
    train = pool(WORLD, 800, 10, seed=12)
    rng_train = np.random.default_rng(12)
    asked, z, own = WORLD.questions(800, rng_train)
    assert asked.text == QuestionFeatures.of(train).text
    for _ in range(60):
        true = WORLD.abilities(1, rng)[0]
        rows = rng.choice(800, 10, replace=False)
        right = rng.random(10) < 1 / (1 + np.exp(-(z[rows] @ true + own[rows])))
        texts = tuple(asked.text[i] for i in rows)
        known = OutcomeHistory(QuestionFeatures(texts, ("",) * 10), right)
        strange = OutcomeHistory(
            QuestionFeatures(tuple(f"{text} " for text in texts), ("",) * 10), right
        )
        new, coordinates, _ = WORLD.questions(300, rng)
        p = WORLD.truth(true, coordinates)
        lost.append([((found.success(one, new) - p) ** 2).mean() for one in (known, strange)])
    with_own, without = np.mean(lost, axis=0)
    assert with_own < without


def test_the_ability_is_the_mode_that_a_general_optimiser_finds() -> None:
    rng = np.random.default_rng(15)
    for _ in range(20):
        k, n = int(rng.integers(1, 5)), int(rng.integers(0, 40))
        z, offset, scale = rng.normal(size=(n, k)), rng.normal(size=n), rng.uniform(0.3, 1, n)
        right, root = rng.random(n) < 0.5, rng.normal(size=(k, k))
        mean, spread = rng.normal(size=k), root @ root.T + np.eye(k)
        prior = Directions(np.zeros((1, k - 1)), (), mean, spread, 1.0)
        got = ability(z, offset, scale, right, prior)
        minus = partial(minus_log_posterior, (z, offset, scale, right), prior)
        best = minimize(minus, mean, tol=1e-9)
        assert minus(got.mode) <= best.fun + 1e-8
        np.testing.assert_allclose(approx_fprime(got.mode, minus, 1e-7), 0, atol=1e-4)
        p = sigmoid(scale * (z @ got.mode + offset))
        curvature = np.linalg.inv(spread)
        for i in range(n):
            curvature = curvature + scale[i] ** 2 * p[i] * (1 - p[i]) * np.outer(z[i], z[i])
        np.testing.assert_allclose(got.spread @ curvature, np.eye(k), atol=1e-7)


def minus_log_posterior(given: tuple[Any, ...], prior: Directions, at: FloatArray) -> float:
    z, offset, scale, right = given
    lost = 0.0
    for i in range(len(z)):
        p = 1 / (1 + np.exp(-scale[i] * (z[i] @ at + offset[i])))
        lost -= np.log(p if right[i] else 1 - p)
    away = at - prior.mean
    return float(lost + 0.5 * away @ np.linalg.solve(prior.spread, away))


def test_the_gradient_of_what_is_learned() -> None:
    rng = np.random.default_rng(16)
    lesson = GradedOutcomes(
        rng.normal(size=(7, 4)), rng.random((7, 3)) < 0.8, rng.random((7, 3)) < 0.5
    )
    shapes: v0.Shapes = (3, 3), (4, 2), (7,)
    at = rng.normal(size=9 + 8 + 7)

    def value(x: FloatArray) -> float:
        return v0._penalised(x, lesson, shapes, 2.0, 0.7)[0]

    got = v0._penalised(at, lesson, shapes, 2.0, 0.7)[1]
    np.testing.assert_allclose(got, approx_fprime(at, value, 1e-6), atol=1e-4)


def test_flattening_is_near_the_mean_of_the_sigmoid() -> None:
    draws = np.random.default_rng(17).normal(size=200_000)
    for mean, variance in ((0.0, 4.0), (1.0, 1.0), (-2.0, 3.0)):
        exact = sigmoid(mean + np.sqrt(variance) * draws).mean()
        assert sigmoid(mean * flattened(variance)) == pytest.approx(exact, abs=0.015)


@pytest.mark.slow
def test_the_interval_of_its_accuracy_holds_the_truth(found: ItemResponse) -> None:
    """Of 90 % intervals by 50 outcomes, of 100 models that join, on 400 questions."""
    rng, held = np.random.default_rng(18), 0
    for _ in range(100):
        true, known = joiner(WORLD, 50, rng)
        asked, z, _ = WORLD.questions(400, rng)
        draws = rng.normal(size=(400, 3))
        low, high = np.quantile(found.accuracy(found.ability(known), asked, draws), [0.05, 0.95])
        held += int(low <= WORLD.truth(true, z).mean() <= high)
    assert held >= 80
