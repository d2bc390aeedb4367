"""What does a second core give `compare`, on processes and on Ray?

    python benchmarks/two_cores.py

The same comparison on one core, on two, and on Ray where that is installed: seconds by the clock,
how many times as quick as on one core, and whether the results are the same to the byte.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

COMPARISON = shlex.split(
    "compare --preset hotpotqa-llama2-7b --policies ccpo --alpha 0.05 --alpha 0.1 --seeds 4 "
    "--splits 20"
)
WAYS = {
    "one core": ["--workers", "1"],
    "two cores": ["--workers", "2"],
    "two cores, Ray": ["--workers", "2", "--engine", "ray"],
}


def run(options: list[str], out: Path) -> float:
    """Compare in a process of its own and return the seconds that it took."""
    command = [Path(sys.executable).with_name("farthing"), *COMPARISON, *options, "--out", out]
    start = time.perf_counter()
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return time.perf_counter() - start


def main() -> None:
    """Run each way once and print a table."""
    print("| | s | times as quick | results |")
    print("| --- | --- | --- | --- |")
    first: tuple[float, bytes] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for name, options in WAYS.items():
            if "ray" in options and find_spec("ray") is None:
                print("| on Ray | it is not installed: pip install 'farthing[ray]' | | |")
                continue
            out = Path(folder) / name.replace(" ", "-")
            seconds, results = run(options, out), (out / "results.json").read_bytes()
            first = first or (seconds, results)
            same = "the same" if results == first[1] else "OTHERS"
            print(f"| {name} | {seconds:.1f} | {first[0] / seconds:.2f} | {same} |", flush=True)
            if results != first[1]:
                sys.exit("the results depend on how they were computed")


if __name__ == "__main__":
    main()
