"""Coverage on a pool of 24 agents at real prices, all of whose wrong answers differ.

    .venv/bin/python benchmarks/many_agents.py [--splits 20] [--draws 3]

Agents cost $0.00005 to $0.02 a question and are the stronger the dearer they are, on the whole. The
promise is a right answer in the set, given that there is one. No two wrong answers are the same, so
that agreement tells a right one.
"""

import argparse
from collections import defaultdict
from fractions import Fraction

import numpy as np

from farthing.methods.base import Dataset
from farthing.traces.arrays import TraceArrays
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.rows import results

AGENTS = 24
QUESTIONS = 2_400
ALPHAS = (Fraction(1, 10), Fraction(1, 20))
POLICIES = ("lazy", "pool-cover", "cascade-routing", "best-single", "always-all")
SIZES = {"train": 600, "calibrate": 600, "test": 600}


def pool(seed: int) -> TraceArrays:
    """Return questions of all difficulties, and what each agent did on them."""
    rng = np.random.default_rng(seed)
    usd = np.sort(np.exp(rng.uniform(np.log(5e-5), np.log(0.02), AGENTS)))
    skill = np.linspace(-1.0, 2.0, AGENTS) + rng.normal(0, 0.5, AGENTS)
    difficulty = rng.normal(0, 1.5, QUESTIONS)
    odds = skill - difficulty[:, None] + rng.normal(0, 0.7, (QUESTIONS, AGENTS))
    right = rng.random((QUESTIONS, AGENTS)) < 1 / (1 + np.exp(-odds))
    sure = 1 / (1 + np.exp(-(np.where(right, 1.0, -0.3) + rng.normal(0, 1, right.shape))))
    length = rng.lognormal(0, 0.4, (QUESTIONS, 1)) * rng.lognormal(0, 0.2, right.shape)
    names = tuple(f"agent-{k:02}" for k in range(1, AGENTS + 1))
    wrong = np.arange(1, AGENTS + 1)
    return TraceArrays(
        ids=np.array([f"q{seed}-{i}" for i in range(QUESTIONS)]),
        roles=names,
        models=names,
        answer=np.where(right, 0, wrong)[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.ceil(usd * length * 1e9).astype(np.int64)[:, None],
        signals={"confidence": sure[:, None].astype(np.float32)},
        group=np.full(QUESTIONS, -1, dtype=np.int32),
        group_names=(),
        split=np.full(QUESTIONS, -1, dtype=np.int8),
        recorded=np.ones(QUESTIONS, dtype=np.int16),
        independent=np.ones(QUESTIONS, dtype=bool),
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--draws", type=int, default=3)
    given = arguments.parse_args()
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for seed in range(given.draws):
        plan = Plan(ALPHAS, POLICIES, given.splits, sizes=SIZES, population="solvable")
        for row in results(compare(Dataset("24 agents", pool(seed)), plan)):
            found[str(row["alpha"]), str(row["policy"])].append((row["cost_usd"], row["coverage"]))
    print("| alpha | method | USD per 1,000 | coverage |\n| --- | --- | ---: | ---: |")
    for (alpha, name), pairs in sorted(found.items()):
        usd, coverage = np.mean(pairs, axis=0)
        print(f"| {alpha} | {name} | {usd * 1000:.2f} | {coverage:.3f} |")


if __name__ == "__main__":
    main()
