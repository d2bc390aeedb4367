"""Rounds of work on tasks that change: values learned for a program, beside what is best.

    .venv/bin/python benchmarks/sequoia.py [--instances 12]

Three tasks of three states, four rounds, two ways to work at two prices, one budget a round: few
enough for a dynamic programme over all of them together. The figures are shares of what the best
policy gains over the worth at the start, exactly, without playing; 95 % over instances. `priced`
learns nothing: each task is solved by itself with a price on money, the same in every round, as a
restless bandit's relaxation has it; of seven prices the best is taken, which favours it.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from farthing_lab.methods.allocators.sequoia import (
    PendingTasks,
    RoundPolicy,
    Sequoia,
    following,
    optimum,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "packages/farthing-lab/tests/helpers"))

from pending_tasks import random_tasks

PRICES = (0.0, 0.003, 0.01, 0.02, 0.04, 0.08, 0.16)


def priced(tasks: PendingTasks, price: float) -> RoundPolicy:
    """Return the policy by values of each task alone, where a nano-dollar costs a price."""
    values = np.repeat(tasks.worth[None], tasks.rounds + 1, axis=0)
    for at in reversed(range(tasks.rounds)):
        then = np.einsum("nsat,nt->nsa", tasks.chance, values[at + 1])
        values[at] = (then - price * tasks.cost_nano[:, None, :]).max(axis=2)
    return RoundPolicy(tasks, values)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--instances", type=int, default=12)
    given = arguments.parse_args()
    shares: dict[str, list[float]] = {"learned": [], "myopic": [], "priced": []}
    began = time.process_time()
    for seed in range(given.instances):
        tasks, begin = random_tasks(100 + seed), np.zeros(3, np.int64)
        start = tasks.worth[:, 0].sum()
        best = optimum(tasks)[0, 0, 0] - start
        learned = Sequoia().fit(tasks, begin, np.random.default_rng(seed))
        for name, policy in (("learned", learned), ("myopic", RoundPolicy.myopic(tasks))):
            shares[name].append((following(tasks, policy)[0, 0, 0] - start) / best)
        gained = [following(tasks, priced(tasks, price))[0, 0, 0] for price in PRICES]
        shares["priced"].append((max(gained) - start) / best)
    for name, found in shares.items():
        error = 1.96 * np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"{name:8} {np.mean(found):.3f} ± {error:.3f} of the optimum, least {min(found):.3f}")
    print(f"{time.process_time() - began:.0f} s of a core")


if __name__ == "__main__":
    main()
