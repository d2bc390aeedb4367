"""How many questions are answered where answers must be right with probability 1 - alpha?

Each policy twice: with answers that all score 1, at the threshold that is right most often on its
training questions, where everything is answered or nothing is proved; and saying how sure it is.

    python benchmarks/selective.py [--traces FILE | --preset NAME] [--policies A,B] [--alphas 0.1]
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.calibration.binomial import binomial_cdf
from farthing.calibration.guarantees.selective import (
    answers_above,
    candidate_thresholds,
    selective_point,
)
from farthing.experiments.candidates import candidates
from farthing.experiments.evaluate import replay
from farthing.experiments.promises import grid
from farthing.experiments.run import fit
from farthing.methods.base import Dataset, Silent
from farthing.methods.selective.learner import confident
from farthing.process.base import Policy
from farthing.process.generator.generate import generate
from farthing.process.generator.presets import preset
from farthing.traces.arrays import TraceArrays
from farthing.traces.files import read_arrays

DELTA = Fraction(1, 10)
FRESH = 20_000
DIVISIONS = 20
"""Calibrations of each training."""
Found = tuple[float, float, float, float]
"""Whether anything is proved; share answered; of those right (NaN where none); USD a question."""


def questions(args: argparse.Namespace) -> tuple[TraceArrays, int]:
    """Return the questions, and how many of them to train on."""
    if args.traces is None:
        made = generate(preset(args.preset).config, 1_000 + FRESH, np.random.default_rng(0))
        return replace(made, independent=np.ones(len(made), dtype=bool)), 1_000
    found = Dataset("", read_arrays(args.traces)).in_rounds.traces
    return found, int(0.6 * len(found))


def alike(policy: Policy, train: TraceArrays, rest: TraceArrays, alpha: Fraction, n: int) -> Found:
    """Answer everything, where that is proved right often enough."""
    trained = replay(policy, train, "argmax")
    best = max(grid(trained), key=lambda kappa: trained.act(float(kappa)).best_correct.mean())
    found = replay(policy, rest, "argmax").act(float(best))
    rows = []
    for held, new in divisions(len(rest), n):
        wrong = int((~found.best_correct[held]).sum())
        proved = binomial_cdf(wrong, n, float(alpha)) <= DELTA
        right = found.best_correct[new].mean() if proved else np.nan
        rows.append((proved, float(proved), right, found.cost_nano[new].mean() / 1e9))
    return averaged(rows)


def apart(policy: Policy, train: TraceArrays, rest: TraceArrays, alpha: Fraction, n: int) -> Found:
    """Answer what is sure enough."""
    learned = confident(policy, train, "argmax", alpha)
    kappas = candidate_thresholds(learned.sure, learned.right, alpha)
    played = replay(learned.policy, rest, "allow")
    found, sure = played.act(1e-9), played.followed.leaf.max(axis=(1, 2))
    rows = []
    for held, new in divisions(len(rest), n):
        answers = answers_above(sure[held], found.best_correct[held], kappas)
        point = selective_point(answers, alpha, DELTA)
        given = sure[new] >= (np.inf if point is None else kappas[point])
        right = found.best_correct[new][given].mean() if given.any() else np.nan
        rows.append((point is not None, given.mean(), right, found.cost_nano[new].mean() / 1e9))
    return averaged(rows)


def divisions(n: int, held: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Divide questions into calibration and test, the same for every policy."""
    rng = np.random.default_rng(1)
    for _ in range(DIVISIONS):
        order = rng.permutation(n)
        yield order[:held], order[held:]


def averaged(rows: list[tuple[bool, float, float, float]]) -> Found:
    """Return the means; of what is right only where something was answered."""
    table = np.array(rows, dtype=float)
    right = table[:, 2][~np.isnan(table[:, 2])]
    return (
        float(table[:, 0].mean()),
        float(table[:, 1].mean()),
        float(right.mean()) if right.size else float("nan"),
        float(table[:, 3].mean()),
    )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--preset", default="hotpotqa-llama2-7b")
    parser.add_argument("--policies", default="lookahead,lazy")
    parser.add_argument("--alphas", default="0.1")
    parser.add_argument("--calibrate", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    everyone, size = questions(args)
    print("| policy | alpha | answers | proved | answered | right | USD a question |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in args.policies.split(","):
        (candidate,) = candidates(Dataset("", everyone), [name])
        if candidate.learner is None:
            parser.error(candidate.note)
        for alpha in map(Fraction, args.alphas.split(",")):
            found: dict[str, list[Found]] = {"alike": [], "by sureness": []}
            for seed in range(args.seeds):
                order = np.random.default_rng(seed).permutation(len(everyone))
                train, rest = everyone.take(order[:size]), everyone.take(order[size:])
                policy = fit(candidate.learner, train, alpha, seed, Silent()).policy
                found["alike"].append(alike(policy, train, rest, alpha, args.calibrate))
                found["by sureness"].append(apart(policy, train, rest, alpha, args.calibrate))
            for how, of in found.items():
                proved, answered, right, usd = np.nanmean(of, axis=0)
                print(
                    f"| {name} | {float(alpha)} | {how} | {proved:.2f} | {answered:.2f} | "
                    f"{right:.3f} | {usd:.5f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
