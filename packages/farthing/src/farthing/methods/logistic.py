"""Logistic regression as learners fit it."""

import warnings
from typing import Any

from farthing.traces.arrays import BoolArray, FloatArray


def logistic(features: FloatArray, right: BoolArray, strength: float) -> Any:
    """Return scikit-learn's fitted model; `strength` is the inverse of the L2 penalty's.

    Where a step of the solver finds no improvement, as where grades follow from the features, it
    says so and goes on with another one; that warning is of no use to whoever trains a policy.
    """
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - training alone
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    model = LogisticRegression(C=strength, solver="newton-cholesky", max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(features, right)
