"""Split conformal calibration: an exact quantile of the critical thresholds."""

from fractions import Fraction

import numpy as np

from farthing.calibration.base import FloatArray, Given, Level, Threshold, as_scores, exact_level


def split_threshold(critical: FloatArray, alpha: Level, given: Given = "all") -> Threshold:
    """Return the k-th smallest critical threshold, k = floor(alpha (n + 1)).

    Then a new question that is exchangeable with these is covered with probability at least
    1 - alpha. k = 0 gives kappa = 0: everything, for nothing tighter can be promised.

    Args:
        critical: [n] kappa* of held-out questions; inf for an unsolvable one.
        alpha: miscoverage, in (0, 1), read exactly: no float accident in floor(alpha (n + 1)).
        given: `solvable`: the same quantile over the solvable questions, a promise about those.

    Raises:
        CalibrationError: a NaN or negative score, or alpha outside (0, 1).

    Source: Vovk et al. 2005; Papadopoulos et al. 2002; CCPO (arXiv 2511.11828) section 4.3.

    >>> split_threshold(np.array([0.9, 0.2, 0.5, np.inf, 0.3, 0.7, 0.4, 0.8, 0.6]), 0.2)
    Threshold(kappa=0.3, k=2, n=9)
    """
    scores = choose(as_scores(critical), given)
    return at_rank(scores, split_rank(len(scores), exact_level(alpha)))


def split_rank(n: int, alpha: Fraction) -> int:
    """Return floor(alpha (n + 1)) in exact arithmetic.

    >>> split_rank(9, Fraction("0.3")), int(0.3 * 10), split_rank(99, Fraction("0.29"))
    (3, 3, 29)
    """
    return alpha.numerator * (n + 1) // alpha.denominator


def choose(scores: FloatArray, given: Given) -> FloatArray:
    """Return the scores that a promise is about: [n], or the finite ones of them."""
    return scores if given == "all" else scores[np.isfinite(scores)]


def at_rank(scores: FloatArray, k: int) -> Threshold:
    """Return the k-th smallest of the scores [n]; k = 0 gives 0."""
    kappa = float(np.partition(scores, k - 1)[k - 1]) if k else 0.0
    return Threshold(kappa, k, len(scores))
