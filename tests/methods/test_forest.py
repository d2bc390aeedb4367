"""Forests put together predict the mean over all of their trees, in arrays and one at a time."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from farthing.methods.forest import Forest, Walker, joined
from farthing.methods.lookahead.estimates import exported
from farthing.traces.arrays import FloatArray


def grown(seed: int, trees: int, leaf: int) -> tuple[Forest, FloatArray]:
    """A forest of three outputs, and what scikit-learn's own predicts for 50 cases."""
    rng = np.random.default_rng(seed)
    model = ExtraTreesRegressor(trees, min_samples_leaf=leaf, random_state=seed)
    model.fit(rng.random((90, 4)), rng.random((90, 3)))
    return exported(model), model.predict(asked())


def asked() -> FloatArray:
    return np.random.default_rng(9).random((50, 4))


def test_forests_together_predict_the_mean_over_all_trees() -> None:
    parts = [(5, 3), (2, 20), (1, 90)]  # the last is a leaf and no more
    forests, expected = zip(*(grown(k, *part) for k, part in enumerate(parts)), strict=True)
    assert len({forest.depth for forest in forests}) == 3
    whole = joined(forests)
    np.testing.assert_allclose(
        whole.predict(asked()), np.average(expected, axis=0, weights=[5, 2, 1]), rtol=1e-12
    )
    for one, found in zip(asked().tolist(), whole.predict(asked()), strict=True):
        assert Walker(whole).predict(one) == pytest.approx(found, rel=1e-12)
