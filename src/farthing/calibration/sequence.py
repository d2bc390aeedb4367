"""Test operating points in an order fixed beforehand, so that no false proof is likely."""

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray


def proven(p_values: FloatArray, delta: float) -> BoolArray:
    """Return which operating points are proved, with probability at most delta of any false proof.

    Fixed-sequence testing: each at the full delta, until the first failure. The first operating
    point that should not be proved is tested once, and everything after its failure is left alone;
    so nothing is paid for a long row of them, and p-values may depend on each other.

    Args:
        p_values: [G] one a point, in the order of testing, which no calibration question chose.
        delta: how often a false proof may happen.

    Returns:
        [G] whether the operating point is proved.

    Source: learn then test, Angelopoulos et al. 2025, section 2.3 (fixed-sequence testing).

    >>> proven(np.array([0.01, 0.04, 0.2, 0.001]), 0.05).tolist()
    [True, True, False, False]
    """
    return np.logical_and.accumulate(np.asarray(p_values) <= delta)


def point_kappa(kappas: FloatArray | None, point: int | None) -> float:
    """Return the threshold of the chosen operating point, from [G]; 0 where none is known."""
    return 0.0 if kappas is None or point is None else float(kappas[point])
