"""Test a menu of settings in an order fixed beforehand, so that no false proof is likely."""

from collections.abc import Sequence

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray
from farthing.errors import CalibrationError


def proven(p_values: FloatArray, delta: float, weights: Sequence[float] = ()) -> BoolArray:
    """Return which settings are proved, with probability at most delta of any false proof.

    The fallback procedure: the i-th setting is tested at weights[i] * delta, plus the level of the
    one before it where that was proved. Without weights all of delta starts at the first, which is
    fixed-sequence testing: it goes on until the first failure. P-values may depend on each other.

    Args:
        p_values: [G] one a setting, in the order of testing, which no calibration question chose.
        delta: how often a false proof may happen.
        weights: [G] shares of delta, at most 1 together; none: (1, 0, 0, ...).

    Returns:
        [G] whether the setting is proved.

    Raises:
        CalibrationError: weights of another length, negative, or above 1 together.

    Source: Wiens and Dmitrienko 2005; learn then test, Angelopoulos et al. 2025, section 2.

    >>> proven(np.array([0.01, 0.04, 0.2, 0.001]), 0.05).tolist()
    [True, True, False, False]
    >>> proven(np.array([0.01, 0.04, 0.2, 0.001]), 0.05, (0.5, 0, 0, 0.5)).tolist()
    [True, False, False, True]
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    shares = np.asarray(weights or _first_takes_all(len(p_values)), dtype=np.float64)
    if shares.shape != p_values.shape or (shares < 0).any() or shares.sum() > 1 + 1e-12:
        raise CalibrationError("weights must be one a setting, >= 0, and at most 1 together")
    found = np.zeros(len(p_values), dtype=bool)
    handed_on = 0.0
    for index, (p_value, share) in enumerate(zip(p_values, shares, strict=True)):
        level = share * delta + handed_on
        found[index] = level > 0 and p_value <= level
        handed_on = level if found[index] else 0.0
    return found


def _first_takes_all(settings: int) -> list[float]:
    return [1.0 if index == 0 else 0.0 for index in range(settings)]
