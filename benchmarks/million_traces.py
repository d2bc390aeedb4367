"""Load a million traces of four rounds from Parquet and replay policies over them.

    python benchmarks/million_traces.py [QUESTIONS]

The questions are drawn by the generator and written in chunks. Then a fresh process, whose memory
is what counts, loads all of them at once and replays a policy; another goes through the file in
chunks. Prints seconds and the largest resident memory of each.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from farthing.environments.generator import generate
from farthing.environments.presets import preset
from farthing.environments.replay import outcome, paths
from farthing.policies.base import Policy
from farthing.policies.network import NetworkPolicy
from farthing.policies.random import RandomPolicy
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load
from farthing.traces.features import FeatureSet
from farthing.traces.parquet import CHUNK_ROWS, iter_parquet, write_parquet

PRESET = "hotpotqa-llama2-7b"
KAPPA = 0.3
LIMIT_GIB = 8.0


def chunks(n: int, rng: np.random.Generator) -> Iterator[TraceArrays]:
    config = preset(PRESET).config
    for start in range(0, n, CHUNK_ROWS):
        yield generate(config, min(CHUNK_ROWS, n - start), rng)


def network() -> NetworkPolicy:
    """Three layers of 64 units, untrained: what it costs to run does not depend on its weights."""
    rng = np.random.default_rng(1)
    train = generate(preset(PRESET).config, 1000, rng)
    features = FeatureSet.fit(train)
    sizes = [len(features.names), 64, 64, 64, train.n_roles + 1]
    weights = [rng.normal(0, a**-0.5, (a, b)) for a, b in pairwise(sizes)]
    return NetworkPolicy(features, weights, [np.zeros(size) for size in sizes[1:]])


def replayed(policy: Policy, traces: TraceArrays) -> tuple[int, float, int]:
    """Return the questions, the nano-dollars and the number of covered questions."""
    followed = paths(policy.scores(traces), traces)
    result = outcome(followed, traces, KAPPA)
    return len(traces), float(result.cost_nano.sum()), int(result.covered.sum())


def show(what: str, seconds: float, results: list[tuple[int, float, int]]) -> None:
    n, nano, covered = np.sum(results, axis=0)
    print(
        f"{what:<44} {seconds:6.1f} s {n / seconds / 1e6:6.2f} M/s"
        f"   mean cost ${nano / n / 1e9:.6f}, coverage {covered / n:.4f}"
    )


def whole(path: Path, policy: Policy) -> None:
    start = time.perf_counter()
    traces = load(path)
    print(f"{'load all':<44} {time.perf_counter() - start:6.1f} s")
    start = time.perf_counter()
    result = replayed(policy, traces)
    show("score, follow every branch, act: all at once", time.perf_counter() - start, [result])


def in_chunks(path: Path, policy: Policy) -> None:
    start = time.perf_counter()
    results = [replayed(policy, traces) for traces in iter_parquet(path)]
    show("load, score, follow and act: in chunks", time.perf_counter() - start, results)


def alone(job: Callable[[Path, Policy], None], path: Path, policy: Policy) -> None:
    """Run a job in a fresh process and print the largest memory that it held."""
    process = multiprocessing.get_context("spawn").Process(
        target=measured, args=(job, path, policy)
    )
    process.start()
    process.join()
    if process.exitcode:
        sys.exit("a measurement failed")


def measured(job: Callable[[Path, Policy], None], path: Path, policy: Policy) -> None:
    job(path, policy)
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'largest resident memory':<44} {gib:6.2f} GiB")
    if gib > LIMIT_GIB:
        sys.exit(f"more than {LIMIT_GIB} GiB")


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.parquet"
        start = time.perf_counter()
        write_parquet(path, chunks(n, np.random.default_rng(0)))
        size = path.stat().st_size / 2**20
        seconds = time.perf_counter() - start
        print(f"{f'generate and write {n:,} questions':<44} {seconds:6.1f} s ({size:.0f} MiB)")
        for name, policy in (("random", RandomPolicy()), ("network 3 x 64", network())):
            for job in (whole, in_chunks):
                print(f"-- {name}, {job.__name__.replace('_', ' ')}")
                alone(job, path, policy)


if __name__ == "__main__":
    main()
