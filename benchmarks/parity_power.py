"""How often does each test prove parity, at settings that do keep it and at one on the edge?

    python benchmarks/parity_power.py

A setting loses on a share of the questions and wins on another; the loss of accuracy is their
difference, and less than two points (epsilon = 0.02) is to be proved at confidence 0.9. Shares of
1,000 samples, standard error at most 0.016. The normal approximation is no valid test, only a mark.
"""

import numpy as np
from scipy import stats

from farthing.calibration.base import FloatArray
from farthing.calibration.betting import mean_p_value
from farthing.calibration.trinomial import loss_p_value

EPSILON, DELTA, SAMPLES = 0.02, 0.1, 1_000
CASES = ((0.04, 0.02), (0.03, 0.03), (0.02, 0.03), (0.10, 0.10), (0.08, 0.10))


def exact(d: FloatArray) -> float:
    return loss_p_value(int((d > 0).sum()), int((d < 0).sum()), len(d), EPSILON)


def betting(d: FloatArray) -> float:
    return mean_p_value((d + 1) / 2, (1 + EPSILON) / 2, DELTA)


def hoeffding_bentkus(d: FloatArray) -> float:
    """Bates et al. 2021, on differences scaled to [0, 1]."""
    n, mean, edge = len(d), (d.mean() + 1) / 2, (1 + EPSILON) / 2
    if mean >= edge:
        return 1.0
    hoeffding = np.exp(-n * float(stats.entropy([mean, 1 - mean], [edge, 1 - edge])))
    return float(min(hoeffding, np.e * stats.binom.cdf(np.ceil(n * mean), n, edge)))


def clopper_pearson(d: FloatArray) -> float:
    """Whether losses' upper limit minus wins' lower one is below epsilon, at delta / 2 each."""
    n, lost, won = len(d), int((d > 0).sum()), int((d < 0).sum())
    most_lost = stats.beta.ppf(1 - DELTA / 2, lost + 1, n - lost)
    least_won = stats.beta.ppf(DELTA / 2, won, n - won + 1) if won else 0.0
    return float(most_lost - least_won >= EPSILON)


def normal(d: FloatArray) -> float:
    spread = max(float(d.std()), 1 / len(d))
    return float(stats.norm.cdf((d.mean() - EPSILON) / spread * np.sqrt(len(d))))


TESTS = (exact, betting, hoeffding_bentkus, clopper_pearson, normal)


def main() -> None:
    rng = np.random.default_rng(0)
    print("| n | lost | won | " + " | ".join(test.__name__ for test in TESTS) + " |")
    print("| --- " * (3 + len(TESTS)) + "|")
    for n in (200, 300, 500):
        for lost, won in CASES:
            d = rng.choice([1.0, -1.0, 0.0], (SAMPLES, n), p=[lost, won, 1 - lost - won])
            shares = [np.mean([test(row) <= DELTA for row in d]) for test in TESTS]
            cells = " | ".join(f"{share:.2f}" for share in shares)
            print(f"| {n} | {lost:.2f} | {won:.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
