"""How far is each policy from the known optimum? Trained on 1,000 generated questions.

The policy is measured with the threshold set to the target coverage on a very large fresh sample,
so that its calibration's luck is out of it; beside it, its mean cost and coverage when calibrated
on 200 questions, again and again.

    python benchmarks/optimum_ratio.py [--presets A,B] [--policies ccpo,...] [--seeds 2]
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import product
from multiprocessing import get_context

import numpy as np

from farthing.methods.base import Dataset
from farthing.process.batch_replay import replay
from farthing.promises.kinds.split import split_threshold
from farthing.recommendation.base import ignore
from farthing.recommendation.candidates import candidates
from farthing.recommendation.metrics import metrics
from farthing_lab.comparison import parallel
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.generator.generate import generate
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.generator.presets import preset

FRESH = 100_000
CALIBRATIONS = 200
ALPHAS = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))


def measure(job: tuple[str, str, Fraction, int, int]) -> tuple[float, float, float]:
    """Return cost over the optimum's: on the fresh sample, and calibrated on 200; its coverage."""
    name, policy, alpha, seed, n_train = job
    config = preset(name).config
    train = generate(config, n_train, np.random.default_rng([seed, 1]))
    fresh = generate(config, FRESH, np.random.default_rng([seed, 2]))
    (candidate,) = candidates(Dataset(name, train, config, name), [policy])
    (fitted,) = parallel.train_all(
        [parallel.Job(policy, candidate.learner, alpha, seed)], train, 1, ignore
    )
    best = optimal_cost(config, float(1 - alpha))
    measured = at_coverage(fitted.policy, fresh, float(1 - alpha), candidate.empty)
    played = replay(fitted.policy, fresh, candidate.empty)
    rng = np.random.default_rng([seed, 3])
    costs, covered = [], []
    for _ in range(CALIBRATIONS):
        chosen = rng.choice(FRESH, 200, replace=False)
        found = metrics(played.act(split_threshold(played.followed.critical[chosen], alpha).kappa))
        costs.append(found["cost_usd"])
        covered.append(found["coverage"])
    return measured["cost_usd"] / best, float(np.mean(costs)) / best, float(np.mean(covered))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", default="hotpotqa-llama2-7b,mmlu-llama3.2-3b")
    parser.add_argument("--policies", default="stopping,ccpo,ccpo-published,cpo-batch")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--train", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    cells = list(product(chosen.presets.split(","), ALPHAS, chosen.policies.split(",")))
    jobs = [(n, p, a, s, chosen.train) for n, a, p in cells for s in range(chosen.seeds)]
    print("| preset | alpha | policy | cost / optimum | on 200: cost / optimum | its coverage |")
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        results = pool.map(measure, jobs)
        for name, alpha, policy in cells:
            rows = np.array([next(results) for _ in range(chosen.seeds)])
            apart = ", ".join(f"{ratio:.3f}" for ratio in rows[:, 0])
            print(
                f"| {name} | {float(alpha):g} | {policy} | {apart} | {rows[:, 1].mean():.3f} | "
                f"{rows[:, 2].mean():.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
