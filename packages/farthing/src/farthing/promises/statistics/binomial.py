"""The binomial distribution, which errors among independent questions follow."""

import math
from fractions import Fraction

from farthing.promises.statistics.beta import beta_cdf, beta_quantile


def binomial_cdf(successes: int, trials: int, chance: float) -> float:
    """Return Pr[Binomial(trials, chance) <= successes].

    As a p-value it tests whether errors are as frequent as `chance`: it is small where so few
    errors would be a rare accident.

    >>> round(binomial_cdf(0, 29, 0.1), 4), binomial_cdf(0, 0, 0.1)
    (0.0471, 1.0)
    """
    if successes >= trials:
        return 1.0
    if successes < 0:
        return 0.0
    return beta_cdf(1 - chance, trials - successes, successes + 1)


def binomial_interval(successes: int, trials: int, delta: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a chance, at confidence 1 - delta.

    Source: Clopper and Pearson 1934.

    >>> [round(end, 4) for end in binomial_interval(0, 29, 0.1)]
    [0.0, 0.0981]
    """
    failures = trials - successes
    low = beta_quantile(delta / 2, successes, failures + 1) if successes else 0.0
    high = beta_quantile(1 - delta / 2, successes + 1, failures) if failures else 1.0
    return low, high


def binomial_upper(successes: int, trials: int, delta: float) -> float:
    """Return the Clopper-Pearson upper bound of a chance, at confidence 1 - delta.

    The number of trials must not depend on how they went.

    >>> round(binomial_upper(0, 119, 0.05), 4), round(binomial_upper(1, 119, 0.05), 4)
    (0.0249, 0.0392)
    >>> binomial_upper(0, 0, 0.05)
    1.0
    """
    return (
        beta_quantile(1 - delta, successes + 1, trials - successes) if trials > successes else 1.0
    )


def trials_needed(chance: Fraction, delta: Fraction) -> int:
    """Return how many trials without a success prove at confidence 1 - delta a chance below it.

    The smallest n with (1 - chance)^n <= delta, exactly.

    >>> trials_needed(Fraction("0.025"), Fraction("0.05"))
    119
    """
    n = max(0, math.floor(math.log(delta) / math.log1p(-chance)) - 1)
    while (1 - chance) ** n > delta:
        n += 1
    return n
