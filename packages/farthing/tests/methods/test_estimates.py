"""What look-ahead is fitted with: leaves against loops over their cases, shares against a grid."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from farthing.methods.lookahead.estimates import best_share, grown


def model() -> ExtraTreesRegressor:
    return ExtraTreesRegressor(4, min_samples_leaf=3, random_state=0)


def test_where_every_target_is_known_it_is_scikit_learns_forest() -> None:
    rng = np.random.default_rng(0)
    seen, target = rng.random((80, 3)), rng.random((80, 2))
    forest = grown(seen, target, np.ones((80, 2), bool), model())
    expected = model().fit(seen, target).predict(seen)
    np.testing.assert_allclose(forest.predict(seen), expected, rtol=1e-12)


def test_a_leaf_predicts_the_mean_over_the_cases_that_know_the_target() -> None:
    rng = np.random.default_rng(1)
    seen, target, known = rng.random((80, 3)), rng.random((80, 3)), rng.random((80, 3)) < 0.4
    known[:, 2] = False  # a target that nobody knows is 0
    fitted = model()
    forest = grown(seen, np.where(known, target, 1e9), known, fitted)
    leaves = fitted.apply(seen)
    expected = np.zeros((80, 3))
    empty = 0
    for case, k in np.ndindex(80, 2):
        everywhere = target[known[:, k], k].mean()
        for tree in range(4):
            mine = known[:, k] & (leaves[:, tree] == leaves[case, tree])
            empty += not mine.any()
            expected[case, k] += (target[mine, k].mean() if mine.any() else everywhere) / 4
    assert empty
    np.testing.assert_allclose(forest.predict(seen), expected, rtol=1e-12)


@pytest.mark.parametrize("better", [0.2, 0.5, 0.8])
def test_the_best_share_is_the_likeliest_of_all(better: float) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.05, 0.95, (2, 400))
    first = np.where(rng.random(400) < better, 0.95, first)
    shares = np.linspace(0.001, 0.999, 999)[:, None]
    likely = np.log(shares * first + (1 - shares) * second).sum(axis=1)
    assert abs(best_share(first, second) - shares[likely.argmax(), 0]) < 0.01


def test_what_neither_model_expects_does_not_decide_between_them() -> None:
    first, second = np.array([0.0, 0.9]), np.array([0.0, 0.1])
    assert best_share(first, second) > 0.9
