"""Can training questions calibrate too? Cross-fitted thresholds against plain splits of as many.

On generated questions, judged on fresh ones: a split in two, a fold's policy by lot at the fold's
own threshold (exactly 1 - alpha), and all folds at once by ranks (1 - 2 alpha less a little).

    python benchmarks/cross_fit.py [--policy stopping] [--sizes 200,400] [--folds 2,5] [--runs 15]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from farthing.calibration.base import FloatArray, IntArray
from farthing.calibration.guarantees.split import split_rank, split_threshold
from farthing.experiments.candidates import candidates
from farthing.experiments.evaluate import replay
from farthing.experiments.run import fit
from farthing.methods.base import Dataset, Learner, Silent
from farthing.process.generator.generate import GeneratorConfig, generate
from farthing.process.generator.presets import preset
from farthing.process.replay import Paths
from farthing.traces.arrays import TraceArrays

ALPHA = Fraction(1, 10)
SHARES = (0.5, 0.75)


@dataclass(frozen=True)
class Fold:
    """A policy, and what it makes of its own fold and of fresh questions."""

    critical: FloatArray
    """[m] of the fold."""
    fresh: Paths


def trained(
    learner: Learner, data: TraceArrays, fresh: TraceArrays, seed: int, out: IntArray
) -> Fold:
    """Train on everything but some questions."""
    kept = np.setdiff1d(np.arange(len(data)), out)
    policy = fit(learner, data.take(kept), ALPHA, seed, Silent()).policy
    held = replay(policy, data.take(out), "argmax").followed.critical
    return Fold(np.sort(held), replay(policy, fresh, "argmax").followed)


def alone(fold: Fold, fresh: TraceArrays) -> tuple[float, float]:
    """Return coverage and USD per 1,000 questions at the fold's own threshold."""
    kappa = min(split_threshold(fold.critical, ALPHA).kappa, 1.0)
    return judged(fold.fresh.critical >= kappa, fold.fresh.reach >= kappa, fresh)


def together(folds: list[Fold], fresh: TraceArrays) -> tuple[float, float]:
    """Return the same where all folds decide by ranks: cross-conformal, CV+.

    For policies that return every answer reached: a question is covered where the round of its
    first right answer is run.
    """
    rank = split_rank(sum(len(fold.critical) for fold in folds), ALPHA)
    counts = [np.searchsorted(fold.critical, fold.fresh.reach, side="right") for fold in folds]
    run = np.minimum.accumulate(np.sum(counts, axis=0), axis=1) >= rank
    run[:, 0] = True
    right = (fresh.correct.any(axis=2) & run).any(axis=1)
    return judged(right | ~fresh.solvable, run, fresh)


def judged(covered: np.ndarray, run: np.ndarray, fresh: TraceArrays) -> tuple[float, float]:
    """Return coverage and USD per 1,000 questions."""
    spent = np.where(run, fresh.round_cost_nano, 0).sum(axis=1)
    return float(covered.mean()), float(spent.mean()) / 1e6


def one_run(
    without: Callable[[IntArray], Fold],
    fresh: TraceArrays,
    n: int,
    folds: list[int],
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Return coverage and cost of every way to use the same questions."""
    found = {}
    for share in SHARES:
        split = without(np.arange(int(share * n), n))
        found[f"split, {share:.0%} to train"] = alone(split, fresh)
    for k in folds:
        fold = rng.permutation(n) % k
        parts = [without(np.flatnonzero(fold == j)) for j in range(k)]
        by_lot = np.mean([alone(part, fresh) for part in parts], axis=0)
        found[f"{k} folds, one by lot"] = (float(by_lot[0]), float(by_lot[1]))
        found[f"{k} folds, together"] = together(parts, fresh)
    return found


def measure(learner: Learner, config: GeneratorConfig, n: int, args: argparse.Namespace) -> None:
    """Print the rows of one number of questions."""
    fresh = generate(config, args.fresh, np.random.default_rng(99))
    folds = [int(k) for k in args.folds.split(",")]
    found: dict[str, list[tuple[float, float]]] = {}
    for run in range(args.runs):
        rng = np.random.default_rng([run, n])
        data = generate(config, n, rng)
        without = partial(trained, learner, data, fresh, run)
        for name, figures in one_run(without, fresh, n, folds, rng).items():
            found.setdefault(name, []).append(figures)
    for name, rows in found.items():
        coverage, cost = np.array(rows).T
        error = np.std(rows, axis=0, ddof=1) / np.sqrt(args.runs)
        print(
            f"| {n} | {name} | {coverage.mean():.3f} ± {error[0]:.3f} | {coverage.std():.3f} | "
            f"{np.quantile(coverage, 0.1):.3f} | {cost.mean():.3f} ± {error[1]:.3f} |",
            flush=True,
        )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="hotpotqa-llama2-7b")
    parser.add_argument("--policy", default="stopping")
    parser.add_argument("--sizes", default="200,400,1000")
    parser.add_argument("--folds", default="2,5")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--fresh", type=int, default=100_000)
    args = parser.parse_args()
    config = preset(args.preset).config
    (candidate,) = candidates(
        Dataset("", generate(config, 10, np.random.default_rng(0))), [args.policy]
    )
    if candidate.learner is None:
        parser.error(candidate.note)
    print("| questions | how | coverage | its spread | its 10 % | USD per 1,000 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in args.sizes.split(","):
        measure(candidate.learner, config, int(n), args)


if __name__ == "__main__":
    main()
