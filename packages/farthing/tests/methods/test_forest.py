"""Forests put together predict the mean over all of their trees, for one case as for many."""

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from farthing.methods.forest import Forest, joined
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
    alone = [whole.predict(one[None])[0] for one in asked()]
    np.testing.assert_array_equal(alone, whole.predict(asked()))  # to the bit
