"""Training-conditional (PAC) calibration: a tolerance limit of the critical thresholds."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache

from farthing.calibration.base import FloatArray, Given, Level, Threshold, as_scores, exact_level
from farthing.calibration.split import at_rank, choose

_DIGITS = 60


def pac_threshold(
    critical: FloatArray, alpha: Level, delta: Level, given: Given = "all"
) -> Threshold:
    """Return a threshold whose coverage is at least 1 - alpha with confidence 1 - delta.

    The confidence is over the draw of the calibration questions, which are independent. It is the
    k-th smallest critical threshold for the largest k with Pr[Beta(n + 1 - k, k) < 1 - alpha] <=
    delta; where there is no such k, k = 0 and kappa = 0: everything.

    Args:
        critical: [n] kappa* of held-out questions; inf for an unsolvable one.
        alpha: miscoverage, in (0, 1).
        delta: how often the promise may fail over calibration draws, in (0, 1).
        given: `solvable`: the same over the solvable questions, a promise about those.

    Raises:
        CalibrationError: a NaN or negative score, or alpha or delta outside (0, 1).

    Source: Wilks 1941 (tolerance limits); Vovk 2012, proposition 2a.

    >>> import numpy as np
    >>> pac_threshold(np.linspace(0.01, 1, 100), 0.1, 0.05)
    Threshold(kappa=0.05, k=5, n=100)
    """
    scores = choose(as_scores(critical), given)
    k = pac_rank(len(scores), exact_level(alpha), exact_level(delta, "delta"))
    return at_rank(scores, k)


@cache
def pac_rank(n: int, alpha: Fraction, delta: Fraction) -> int:
    """Return the largest k with Pr[Beta(n + 1 - k, k) < 1 - alpha] <= delta; 0 if there is none.

    That probability is Pr[Binomial(n, alpha) <= k - 1], summed here term by term to 60 digits.

    >>> [pac_rank(n, Fraction("0.1"), Fraction("0.05")) for n in (28, 29, 200)]
    [0, 1, 13]
    """
    context = Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)
    hit, miss = alpha.numerator, alpha.denominator - alpha.numerator
    limit = context.divide(Decimal(delta.numerator), Decimal(delta.denominator))
    stay = context.divide(Decimal(miss), Decimal(alpha.denominator))
    term = context.power(stay, n)
    total = term
    k = 0
    while k < n and total <= limit:
        term = context.divide(context.multiply(term, (n - k) * hit), (k + 1) * miss)
        total = context.add(total, term)
        k += 1
    return k
