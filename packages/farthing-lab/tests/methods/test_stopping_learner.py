"""Supervised stopping against loops, the stationarity of its loss, and the known optimum."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Silent
from farthing.process.base import InRounds
from farthing.process.batch_replay import followed
from farthing.process.replay import outcome, paths
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.generator.presets import preset
from farthing_lab.methods.stopping import StoppingLearner, _fit, still_to_gain

CONFIG = preset("hotpotqa-llama2-7b").config


def questions(n: int, seed: int) -> TraceArrays:
    return generate(CONFIG, n, np.random.default_rng(seed))


def test_labels_equal_a_loop_over_rounds() -> None:
    traces = questions(200, 0)
    found = still_to_gain(traces)
    for i in range(200):
        for t in range(traces.horizon - 1):
            so_far = traces.correct[i, : t + 1].any()
            later = traces.correct[i, t + 1 :].any()
            assert found[i, t] == (later and not so_far)


def test_weights_are_a_stationary_point_of_the_penalised_log_loss() -> None:
    """With shared weights w and deviations d_t: w + d_t are free, so nudge each round's logit."""
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(300, 2, 2))
    truth = np.array([[1.0, -0.5], [0.2, 0.8]])
    gains = rng.random((300, 2)) < 1 / (1 + np.exp(-(seen * truth).sum(axis=2)))
    strength = 1.0
    weights = _fit(seen, gains, strength)

    def loss(w: FloatArray) -> float:
        """Penalise the best split into shared weights, deviations and a free common intercept."""
        logit = (seen * w[:, :-1]).sum(axis=2) + w[:, -1]
        fit = np.logaddexp(0.0, np.where(gains, -logit, logit)).sum()
        slopes, constants = w[:, :-1], w[:, -1]
        # min over shared s of |s|^2 + sum_t |w_t - s|^2, at s = sum_t w_t / (T + 1)
        shared = slopes.sum(axis=0) / 3
        penalty = (shared**2).sum() + ((slopes - shared) ** 2).sum()
        # the model's own intercept is free of charge, so the shared constant is 0
        penalty += ((constants - constants.mean()) ** 2).sum()
        return float(fit + penalty / (2 * strength))

    best = loss(weights)
    for nudge in 1e-3 * np.eye(6).reshape(6, 2, 3):
        assert loss(weights + nudge) > best
        assert loss(weights - nudge) > best


def test_labels_that_are_all_alike_leave_only_the_base_rate() -> None:
    weights = _fit(np.ones((10, 3, 2)), np.zeros((10, 3), dtype=bool), 1.0)
    assert not weights[:, :-1].any()
    np.testing.assert_allclose(1 / (1 + np.exp(-weights[:, -1])), 0.5 / 31)


@pytest.mark.slow
def test_it_comes_close_to_the_optimum_of_the_generator() -> None:
    fitted = StoppingLearner().fit(questions(1_000, 0), Fraction(1, 10), 0, Silent())
    test = questions(20_000, 1)
    assert isinstance(fitted.policy, InRounds)
    then = paths(fitted.policy.scores(test), test)
    got = outcome(then, test, float(np.quantile(then.critical, 0.1, method="lower")))
    least = optimal_cost(CONFIG, float(got.covered.mean()))  # USD
    assert 0.98 * least < got.cost_nano.mean() / 1e9 < 1.1 * least


def test_the_same_seed_gives_the_same_policy() -> None:
    train, test = questions(100, 2), questions(50, 3)
    first, again = (
        followed(StoppingLearner().fit(train, Fraction(1, 10), 0, Silent()).policy, test).scores
        for _ in range(2)
    )
    assert first.tobytes() == again.tobytes()
