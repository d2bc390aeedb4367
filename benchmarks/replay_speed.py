"""How fast is replay on one core, against a plain loop?

    python benchmarks/replay_speed.py

In memory, given action probabilities and with the network; the loop goes over episodes and rounds
in plain Python.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.process.replay import outcome, paths
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.policy import NetworkPolicy

PRESET = "hotpotqa-llama2-7b"
KAPPA, REPEATS, LOOPED = 0.3, 25, 2_000


def network() -> NetworkPolicy:
    """Three layers of 64 units, untrained: what it costs to run does not depend on its weights."""
    rng = np.random.default_rng(1)
    train = generate(preset(PRESET).config, 1000, rng)
    features = FeatureSet.fit(train)
    sizes = [len(features.names), 64, 64, 64, train.n_roles + 1]
    weights = [rng.normal(0, a**-0.5, (a, b)) for a, b in pairwise(sizes)]
    return NetworkPolicy(features, weights, [np.zeros(size) for size in sizes[1:]])


def looped(scores: FloatArray, traces: TraceArrays, kappa: float) -> tuple[int, int]:
    """Play question by question, round by round; return nano-dollars and covered questions."""
    spent = covered = 0
    for i in range(len(traces)):
        reach, hit = 1.0, False
        for t in range(traces.horizon):
            if reach < kappa:
                break
            spent += int(traces.cost_nano[i, t].sum())
            row = scores[i, t].tolist()
            allowed = row if t < traces.horizon - 1 else row[:-1]
            row[allowed.index(max(allowed))] = 1.0
            for role in range(traces.n_roles):
                hit = hit or (bool(traces.correct[i, t, role]) and min(reach, row[role]) >= kappa)
            reach = min(reach, row[-1])
        covered += hit or not traces.correct[i].any()
    return spent, covered


def microseconds(job: Callable[[], object], episodes: int) -> tuple[float, float]:
    """Return the median and the least process time of an episode over some runs."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        job()
        found.append(1e6 * (time.process_time() - start) / episodes)
    return median(found), min(found)


def main() -> None:
    """Measure and print a table."""
    traces = generate(preset(PRESET).config, 65_536, np.random.default_rng(0))
    given = np.random.default_rng(1).dirichlet(np.ones(traces.n_roles + 1), traces.answer.shape[:2])
    policy, few = network(), traces.rows(slice(LOOPED))
    ours = outcome(paths(given[:LOOPED], few), few, KAPPA)
    if looped(given, few, KAPPA) != (int(ours.cost_nano.sum()), int(ours.covered.sum())):
        sys.exit("the loop and the replay disagree")

    def replayed(scores: FloatArray) -> object:
        return outcome(paths(scores, traces), traces, KAPPA)

    plain = microseconds(lambda: looped(given, few, KAPPA), LOOPED)
    fast = microseconds(lambda: replayed(given), len(traces))
    deep = microseconds(lambda: replayed(policy.scores(traces)), len(traces))
    print("| one episode | us: median, least | million a second | times the loop |")
    print("| --- | --- | --- | --- |")
    for what, each in (
        ("plain loop, given probabilities", plain),
        ("replay, given probabilities", fast),
        ("replay with the network, features included", deep),
    ):
        rates = ", ".join(f"{1 / us:.2f}" for us in each)
        times = ", ".join(f"{loop / us:.1f}" for loop, us in zip(plain, each, strict=True))
        print(f"| {what} | {each[0]:.2f}, {each[1]:.2f} | {rates} | {times} |")


if __name__ == "__main__":
    main()
