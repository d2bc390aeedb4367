"""The beta distribution, which coverage given a calibration set follows."""

import math
from functools import cache

_TINY = 1e-300
_ENOUGH = 1e-15


@cache
def realised_coverage(n: int, k: int, level: float = 0.95) -> tuple[float, float]:
    """Return the central interval of the coverage that one calibration set realises.

    Coverage at the k-th smallest of n scores is Beta(n + 1 - k, k), without ties exactly, with them
    at least; at k = 0 everything is returned and coverage is 1.

    Source: Vovk 2012, proposition 2b; Angelopoulos and Bates 2023, section 3.2.

    >>> low, high = realised_coverage(200, 20)
    >>> round(low, 3), round(high, 3)
    (0.856, 0.938)
    """
    if k == 0:
        return 1.0, 1.0
    tail = (1 - level) / 2
    return beta_quantile(tail, n + 1 - k, k), beta_quantile(1 - tail, n + 1 - k, k)


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return x with Pr[Beta(a, b) <= x] = probability, by bisection to the last bit."""
    low, high = 0.0, 1.0
    middle = 0.5
    while low < middle < high:
        if beta_cdf(middle, a, b) < probability:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return Pr[Beta(a, b) <= x], the regularised incomplete beta function.

    Relative error is about 1e-10 up to a + b = 1e6 (that of `math.lgamma`).

    Source: the continued fraction of Abramowitz and Stegun 26.5.8, evaluated by Lentz's method.

    >>> round(beta_cdf(0.9, 181, 20), 6)
    0.465538
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly, use the other tail
        return 1 - beta_cdf(1 - x, b, a)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    value, c, d = 1.0, 1.0, 0.0
    step = 0
    factor = 0.0
    while abs(factor - 1) > _ENOUGH:
        step += 1
        m = step // 2
        if step % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + numerator * d
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = 1 + numerator / c
        c = c if abs(c) > _TINY else _TINY
        factor = c * d
        value *= factor
    return value
