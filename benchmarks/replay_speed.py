"""How fast is replay, and does it grow linearly to ten million questions in bounded memory?

    python benchmarks/replay_speed.py [QUESTIONS ...]

One core. First given action probabilities and with the network, in memory, against a plain Python
loop over episodes and rounds; then whole Parquet files in chunks, each in a fresh process whose
largest memory is printed: calibrate a threshold on every question, then measure with it.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from million_traces import PRESET, chunks, network

from farthing.environments.generator import generate
from farthing.environments.presets import preset
from farthing.environments.replay import outcome, paths
from farthing.experiments.chunked import measure, threshold
from farthing.policies.base import Policy
from farthing.policies.random import RandomPolicy
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.parquet import write_parquet

KAPPA, ALPHA, REPEATS, LOOPED = 0.3, 0.1, 5, 2_000


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


def in_memory() -> None:
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


def in_chunks(path: Path, n: int, name: str, policy: Policy) -> None:
    pa.set_cpu_count(1)
    start = time.perf_counter()
    kappa = threshold(policy, path, ALPHA).kappa
    middle = time.perf_counter()
    found = measure(policy, path, kappa)
    end = time.perf_counter()
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n:>10,} {name:<8} threshold {middle - start:6.1f} s, measure {end - middle:6.1f} s, "
        f"{gib:.2f} GiB, coverage {found['coverage']:.5f}",
        flush=True,
    )


def main() -> None:
    in_memory()
    for n in [int(a) for a in sys.argv[1:]] or [100_000, 1_000_000, 10_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "questions.parquet"
            write_parquet(path, chunks(n, np.random.default_rng(0)))
            for name, policy in (("random", RandomPolicy()), ("network", network())):
                context = multiprocessing.get_context("spawn")
                process = context.Process(target=in_chunks, args=(path, n, name, policy))
                process.start()
                process.join()
                if process.exitcode:
                    sys.exit("a measurement failed")


if __name__ == "__main__":
    main()
