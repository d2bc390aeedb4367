"""Does evaluating a Parquet file grow linearly to ten million traces, in bounded memory?

    python benchmarks/million_traces.py [QUESTIONS ...]

Questions of the generator are written in chunks; then a fresh process on one thread, whose memory
is what counts, evaluates a bundle on all of them, as `farthing evaluate` does. Up to a million,
another process evaluates them all at once, and both must find the same to the last bit.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa

from farthing.bundle.folder import save
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Saveable
from farthing.recommendation.evaluate import BundleEvaluation, evaluate, evaluate_file
from farthing.recommendation.splits import Split
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load
from farthing.traces.fingerprint import fingerprint
from farthing.traces.origin import origin_of
from farthing.traces.parquet import CHUNK_ROWS, write_parquet
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.ccpo.policy import NetworkPolicy

PRESET, KAPPA, LIMIT_GIB = "hotpotqa-llama2-7b", 0.3, 2.0
SIZES = (1_000_000, 2_000_000, 5_000_000, 10_000_000)
AT_ONCE = 1_000_000
"""More questions are not read at once."""
ALL_BUT_TWO = Split(sizes={"train": 1, "calibrate": 1})
"""Everything else is tested."""


def chunks(n: int, rng: np.random.Generator) -> Iterator[TraceArrays]:
    """Draw so many questions, a chunk at a time."""
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


def bundled(folder: Path, policies: Mapping[str, Saveable]) -> None:
    """Save each policy as a bundle of its name."""
    like = generate(preset(PRESET).config, 100, np.random.default_rng(2))
    origin = origin_of(like, fingerprint(like))
    for name, policy in policies.items():
        save(folder / name, policy, origin=origin, kappa=KAPPA)


def found(how: str, bundle: Path, path: Path) -> BundleEvaluation:
    """Evaluate in pieces, or all at once."""
    if how == "in pieces":
        return evaluate_file(bundle, path, split=ALL_BUT_TWO)
    return evaluate(bundle, load(path), split=ALL_BUT_TWO)


def measured(how: str, bundle: Path, path: Path, reply: Connection) -> None:
    """Send the seconds, the largest resident memory in GiB, and every figure."""
    pa.set_cpu_count(1)
    start = time.perf_counter(), time.process_time()
    result = found(how, bundle, path)
    seconds = time.perf_counter() - start[0], time.process_time() - start[1]
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    reply.send((*seconds, gib, dict(result.metrics)))


def row(how: str, bundle: Path, path: Path, n: int) -> Mapping[str, float]:
    """Measure in a fresh process, print a row, and return the figures."""
    context = multiprocessing.get_context("spawn")
    receive, reply = context.Pipe(duplex=False)
    process = context.Process(target=measured, args=(how, bundle, path, reply))
    process.start()
    reply.close()
    try:
        clock, busy, gib, figures = receive.recv()
    except EOFError:
        sys.exit("a measurement failed")
    process.join()
    print(
        f"| {n:,} | {bundle.name} | {how} | {clock:.1f} | {busy:.1f} | {1e6 * busy / n:.2f} "
        f"| {gib:.2f} |",
        flush=True,
    )
    if how == "in pieces" and gib > LIMIT_GIB:
        sys.exit(f"more than {LIMIT_GIB} GiB")
    return dict(figures)


def main() -> None:
    """Measure every size and print a table."""
    sizes = [int(a) for a in sys.argv[1:]] or SIZES
    policies: dict[str, Saveable] = {"random": RandomPolicy(), "network": network()}
    print("| questions | policy | how | s by the clock | s of processor | us each | largest GiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        bundled(Path(folder), policies)
        path = Path(folder) / "questions.parquet"
        for n in sizes:
            write_parquet(path, chunks(n, np.random.default_rng(0)))
            for name in policies:
                figures = row("in pieces", Path(folder) / name, path, n)
                if n <= AT_ONCE and figures != row("at once", Path(folder) / name, path, n):
                    sys.exit("the pieces give other figures than the whole")


if __name__ == "__main__":
    main()
