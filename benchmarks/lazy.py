"""What does it save to buy call by call, or several at a time? Training is redrawn each time.

    python benchmarks/lazy.py [TRACES] [--splits 20] [--alpha 0.1] [--policies lazy,sequence:3:1]

For each split: 200 questions to calibrate, 200 to test, the others to train: 769 of the reasoning
traces. A round trip is a wait for one call, or for several that are made at the same time.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from recordings import FOLDER, needed

from farthing.methods.base import Dataset
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing.process.base import Policy
from farthing.process.batch_replay import followed, replay
from farthing.promises.kinds.split import split_threshold
from farthing.recommendation.base import ignore
from farthing.recommendation.candidates import candidates
from farthing.recommendation.metrics import metrics
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load
from farthing.traces.splits import divide
from farthing_lab.comparison import parallel
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.methods.lookahead.sequence import SEQUENCE_LEARNER

RECORDED = FOLDER / "reasoning-llama2-13b-gpt4.jsonl.gz"
POLICIES = ("fixed-1", "stopping", "lookahead", "lazy", "sequence")
HEAD = """\
| policy | USD per 1,000 | coverage | the same, threshold set on the test questions | round trips \
| mean s | 95 % of questions, s |
| --- | --- | --- | --- | --- | --- | --- |"""


def trained(name: str, setting: Dataset, train: TraceArrays, alpha: Fraction, seed: int) -> Policy:
    """Return the policy of a method; `sequence:J:P` is `sequence` with so many calls and price."""
    kind, _, options = name.partition(":")
    (candidate,) = candidates(setting, [kind])
    learner = candidate.learner
    if options:
        together, price = options.split(":")
        config = replace(SEQUENCE_LEARNER.config, together=int(together), wait_price=float(price))
        learner = LookaheadLearner(config)
    job = parallel.Job(name, learner, alpha, seed)
    (fitted,) = parallel.train_all([job], train, 1, ignore)
    return fitted.policy


def measure(job: tuple[Path, str, Fraction, int]) -> tuple[float, ...]:
    """Return a row of the table, of one split; seconds are NaN where none were recorded."""
    path, name, alpha, seed = job
    setting = Dataset(path.name, load(path))
    setting = replace(setting, traces=setting.arranged("calls"))
    rng = np.random.default_rng(seed)
    division = divide(setting.traces, rng, calibrate=200, test=200)
    train, rest = setting.traces.take(division.train), setting.traces.take(division.rest)
    policy = trained(name, setting, train, alpha, seed)
    played = replay(policy, rest)
    order = rng.permutation(len(rest))
    calibrate, test = order[:200], order[200:400]
    kappa = split_threshold(played.critical[calibrate], alpha).kappa
    if name.startswith("fixed"):
        kappa = 1.0
    done = played.take(test).act(kappa)
    found, seconds = metrics(done), done.latency_s
    waits = followed(policy, rest).waits
    waits = np.ones((len(rest), setting.traces.answer[0].size)) if waits is None else waits
    trips = waits.cumsum(axis=1)[test, done.length - 1]
    took = (np.nan, np.nan) if seconds is None else (seconds.mean(), np.quantile(seconds, 0.95))
    lucky = at_coverage(policy, rest, float(1 - alpha))
    return found["cost_usd"], found["coverage"], lucky["cost_usd"], trips.mean(), *took


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
    print(HEAD)
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        results = pool.map(measure, jobs)
        for name in names:
            rows = np.array([next(results) for _ in range(chosen.splits)])
            mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            mean, error = (each * [1e3, 1, 1e3, 1, 1, 1] for each in (mean, error))
            cells = [f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
