"""Is the promise for another mix kept where only round 1 has shifted, and refused where more has?

Calibrations are drawn from a large sample of each mix; the new mix is either the old one with
questions drawn by what their round 1 shows, or one of other difficulties, which are hidden there.

    python benchmarks/hidden_shift.py [--runs 1000] [--sizes 200:200,100:100] [--shifts hidden]
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from farthing.errors import CalibrationError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing.process.batch_replay import replay
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.generator.config import shift_mix
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.promises.target_mix import (
    Shown,
    Weighed,
    check_covariate_shift,
    fit_density_ratio,
)
from farthing_lab.promises.weighted import Weighted, weighted_threshold

ALPHA = Fraction("0.1")
TRAIN, POOL = 1_000, 40_000
HARDER = {"hotpotqa-llama2-7b": (0.2, 0.3, 0.5), "mmlu-llama2-7b": (0.1, 0.1, 0.8)}
SHIFTS = ("none", "unsure", "rejected", "extremes", "hidden-half", "hidden")


@dataclass(frozen=True)
class Mix:
    """A large sample of questions, and how likely each is to be drawn."""

    shown: Shown
    critical: FloatArray
    chance: FloatArray

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return the rows of so many questions."""
        rows: IntArray = np.searchsorted(self.chance.cumsum(), rng.random(n), side="right")
        return np.minimum(rows, len(self.chance) - 1)

    def seen(self, rows: IntArray) -> Shown:
        """Return what these questions show."""
        return Shown(self.shown.first[rows], self.shown.later[rows])

    def coverage(self, kappa: float) -> float:
        """Return the coverage of a threshold in the whole mix."""
        return float(self.chance @ (self.critical >= min(kappa, 1.0)))


def mixes(name: str, shift: str) -> tuple[FeatureSet, Mix, Mix]:
    """Train on the old mix; return the features, the old mix and the new one."""
    config = preset(name).config
    train = generate(config, TRAIN, np.random.default_rng(1))
    policy = LookaheadLearner().fit(train, ALPHA, 0, Silent()).policy
    features = FeatureSet.fit(train)
    part = {"hidden": 1.0, "hidden-half": 0.5}.get(shift, 0.0)
    harder = tuple(part * np.array(HARDER[name]) + (1 - part) * config.mix)
    found = []
    for seed, of in ((2, config), (3, shift_mix(config, harder))):
        traces = generate(of, POOL, np.random.default_rng(seed))
        critical = replay(policy, traces, "argmax").followed.critical
        shown = Shown.by(features, traces)
        odds = np.ones(POOL)
        if seed == 3:
            odds = ratio_of(shift, shown.first, features.names)
        found.append(Mix(shown, critical, odds / odds.sum()))
    return features, found[0], found[1]


def ratio_of(shift: str, first: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Return how much oftener each question is drawn by its round 1, up to a factor."""
    unsure = first[:, names.index("uncertainty[guide]")]
    verdict = first[:, names.index("verdict[guide]")]
    ratio: FloatArray = {
        "unsure": np.exp(0.7 * unsure),
        "rejected": np.where(verdict < verdict.mean(), 3.0, 1.0),
        "extremes": np.where(np.abs(unsure) > 0.8, 3.0, 1.0),  # no log-linear ratio
    }.get(shift, np.ones(len(first)))
    return ratio


def measure(name: str, shift: str, sizes: tuple[int, int], runs: int) -> str:
    """Calibrate again and again; return a row of the table."""
    features, old, new = mixes(name, shift)
    rng = np.random.default_rng([4, *sizes])
    found = np.array([once(features, old, new, sizes, rng) for _ in range(runs)])
    coverage, refused = found[:, 0], found[:, 1] > 0
    kept = coverage[~refused]
    error = coverage.std() / np.sqrt(runs)
    of_kept = f"{kept.mean():.4f} ± {kept.std() / np.sqrt(len(kept)):.4f}" if len(kept) else "-"
    rate = refused.mean()
    return (
        f"| {name} | {shift} | {sizes[0]}, {sizes[1]} | {coverage.mean():.4f} ± {error:.4f} | "
        f"{rate:.3f} ± {np.sqrt(rate * (1 - rate) / runs):.3f} | {of_kept} |"
    )


def once(
    features: FeatureSet, old: Mix, new: Mix, sizes: tuple[int, int], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the coverage that a calibration realises, and whether the test refuses it."""
    train = old.seen(old.draw(TRAIN, rng))
    rows = old.draw(sizes[0], rng)
    held, target = old.seen(rows), new.seen(new.draw(sizes[1], rng))
    ratio = fit_density_ratio(train.first, target.first)
    weights, theirs = ratio.weights(held.first), ratio.weights(target.first)
    sample = Weighted(old.critical[rows], weights, float(max(weights.max(), theirs.max())))
    coverage = new.coverage(weighted_threshold(sample, ALPHA).kappa)
    try:
        check_covariate_shift(features, train, Weighed(held, weights), Weighed(target, theirs))
    except CalibrationError:
        return coverage, 1.0
    return coverage, 0.0


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", default=",".join(HARDER))
    parser.add_argument("--shifts", default=",".join(SHIFTS))
    parser.add_argument("--sizes", default="200:200", help="calibration and target questions")
    parser.add_argument("--runs", type=int, default=1_000)
    args = parser.parse_args()
    sizes = [tuple(map(int, pair.split(":"))) for pair in args.sizes.split(",")]
    cases = list(product(args.presets.split(","), args.shifts.split(","), sizes))
    print("| preset | shift | calibration, target | coverage untested | refused | if certified |")
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(2) as pool:
        rows = [pool.submit(measure, *case, args.runs) for case in cases]
        for row in rows:
            print(row.result(), flush=True)


if __name__ == "__main__":
    main()
