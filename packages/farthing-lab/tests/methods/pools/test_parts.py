"""The parts of single methods over a pool against slow or independent computations."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import binom

from farthing.methods import scorer
from farthing.methods.pool import PoolTables
from farthing.methods.routers import pool_gain
from farthing.methods.scorer import ReplyEvidence, logistic
from farthing_lab.methods.cascades import auto_mix, frugal_gpt, model_thresholds
from farthing_lab.methods.cascades.ucci import fit_isotonic


def questions(n: int, n_models: int, seed: int) -> tuple[PoolTables, np.ndarray]:
    rng = np.random.default_rng(seed)
    right = rng.random((n, n_models)) < np.linspace(0.4, 0.9, n_models)
    return PoolTables(right, rng.random((n, n_models)) + np.arange(n_models)), rng.random(
        right.shape
    )


def test_frugal_gpt_searches_as_a_loop_over_questions_would() -> None:
    pool, score = questions(50, 3, seed=1)
    models, thresholds, cost, gain = frugal_gpt._search(pool, score, (1, 0, 2))
    assert len(models) > 50
    for g in range(0, len(models), 7):
        paid, right = 0.0, 0
        for i in range(50):
            for place, model in enumerate((1, 0, 2)):
                paid += pool.cost[i, model]
                if place == 2 or score[i, model] >= thresholds[g, place]:
                    right += int(pool.right[i, model])
                    break
        assert cost[g] == pytest.approx(paid / 50)
        assert gain[g] == pytest.approx(right / 50)


def test_auto_mix_solves_its_pomdp_as_trying_every_plan_does() -> None:
    rng = np.random.default_rng(4)
    pool, _ = questions(80, 2, seed=2)
    chance = rng.dirichlet(np.ones(auto_mix.BINS), size=(2, 2)).transpose(0, 2, 1)  # [2, BINS, L]
    prices = np.array([0.0, 0.1, 0.4])
    value, _ = auto_mix._solve(pool, chance, (0, 1), prices)
    for g, price in enumerate(prices):
        best = -np.inf
        for plan in product((False, True), repeat=auto_mix.BINS):
            total = -price * pool.cost[:, 0].mean()
            for i in range(80):
                first, second = pool.right[i].astype(int)
                for seen in range(auto_mix.BINS):
                    p = chance[first, seen, 0] / 80
                    gain = second - price * pool.cost[:, 1].mean() if plan[seen] else first
                    total += p * gain
            best = max(best, total)
        assert value[g] == pytest.approx(best)


def test_micp_spends_each_budget_and_no_more() -> None:
    pool, score = questions(400, 3, seed=3)
    for total in (Fraction(1, 20), Fraction(1, 10), Fraction(3, 10)):
        budget = [total / 2, total / 2]
        found = model_thresholds._within_budgets(score, pool.right, budget)
        left = np.ones(400, dtype=bool)
        for turn in range(2):
            stops = left & (score[:, turn] >= found[turn])
            wrong = int((stops & ~pool.right[:, turn]).sum())
            assert wrong + 1 <= budget[turn] * 401
            lower = left & (score[:, turn] >= score[:, turn][score[:, turn] < found[turn]].max())
            more = int((lower & ~pool.right[:, turn]).sum())
            assert more in {wrong, wrong + 1}
            left &= ~stops


def test_trust_or_escalate_tests_with_the_exact_binomial_distribution() -> None:
    tenth, fifth = Fraction(1, 10), Fraction(1, 5)
    for wrong, n, alpha in ((0, 20, tenth), (3, 50, tenth), (7, 60, fifth)):
        expected = binom.cdf(wrong, n, float(alpha))
        assert model_thresholds._p_value(wrong, n, alpha) == pytest.approx(expected, rel=1e-7)


def test_trust_or_escalate_seldom_trusts_more_than_it_may() -> None:
    """The true error above the threshold exceeds alpha in at most delta of the fits."""
    rng = np.random.default_rng(0)
    alpha, too_low = Fraction(1, 5), 0
    for _ in range(400):
        score = rng.random(150)
        right = rng.random(150) < score  # error above t is (1 - t) / 2
        threshold = model_thresholds._lowest(score, right, alpha)
        too_low += threshold < 1 - 2 * alpha
    assert binom.sf(too_low - 1, 400, model_thresholds.DELTA) > 0.001
    assert too_low > 0


def test_isotonic_probabilities_rise_with_the_score_and_average_to_the_grades() -> None:
    pool, score = questions(200, 2, seed=6)
    fitted = fit_isotonic(score, pool).probability(score)
    np.testing.assert_allclose(fitted.mean(axis=0), pool.right.mean(axis=0))
    for m in range(2):
        assert (np.diff(fitted[np.argsort(score[:, m]), m]) >= -1e-12).all()


def test_the_leading_answers_gradient() -> None:
    rng = np.random.default_rng(7)
    answer = rng.integers(0, 3, size=(30, 4))
    says = answer[:, :, None] == np.arange(3)
    right = (rng.integers(0, 4, size=30)[:, None] == np.arange(3)) & says.any(axis=1)
    replies = ReplyEvidence(rng.normal(size=(30, 4)), says, right)
    asked = rng.random((30, 4)) < 0.6
    asked[:, 0] = True
    prior, weights = np.zeros(13), rng.normal(size=13)
    _, gradient = scorer._loss(weights, replies, asked, prior)

    def loss(at: np.ndarray) -> float:
        return scorer._loss(at, replies, asked, prior)[0]

    np.testing.assert_allclose(gradient, approx_fprime(weights, loss, 1e-6), rtol=1e-3, atol=1e-4)


def test_a_logistic_regression_with_one_kind_of_label_is_constant() -> None:
    weights = logistic(np.ones((9, 2)), np.ones(9, dtype=bool), 1.0)
    assert weights[:2].tolist() == [0.0, 0.0]
    assert weights[2] == pytest.approx(np.log(9.5 / 0.5))


def test_pool_gain_plans_as_a_loop_over_prices_does() -> None:
    rng = np.random.default_rng(6)
    n, k = 300, 3
    seen = tuple(np.c_[np.ones(n), rng.normal(size=(n, 2 + j))] for j in range(k - 1))
    lost = (rng.random((n, k)) < [0.3, 0.2, 0.0]).astype(float)
    cost = rng.random((n, k)) * [0.1, 0.3, 1.0]
    steps = pool_gain.Steps(seen, lost, np.zeros((n, k)), cost)
    fitted = pool_gain.weights(steps)
    stop = pool_gain.stops(steps, fitted)
    for g in (5, 25, 45):
        price = pool_gain.PRICES[g]
        value = -lost[:, -1]
        plan: list[np.ndarray] = []
        for j in (1, 0):
            going = value - price * cost[:, j + 1]
            pull = np.sqrt([1e-3, *[pool_gain.RIDGE] * (seen[j].shape[1] - 1)])
            wide = np.vstack([seen[j], np.diag(pull)])
            target = np.append(going + lost[:, j], np.zeros(len(pull)))
            weight = np.linalg.lstsq(wide, target, rcond=None)[0]
            np.testing.assert_allclose(fitted[j][:, g], weight, atol=1e-8)
            plan.insert(0, seen[j] @ weight > 0)
            value = np.where(plan[0], going, -lost[:, j])
        expected = np.where(~plan[0], 0, np.where(~plan[1], 1, 2))
        np.testing.assert_array_equal(stop[:, g], expected)
