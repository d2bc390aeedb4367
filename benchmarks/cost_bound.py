"""How far above the true mean is an upper bound of a policy's expected cost?

    python benchmarks/cost_bound.py

Costs are shares of the largest possible one: a cascade's (cheap, and now and then dear), or skewed
as token counts are. Bounds at confidence 0.9, means over 300 samples, as multiples of the true
mean; in brackets the share of samples in which the bound is too low, which may be 0.1.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats

from farthing.calibration.base import FloatArray
from farthing.calibration.betting import mean_upper

DELTA, SAMPLES = 0.1, 300
Draw = Callable[[np.random.Generator, int], FloatArray]
CASES: dict[str, tuple[float, Draw]] = {
    "cascade, dear in a tenth": (0.1 * 0.5 + 0.9 * 0.02, lambda rng, n: cascade(rng, n, 0.1)),
    "cascade, dear in half": (0.5 * 0.5 + 0.5 * 0.02, lambda rng, n: cascade(rng, n, 0.5)),
    "skewed": (0.1, lambda rng, n: rng.beta(0.5, 4.5, n)),
}


def cascade(rng: np.random.Generator, n: int, dear: float) -> FloatArray:
    return np.where(rng.random(n) < dear, 0.5, 0.02)


def betting(x: FloatArray) -> float:
    return mean_upper(x, DELTA)


def empirical_bernstein(x: FloatArray) -> float:
    """Maurer and Pontil 2009, theorem 4."""
    n, log = len(x), np.log(2 / DELTA)
    return float(x.mean() + np.sqrt(2 * x.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1)))


def hoeffding(x: FloatArray) -> float:
    return float(x.mean() + np.sqrt(np.log(1 / DELTA) / (2 * len(x))))


def normal(x: FloatArray) -> float:
    return float(x.mean() + stats.norm.ppf(1 - DELTA) * x.std(ddof=1) / np.sqrt(len(x)))


BOUNDS = (betting, empirical_bernstein, hoeffding, normal)


def main() -> None:
    rng = np.random.default_rng(0)
    print("| costs | n | " + " | ".join(bound.__name__ for bound in BOUNDS) + " |")
    print("| --- " * (2 + len(BOUNDS)) + "|")
    for name, (mean, draw) in CASES.items():
        for n in (200, 500):
            samples = [draw(rng, n) for _ in range(SAMPLES)]
            found = np.array([[bound(x) for bound in BOUNDS] for x in samples])
            pairs = zip(found.mean(axis=0) / mean, (found < mean).mean(axis=0), strict=True)
            cells = " | ".join(f"{ratio:.2f} ({low:.2f})" for ratio, low in pairs)
            print(f"| {name} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
