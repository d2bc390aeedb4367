"""Test a menu of settings in an order fixed beforehand, so that no false proof is likely."""

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray


def proven(p_values: FloatArray, delta: float) -> BoolArray:
    """Return which settings are proved, with probability at most delta of any false proof.

    Fixed-sequence testing: each at the full delta, until the first failure. The first setting that
    should not be proved is tested once, and everything after its failure is left alone; so nothing
    is paid for a long menu, and p-values may depend on each other.

    Args:
        p_values: [G] one a setting, in the order of testing, which no calibration question chose.
        delta: how often a false proof may happen.

    Returns:
        [G] whether the setting is proved.

    Source: learn then test, Angelopoulos et al. 2025, section 2.3 (fixed-sequence testing).

    >>> proven(np.array([0.01, 0.04, 0.2, 0.001]), 0.05).tolist()
    [True, True, False, False]
    """
    return np.logical_and.accumulate(np.asarray(p_values) <= delta)


def setting_kappa(kappas: FloatArray | None, setting: int | None) -> float:
    """Return the threshold of the chosen setting, from [G]; 0 where none is, or none is known."""
    return 0.0 if kappas is None or setting is None else float(kappas[setting])
