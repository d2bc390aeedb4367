"""One budget for a whole batch: how near the optimum is an allocation, and how long does it take?

    .venv/bin/python benchmarks/allocate.py knapsack [--largest 100000]

Questions of known difficulty before nine models of rising price, beside SciPy's HiGHS, which solves
the linear relaxation in the same run. At each size: the value as a share of HiGHS's optimum, and
the seconds.
"""

import argparse
import time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from farthing.methods.allocators.base import Batch
from farthing.methods.allocators.knapsack import pack
from farthing.methods.allocators.rco.allocator import RCO

MODELS = 9


def questions(n: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    usd = np.geomspace(1e-5, 6e-4, MODELS)
    cost = np.ceil(1e9 * usd * rng.lognormal(0.0, 0.4, (n, MODELS))).astype(np.int64)
    odds = np.linspace(-0.5, 2.0, MODELS) - rng.normal(0, 2, (n, 1))
    value = 1.0 / (1.0 + np.exp(-odds - rng.normal(0, 0.7, (n, MODELS))))
    return Batch(value, cost, 2 * cost)


def highs(batch: Batch, budget: int) -> float:
    n = len(batch)
    one_each = sparse.kron(sparse.eye(n), np.ones((1, MODELS)), format="csr")
    money = sparse.csr_matrix(batch.expected_nano.ravel()[None] / budget * n)
    solve: Any = linprog
    found = solve(-batch.value.ravel(), money, [n], one_each, np.ones(n), method="highs")
    return -float(found.fun)


def timed(work: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    done = work()
    return done, time.perf_counter() - began


def knapsack(largest: int) -> None:
    print("| questions | HiGHS, s | knapsack | s | RCO's own rounding | s | more than the budget |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    n = 100
    while n <= largest:
        batch = questions(n)
        budget = int(0.7 * batch.least_nano + 0.3 * batch.cost_of(batch.best))
        best, by_highs = timed(lambda: highs(batch, budget))  # noqa: B023
        packed, by_pack = timed(lambda: pack(batch, budget).choice)  # noqa: B023

        def descent() -> Any:
            soft = RCO.descend(batch, budget, lambda _: (0.0, batch.value))  # noqa: B023
            return RCO.rounded(batch, budget, soft)  # noqa: B023

        rounded, by_rco = timed(descent)
        shares = [batch.value[np.arange(n), one].sum() / best for one in (packed, rounded)]
        over = max(0, batch.cost_of(packed) - budget, batch.cost_of(rounded) - budget)
        print(
            f"| {n:,} | {by_highs:.2f} | {shares[0]:.6%} | {by_pack:.3f} | {shares[1]:.6%} "
            f"| {by_rco:.2f} | {over} |",
            flush=True,
        )
        n *= 10


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["knapsack"])
    arguments.add_argument("--largest", type=int, default=100_000)
    given = arguments.parse_args()
    knapsack(given.largest)


if __name__ == "__main__":
    main()
