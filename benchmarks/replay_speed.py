"""How fast is replay on one core, against a plain loop?

    python benchmarks/replay_speed.py

In memory, given action probabilities and with the network; the loop goes over episodes and rounds
in plain Python. `million_traces.py` goes through long files.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable

import numpy as np
from million_traces import PRESET, network

from farthing.environments.generator import generate
from farthing.environments.presets import preset
from farthing.environments.replay import outcome, paths
from farthing.traces.arrays import FloatArray, TraceArrays

KAPPA, REPEATS, LOOPED = 0.3, 5, 2_000


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


def seconds(job: Callable[[], object]) -> float:
    """Return the shortest process time of some runs."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Measure and print."""
    traces = generate(preset(PRESET).config, 65_536, np.random.default_rng(0))
    given = np.random.default_rng(1).dirichlet(np.ones(traces.n_roles + 1), traces.answer.shape[:2])
    policy, few = network(), traces.rows(slice(LOOPED))
    plain = seconds(lambda: looped(given, few, KAPPA)) / LOOPED
    ours = outcome(paths(given[:LOOPED], few), few, KAPPA)
    if looped(given, few, KAPPA) != (int(ours.cost_nano.sum()), int(ours.covered.sum())):
        sys.exit("the loop and the replay disagree")
    fast = seconds(lambda: outcome(paths(given, traces), traces, KAPPA)) / len(traces)
    deep = seconds(lambda: outcome(paths(policy.scores(traces), traces), traces, KAPPA))
    deep /= len(traces)
    print(f"{'a plain loop, given probabilities':<40} {1e6 * plain:8.2f} us an episode")
    for what, each in (("replay, given probabilities", fast), ("replay with the network", deep)):
        print(f"{what:<40} {1e6 * each:8.2f} us, {1e-6 / each:.2f} M/s, {plain / each:.0f} x")


if __name__ == "__main__":
    main()
