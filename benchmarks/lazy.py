"""What does it save to buy call by call? Recorded reasoning traces, training redrawn each time.

    python benchmarks/lazy.py [TRACES] [--splits 20] [--alpha 0.1]

For each split: 769 questions to train, 200 to calibrate, 200 to test.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from recordings import FOLDER, needed

from farthing.methods.base import Dataset
from farthing.promises.kinds.split import split_threshold
from farthing.recommendation import parallel as training
from farthing.recommendation.base import ignore
from farthing.recommendation.candidates import candidates
from farthing.recommendation.replayed_candidate import at_coverage, metrics, replay
from farthing.traces.assemble import load
from farthing.traces.splits import divide

RECORDED = FOLDER / "reasoning-llama2-13b-gpt4.jsonl.gz"
POLICIES = ("fixed-1", "stopping", "lookahead", "lazy")


def measure(job: tuple[Path, str, Fraction, int]) -> tuple[float, float, float]:
    """Return cost and coverage of a test part, and cost at that coverage without luck."""
    path, name, alpha, seed = job
    setting = Dataset(path.name, load(path)).in_rounds
    rng = np.random.default_rng(seed)
    division = divide(setting.traces, rng, calibrate=200, test=200)
    train, rest = setting.traces.take(division.train), setting.traces.take(division.rest)
    (candidate,) = candidates(setting, [name])
    (fitted,) = training.train_all(
        [training.Job(name, candidate.learner, alpha, seed)], train, 1, ignore
    )
    played = replay(fitted.policy, rest, candidate.empty)
    order = rng.permutation(len(rest))
    calibrate, test = order[:200], order[200:400]
    kappa = split_threshold(played.followed.critical[calibrate], alpha).kappa
    if candidate.calibration == "none":
        kappa = 1.0
    found = metrics(played.take(test).act(kappa))
    lucky = at_coverage(fitted.policy, rest, float(1 - alpha), candidate.empty)
    return found["cost_usd"], found["coverage"], lucky["cost_usd"]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--alpha", type=Fraction, default=Fraction(1, 10))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    needed(chosen.traces)
    names = chosen.policies.split(",")
    jobs = [(chosen.traces, n, chosen.alpha, s) for n, s in product(names, range(chosen.splits))]
    print("| policy | USD a question | coverage | threshold set on the test questions: USD |")
    print("| --- | --- | --- | --- |")
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        results = pool.map(measure, jobs)
        for name in names:
            rows = np.array([next(results) for _ in range(chosen.splits)])
            mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            print(
                f"| {name} | {mean[0]:.4f} +- {error[0]:.4f} | {mean[1]:.3f} +- {error[1]:.3f} | "
                f"{mean[2]:.4f} +- {error[2]:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
