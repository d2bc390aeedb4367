"""A vote of all models of a pool: counted, weighed by log-odds, and weighed by Bayes' rule.

    .venv/bin/python benchmarks/votes.py [--traces FOLDER] [--splits 20]

Half of the recorded questions train and half test, drawn anew for each split. A vote weighs
log(p (K - 1) / (1 - p)), with K learned from how often two wrong answers are the same; the log-odds
are what that is at K = 2. Right answers in %; errors are standard errors over splits, and the
differences are paired.
"""

import argparse
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from recordings import FOLDER, needed

from farthing.methods.base import Silent
from farthing.methods.baselines.models import AlwaysAllLearner, AlwaysAllPolicy
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.pool import cheapest_first, in_order

FILES = {
    "HotpotQA, seven agents": "hotpotqa-seven-agents.jsonl.gz",
    "MMLU, nine models": "mmlu-nine-models.jsonl.gz",
    "MedMCQA, nine models": "medmcqa-nine-models.jsonl.gz",
}


def one_split(traces: TraceArrays, seed: int) -> list[float]:
    """Return % right of votes counted, weighed by log-odds and by Bayes' rule; and K."""
    rows = np.random.default_rng([seed, 5]).permutation(len(traces))
    half = len(rows) // 2
    train, test = traces.take(rows[:half]), traces.take(rows[half:])
    order = cheapest_first([train])
    train, test = in_order(train, order), in_order(test, order)
    policy = AlwaysAllLearner().fit(train, Fraction(1, 10), seed, Silent()).policy
    assert isinstance(policy, AlwaysAllPolicy)
    counted, weighed = 100 * policy.points(test).correct.mean(axis=0)
    by_odds = 100 * replace(policy, answers=2.0).points(test).correct[:, 1].mean()
    return [counted, by_odds, weighed, policy.answers]


def shown(values: FloatArray, sign: str = "") -> str:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.1f} ± {error:.1f}"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=FOLDER)
    arguments.add_argument("--splits", type=int, default=20)
    given = arguments.parse_args()
    needed(*(given.traces / file for file in FILES.values()))
    print("| | K | counted | by log-odds | by Bayes' rule | minus log-odds | minus counted |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for title, file in FILES.items():
        traces = load(given.traces / file)
        traces = traces.take(traces.complete)
        found = [one_split(traces, seed) for seed in range(given.splits)]
        counted, by_odds, weighed, answers = np.array(found).T
        every = [shown(each) for each in (answers, counted, by_odds, weighed)]
        every += [shown(weighed - by_odds, "+"), shown(weighed - counted, "+")]
        print(f"| {title} | " + " | ".join(every) + " |", flush=True)


if __name__ == "__main__":
    main()
